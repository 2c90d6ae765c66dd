// Plays the commands of upstream's transcripts (raft/rafttest) on the engine, and answers as they expect.

import { seededEngine } from '../engine-fixture.ts';
import { emptyConf, EntryKind, MessageType } from '../frames.ts';
import type { Entry, Message, Snapshot } from '../frames.ts';
import type { GroupOptions, RaftEngine, Transition } from '../raft-engine.ts';
import { Describer, messageNames, progressText, roleNames } from './describe-fixture.ts';

export interface Command {
  name: string;
  /** In order; without values for a bare word. */
  args: { key: string; values: string[] }[];
  input: string;
}

interface Node {
  id: number;
  engine: RaftEngine;
  group: number;
  describe: Describer;
  asyncStorage: boolean;
  appendWork: Message[];
  applyWork: Message[];
  history: Snapshot[];
}

const electionTicks = 3;
const heartbeatTicks = 1;
const noBytes = new Uint8Array(0);

function isTrue({ values: [value] }: { values: string[] }): boolean {
  return value === 'true';
}

export class Interaction {
  readonly #nodes: Node[] = [];
  #messages: Message[] = [];
  #output = '';
  #quiet = false;

  /** Output of the command, without the library's log. */
  run(command: Command): string {
    this.#output = '';
    try {
      this.#handle(command);
    } catch (error) {
      const { message } = error as Error;
      if (this.#quiet) return message;
      this.#print(message);
    }
    return this.#output === '' ? 'ok' : this.#output;
  }

  #handle(command: Command): void {
    const first = (): Node => this.#node(Number(command.args[0]!.key));
    const second = (): string => command.args[1]!.key;
    const value = (key: string): string =>
      command.args.find((arg) => arg.key === key)?.values[0] ?? '';
    switch (command.name) {
      case 'add-nodes':
        return this.#addNodes(command);
      case 'log-level':
        return void (this.#quiet = command.args[0]!.key.toLowerCase() === 'none');
      case 'raft-state':
        return this.#raftState();
      case 'stabilize':
        return this.#stabilize(command);
      case 'deliver-msgs':
        return this.#deliverCommand(command);
      case 'process-ready':
        return this.#each(command, 'handling Ready', (node) => this.#processReady(node));
      case 'process-append-thread':
        return this.#each(command, 'processing append thread', (n) => this.#processAppend(n));
      case 'process-apply-thread':
        return this.#each(command, 'processing apply thread', (n) => this.#processApply(n));
      case 'propose-conf-change':
        return this.#proposeConfChange(command);
      case 'send-snapshot':
        return this.#sendSnapshot(first(), Number(second()));
      case 'transfer-leadership': {
        const { engine, group } = this.#node(Number(value('from')));
        return engine.transferLeader(group, Number(value('to')));
      }
      default:
        return this.#handleOne(command.name, first(), second, value);
    }
  }

  #handleOne(name: string, node: Node, second: () => string, value: (key: string) => string): void {
    const { engine, group } = node;
    switch (name) {
      case 'campaign':
        return engine.campaign(group);
      case 'compact':
        engine.compact(group, Number(second()));
        return this.#raftLog(node);
      case 'raft-log':
        return this.#raftLog(node);
      case 'status':
        return this.#print(engine.progress(group).peers.map(progressText).join(''));
      case 'tick-election':
        for (let i = 0; i < electionTicks; i++) engine.tick(group);
        return;
      case 'tick-heartbeat':
        for (let i = 0; i < heartbeatTicks; i++) engine.tick(group);
        return;
      case 'forget-leader':
        return engine.forgetLeader(group);
      case 'propose':
        return engine.propose(group, [Buffer.from(second())]);
      case 'report-unreachable':
        return engine.reportUnreachable(group, Number(second()));
      case 'set-randomized-election-timeout':
        return engine.setElectionTimeout(group, Number(value('timeout')));
      default:
        throw new Error(`unknown command ${name}`);
    }
  }

  #node(id: number): Node {
    return this.#nodes[id - 1]!;
  }

  #named({ args }: Command): Node[] {
    return args
      .filter(({ values }) => values.length === 0)
      .map(({ key }) => this.#node(Number(key)));
  }

  #print(text: string): void {
    if (!this.#quiet) this.#output += text;
  }

  #indented(run: () => void): void {
    const before = this.#output;
    this.#output = '';
    try {
      run();
    } finally {
      const inner = this.#output.replace(/\n$/, '');
      this.#output = before + (inner === '' ? '' : `${inner.replaceAll(/^/gm, '  ')}\n`);
    }
  }

  #each(command: Command, what: string, run: (node: Node) => void): void {
    const nodes = this.#named(command);
    for (const node of nodes) {
      if (nodes.length === 1) run(node);
      else {
        this.#print(`> ${node.id} ${what}\n`);
        this.#indented(() => run(node));
      }
    }
  }

  #addNodes({ args }: Command): void {
    const snapshot: Snapshot = { index: 0, term: 0, conf: { ...emptyConf }, data: noBytes };
    const options: Partial<GroupOptions> = {};
    for (const arg of args.slice(1)) {
      const [value = ''] = arg.values;
      if (arg.key === 'voters') snapshot.conf.voters = arg.values.map(Number);
      else if (arg.key === 'learners') snapshot.conf.learners = arg.values.map(Number);
      else if (arg.key === 'inflight') options.maxInflightMessages = Number(value);
      else if (arg.key === 'index') snapshot.index = Number(value);
      else if (arg.key === 'content') snapshot.data = Buffer.from(value);
      else if (arg.key === 'async-storage-writes') options.asyncStorage = isTrue(arg);
      else if (arg.key === 'prevote') options.preVote = isTrue(arg);
      else if (arg.key === 'checkquorum') options.checkQuorum = isTrue(arg);
      else if (arg.key === 'max-committed-size-per-ready')
        options.maxCommittedBytes = Number(value);
      else if (arg.key === 'disable-conf-change-validation')
        options.noConfChangeValidation = isTrue(arg);
      else if (arg.key === 'read-only') options.leaseReads = value === 'lease-based';
      else if (arg.key === 'step-down-on-removal') options.stepDownOnRemoval = isTrue(arg);
      else throw new Error(`unknown option ${arg.key}`);
    }
    if (snapshot.index > 0) snapshot.term = 1;
    for (let left = Number(args[0]!.key); left > 0; left--) this.#addNode(options, snapshot);
  }

  #addNode(options: Partial<GroupOptions>, snapshot: Snapshot): void {
    const id = this.#nodes.length + 1;
    const engine = seededEngine(id);
    const group = engine.create({
      id,
      electionTicks,
      heartbeatTicks,
      maxInflightMessages: 0x7fffffff,
      ...options,
      hard: { term: 0, vote: 0, commit: 0 },
      snapshot,
    });
    this.#nodes.push({
      id,
      engine,
      group,
      describe: new Describer(engine),
      asyncStorage: options.asyncStorage ?? false,
      appendWork: [],
      applyWork: [],
      history: [snapshot],
    });
  }

  #raftLog({ engine, group, describe }: Node): void {
    const entries = engine.entries(group);
    if (entries.length > 0) return this.#print(describe.entries(entries));
    const { firstIndex, lastIndex } = engine.status(group);
    this.#print(`log is empty: first index=${firstIndex}, last index=${lastIndex}`);
  }

  #raftState(): void {
    for (const { id, engine, group } of this.#nodes) {
      const { role, term, lead } = engine.status(group);
      const { conf } = engine.progress(group);
      const votes = conf.voters.includes(id) || conf.outgoing.includes(id);
      this.#print(
        `${id}: ${roleNames[role]} (${votes ? 'Voter' : 'Non-Voter'}) Term:${term} Lead:${lead}\n`,
      );
    }
  }

  #processReady(node: Node): void {
    const { engine, group, asyncStorage } = node;
    const ready = engine.ready(group);
    this.#print(node.describe.ready(ready));
    if (ready === undefined) return;
    if (!asyncStorage) this.#apply(node, ready.committed);
    for (const message of ready.messages) {
      if (message.type === MessageType.storageAppend) node.appendWork.push(message);
      else if (message.type === MessageType.storageApply) node.applyWork.push(message);
      else this.#messages.push(message);
    }
    if (asyncStorage) return;
    engine.advance(group);
    if (ready.snapshot) this.#publish(node);
  }

  #apply(node: Node, entries: readonly Entry[]): void {
    const { engine, group, history } = node;
    for (const entry of entries) {
      const last = history.at(-1)!;
      let { conf } = last;
      let update = entry.data;
      if (entry.kind !== EntryKind.normal) {
        update = engine.decodeConfChange(entry).context;
        conf = engine.applyConfChange(group, entry);
      }
      const { index, term } = entry;
      history.push({ index, term, conf, data: Buffer.concat([last.data, update]) });
      this.#publish(node);
    }
  }

  /** Snapshots always carry the newest state. */
  #publish({ engine, group, history }: Node): void {
    engine.setSnapshot(group, history.at(-1)!);
  }

  #processAppend(node: Node): void {
    const work = node.appendWork.shift();
    if (work === undefined) return this.#print('no append work to perform');
    this.#work(node, work, () => {
      const responses = node.engine.storageDone(node.group, 'append', true);
      if (work.snapshot) this.#publish(node);
      return responses;
    });
  }

  #processApply(node: Node): void {
    const work = node.applyWork.shift();
    if (work === undefined) return this.#print('no apply work to perform');
    this.#work(node, work, () => {
      this.#apply(node, work.entries);
      return node.engine.storageDone(node.group, 'apply', true);
    });
  }

  #work({ describe }: Node, work: Message, run: () => Message[]): void {
    this.#print(`Processing:\n${describe.message({ ...work, responses: [] })}\nResponses:\n`);
    const responses = run();
    for (const response of responses) this.#print(`${describe.message(response)}\n`);
    this.#messages.push(...responses);
  }

  #stabilize(command: Command): void {
    const named = this.#named(command);
    const nodes = named.length > 0 ? named : this.#nodes;
    const level = command.args.find(({ key }) => key === 'log-level')?.values[0];
    const before = this.#quiet;
    if (level !== undefined) this.#quiet = level.toLowerCase() === 'none';
    try {
      while (this.#round(nodes));
    } finally {
      this.#quiet = before;
    }
  }

  #round(nodes: readonly Node[]): boolean {
    let busy = false;
    const section = (title: string, run: () => void): void => {
      this.#print(`> ${title}\n`);
      run();
      busy = true;
    };
    for (const node of nodes) {
      if (!node.engine.hasReady(node.group)) continue;
      section(`${node.id} handling Ready`, () => this.#indented(() => this.#processReady(node)));
    }
    for (const { id } of nodes) {
      if (!this.#messages.some(({ to }) => to === id)) continue;
      section(`${id} receiving messages`, () => this.#indented(() => this.#deliver(id)));
    }
    for (const node of nodes) {
      if (node.appendWork.length === 0) continue;
      section(`${node.id} processing append thread`, () => {
        while (node.appendWork.length > 0) this.#indented(() => this.#processAppend(node));
      });
    }
    for (const node of nodes) {
      if (node.applyWork.length === 0) continue;
      section(`${node.id} processing apply thread`, () => {
        while (node.applyWork.length > 0) this.#indented(() => this.#processApply(node));
      });
    }
    return busy;
  }

  #deliverCommand({ args }: Command): void {
    const typeName = args.find(({ key }) => key === 'type')?.values[0];
    let count = 0;
    for (const { key, values } of args) {
      if (key === 'type') continue;
      if (key === 'drop')
        for (const id of values) count += this.#deliver(Number(id), true, typeName);
      else count += this.#deliver(Number(key), false, typeName);
    }
    if (count === 0) this.#print('no messages\n');
  }

  #deliver(to: number, drop = false, typeName?: string): number {
    const isLocal = (m: Message): boolean => m.from === m.to || m.from > 1e9 || m.to > 1e9;
    const chosen = (m: Message): boolean =>
      m.to === to &&
      !(drop && isLocal(m)) &&
      (typeName === undefined || messageNames.get(m.type) === typeName);
    const messages = this.#messages.filter(chosen);
    this.#messages = this.#messages.filter((m) => !chosen(m));
    for (const message of messages) {
      const { describe } = this.#nodes[0]!;
      this.#print(`${drop ? 'dropped: ' : ''}${describe.message(message)}\n`);
      if (drop) continue;
      const { engine, group } = this.#node(to);
      try {
        engine.stepLocal(group, message);
      } catch (error) {
        this.#print(`${(error as Error).message}\n`);
      }
    }
    return messages.length;
  }

  #proposeConfChange({ args, input }: Command): void {
    const { engine, group } = this.#node(Number(args[0]!.key));
    const value = (key: string): string | undefined =>
      args.find((arg) => arg.key === key)?.values[0];
    const transition = { auto: 0, implicit: 1, explicit: 2 }[value('transition') ?? 'auto'];
    const changes = input
      .trim()
      .split(' ')
      .filter((word) => word !== '')
      .map((word) => ({ type: 'vrul'.indexOf(word[0]!), id: Number(word.slice(1)) }));
    const version = value('v1') === 'true' ? 1 : 2;
    engine.proposeConfChange(group, changes, transition as Transition, noBytes, version);
  }

  #sendSnapshot(from: Node, to: number): void {
    const message: Message = {
      type: MessageType.snapshot,
      from: from.id,
      to,
      term: from.engine.status(from.group).term,
      logTerm: 0,
      index: 0,
      commit: 0,
      vote: 0,
      reject: false,
      rejectHint: 0,
      context: noBytes,
      entries: [],
      snapshot: from.history.at(-1)!,
      responses: [],
      hasHardState: false,
    };
    this.#messages.push(message);
    this.#print(from.describe.message(message));
  }
}
