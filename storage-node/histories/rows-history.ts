// One history of replicated rows under faults: gateways append to lists and read them, nodes are killed, stopped and
// cut off. What was answered must agree with the lists at the end, and all replicas with each other.

import {
  assertSameContents,
  decodeSnapshot,
  type EngineContents,
} from '../../engines/conformance/contents.ts';
import { Action, type Command } from '../../universal-row/command.ts';
import { mostSlots, once } from '../../universal-row/once.ts';
import { copyValue } from '../../universal-row/protocol/values.ts';
import { WireReader } from '../../universal-row/protocol/wire.ts';
import { Shape } from '../../universal-row/rows.ts';
import { commandOf, TextReply } from '../pod-fixture.ts';
import { EnginePool } from '../replicator/simulation/engine-pool.ts';
import { Network } from '../replicator/simulation/network.ts';
import { Random, Timeline } from '../replicator/simulation/timeline.ts';
import { nodeOfReplica, replicaId } from '../replicator/raft/replica-id.ts';
import { type Answer, group, RowsNode, type RowsWorld } from './rows-node.ts';

export interface RowsResult {
  readonly seed: number;
  readonly failure: string | undefined;
  readonly acknowledged: number;
  readonly unknown: number;
  readonly reads: number;
  readonly kills: number;
  readonly pauses: number;
}

/** An append or a read. Times are counted, not measured: each call and each answer has its own. */
interface Done {
  readonly key: string;
  readonly value: string | undefined;
  readonly call: number;
  readonly answer: number;
  /** What was answered: the length, or the elements. Undefined where the outcome is unknown. */
  readonly result: string | undefined;
  readonly told: string;
}

const nodeNumbers = [1, 2, 3];
const clientsPerNode = 3;
/** A gateway gives up a silent node after so long, and a write after `patienceMs`. */
const silentMs = 1700;
const patienceMs = 4000;
const healedMs = 60_000;
const mostNameBytes = 12;
const mostTries = 50;

class RowsHistory {
  readonly #random: Random;
  readonly #timeline = new Timeline();
  readonly #engines = new EnginePool();
  readonly #network: Network;
  readonly #nodes: RowsNode[];
  readonly #done: Done[] = [];
  /** Elements take up to so many bytes more: a state of several parts. */
  readonly #payload: number;
  readonly #faultyMs: number;
  /** Probabilities by 100 ms. */
  readonly #rates: { kill: number; pause: number; cut: number; transfer: number; slow: number };
  /** Ways between gateways and nodes that are cut: `from to`. */
  readonly #cut = new Set<string>();
  #failure: Error | undefined;
  #isOver = false;
  #time = 0;
  #value = 0;
  #sequence = 0;
  #kills = 0;
  #pauses = 0;

  constructor(seed: number) {
    this.#random = new Random(seed);
    const random = this.#random;
    this.#network = new Network(this.#timeline, new Random(random.below(2 ** 32)), (_, to, bytes) =>
      this.#node(to).receive(bytes),
    );
    this.#network.faults = {
      ...{ loss: 0, duplicates: 0, isUnordered: false },
      ...{ delay: 0.5 + random.next() * 10, late: random.chance(0.3) ? 0.05 : 0, lateDelay: 300 },
    };
    const entries = random.pick([6, 20, 60, 200]);
    const world: RowsWorld = {
      ...{ timeline: this.#timeline, network: this.#network, engines: this.#engines },
      random: new Random(random.below(2 ** 32)),
      nodes: nodeNumbers,
      limits: { checkpointEntries: entries, keptEntries: Math.floor(entries / 4) },
      breach: (error) => void (this.#failure ??= error),
    };
    this.#nodes = nodeNumbers.map((number) => new RowsNode(world, number));
    this.#payload = random.chance(0.3) ? 20_000 : 0;
    this.#faultyMs = 4000 + random.next() * 16_000;
    const rate = (most: number): number => (random.chance(0.7) ? random.next() * most : 0);
    this.#rates = {
      ...{ kill: rate(0.12), pause: rate(0.12), cut: rate(0.1) },
      ...{ transfer: rate(0.05), slow: rate(0.05) },
    };
  }

  #node(number: number): RowsNode {
    return this.#nodes[number - 1]!;
  }

  async run(seed: number): Promise<RowsResult> {
    const { setImmediate } = globalThis;
    const timeline = this.#timeline;
    const later = new Random(seed ^ 0x1a7e);
    // As on a real machine other things happen in between, as between the parts of a snapshot.
    const own = <A extends unknown[]>(act: (...args: A) => void, ...args: A): void =>
      timeline.after(later.next() * 0.3, () => act(...args));
    globalThis.setImmediate = own as typeof setImmediate;
    try {
      await this.#run();
    } catch (error) {
      this.#failure ??= error as Error;
    } finally {
      globalThis.setImmediate = setImmediate;
    }
    this.#engines.release();
    const pushes = this.#done.filter(({ value }) => value !== undefined);
    return {
      seed,
      failure: this.#failure && (this.#failure.stack ?? this.#failure.message),
      acknowledged: pushes.filter(({ result }) => result !== undefined).length,
      unknown: pushes.filter(({ result }) => result === undefined).length,
      reads: this.#done.length - pushes.length,
      kills: this.#kills,
      pauses: this.#pauses,
    };
  }

  async #run(): Promise<void> {
    for (const node of this.#nodes) this.#start(node);
    const clients = nodeNumbers.flatMap((number) =>
      Array.from({ length: clientsPerNode }, (_, slot) => this.#client(number, slot)),
    );
    let running = clients.length;
    for (const client of clients) {
      client.then(
        () => running--,
        (error: unknown) => (this.#failure ??= error as Error),
      );
    }
    this.#every(100, () => this.#fault());
    await this.#runFor(this.#faultyMs);
    this.#isOver = true;
    this.#heal();
    for (const node of this.#nodes) {
      node.resume();
      this.#start(node);
    }
    await this.#runFor(healedMs, () => running === 0);
    if (this.#failure === undefined && running > 0) throw new Error('clients do not end');
    // The last ones may have ended without a leader.
    const isLevel = (): boolean => {
      const indexes = this.#nodes.map(({ life }) => life?.engine.appliedIndexOf(group) ?? -1);
      const isSame = indexes.every((one) => one === indexes[0] && one > 0);
      const isSettled = this.#nodes.every(
        ({ life }) => life?.log.status().replication!.pendingPositions === 0,
      );
      return isSame && isSettled && this.#leader() !== undefined;
    };
    await this.#runFor(healedMs, isLevel);
    if (this.#failure !== undefined) return;
    if (!isLevel()) throw new Error('the replicas do not become level');
    await this.#check();
  }

  /** All rows of each node, as of the same entry: leaders drop what expires meanwhile. */
  async #contents(): Promise<EngineContents[]> {
    for (let tries = 0; tries < mostTries && this.#failure === undefined; tries++) {
      const found: { index: number; rows: EngineContents }[] = [];
      for (const { life } of this.#nodes) {
        const read = async (): Promise<void> => {
          const { index, batches } = await life!.pod.committedRows(() => true);
          found.push({ index, rows: await decodeSnapshot(batches) });
        };
        read().catch((error: unknown) => (this.#failure ??= error as Error));
      }
      await this.#runFor(healedMs, () => found.length === this.#nodes.length);
      if (this.#failure !== undefined) break;
      if (found.length < this.#nodes.length) throw new Error('the rows of a node cannot be read');
      if (found.every(({ index }) => index === found[0]!.index)) {
        return found.map(({ rows }) => rows);
      }
    }
    throw this.#failure ?? new Error('the replicas are not at one entry');
  }

  async #check(): Promise<void> {
    const contents = await this.#contents();
    for (const one of contents.slice(1)) assertSameContents(one, contents[0]!, 'rows of a replica');
    const keys = new Set(this.#done.map(({ key }) => key));
    for (const key of keys) {
      const list = (contents[0]!.get(`0/${key}`)?.items ?? []) as string[];
      this.#checkList(key, list.map(named));
    }
  }

  #checkList(key: string, list: readonly string[]): void {
    const fail = (what: string, one?: Done): never => {
      throw new Error(`${key}: ${what} ${JSON.stringify(one)} of ${list.join(' ').slice(-400)}`);
    };
    if (new Set(list).size !== list.length) fail('something is there twice');
    const known = this.#done.filter((one) => one.key === key);
    for (const one of known) {
      const { value, result } = one;
      if (value === undefined) {
        const read = result === '' ? [] : result!.split(',');
        if (read.some((element, i) => element !== list[i])) fail('not what was read', one);
      } else if (result !== undefined && list[Number(result) - 1] !== value) {
        fail('not where it was appended', one);
      } else if (one.told === 'notRun' && list.includes(value)) fail('was not run', one);
    }
    // What was answered before a call is before what that did, or saw.
    const lengthOf = ({ value, result }: Done): number =>
      value === undefined ? (result === '' ? 0 : result!.split(',').length) : Number(result);
    const answered = known
      .filter(({ result }) => result !== undefined)
      .sort((a, b) => a.answer - b.answer);
    for (const one of answered) {
      for (const before of answered) {
        if (before.answer > one.call) break;
        if (lengthOf(before) > lengthOf(one)) {
          fail(`after ${JSON.stringify(before)}`, one);
        }
      }
    }
  }

  async #runFor(ms: number, isDone: () => boolean = () => false): Promise<void> {
    await this.#timeline.runUntil(
      this.#timeline.now + ms,
      () => this.#failure !== undefined || isDone(),
    );
  }

  #every(ms: number, act: () => void): void {
    this.#timeline.after(this.#random.next() * ms * 2, () => {
      if (this.#isOver || this.#failure !== undefined) return;
      act();
      this.#every(ms, act);
    });
  }

  // ---- faults

  #start(node: RowsNode): void {
    node.start().catch((error: unknown) => (this.#failure ??= error as Error));
  }

  #leader(): RowsNode | undefined {
    return this.#nodes.find(({ life }) => life?.pod.role === 'leader');
  }

  #kill(node: RowsNode, downMs: number): void {
    if (node.life === undefined) return;
    this.#kills++;
    node.kill();
    this.#timeline.after(this.#random.next() * downMs, () => this.#start(node));
  }

  #fault(): void {
    const random = this.#random;
    const { kill, pause, cut, transfer, slow } = this.#rates;
    const some = (): RowsNode =>
      random.chance(0.5) ? (this.#leader() ?? random.pick(this.#nodes)) : random.pick(this.#nodes);
    if (random.chance(kill)) {
      const down = random.pick([30, 800, 4000]);
      const count = random.pick([1, 1, 2, 3]);
      const first = some();
      const victims = [first, ...this.#nodes.filter((one) => one !== first)].slice(0, count);
      for (const node of victims) this.#kill(node, down);
    }
    if (random.chance(pause)) {
      this.#pauses++;
      some().pause(random.next() * random.pick([400, 3000, 6000]));
    }
    if (random.chance(cut)) this.#cutOff(some());
    if (random.chance(transfer)) {
      this.#leader()?.life!.log.transfer(replicaId(random.pick(nodeNumbers)));
    }
    if (random.chance(slow)) {
      this.#network.faults.delay = 30 + random.next() * 300;
      this.#timeline.after(random.next() * 1500, () => (this.#network.faults.delay = 3));
    }
  }

  #cutOff(node: RowsNode): void {
    const random = this.#random;
    const isOneWay = random.chance(0.3);
    const hears = random.chance(0.5);
    for (const other of nodeNumbers) {
      if (other === node.number || random.chance(0.2)) continue;
      if (!isOneWay || hears) this.#cutLink(node.number, other);
      if (!isOneWay || !hears) this.#cutLink(other, node.number);
    }
    this.#timeline.after(200 + random.next() * 4000, () => this.#heal());
  }

  #cutLink(from: number, to: number): void {
    this.#network.cut(from, to);
    this.#cut.add(`${from} ${to}`);
  }

  #heal(): void {
    this.#network.heal();
    this.#cut.clear();
    if (this.#isOver) this.#network.faults.delay = 2;
  }

  // ---- clients

  async #client(number: number, slot: number): Promise<void> {
    const node = this.#node(number);
    const random = new Random(this.#random.below(2 ** 32));
    while (!this.#isOver) {
      await this.#timeline.sleep(random.next() * 60);
      if (node.life === undefined || node.isPaused) continue;
      const key = `list${Math.floor(this.#value / 60)}`;
      const { lives } = node;
      const isHere = (): boolean => node.life !== undefined && node.lives === lives;
      const draw = random.next();
      if (draw < 0.35) await this.#read(node, key, isHere, random);
      else if (draw < 0.8) await this.#append(node, slot, key, isHere, random);
      else await this.#ask(node, this.#target(node, random), this.#otherWrite(random), isHere);
    }
  }

  async #read(node: RowsNode, key: string, isHere: () => boolean, random: Random): Promise<void> {
    const call = ++this.#time;
    for (let tries = 0; tries < 3 && isHere(); tries++) {
      const answer = await this.#ask(node, this.#target(node, random), readList(key), isHere);
      if (answer.kind === 'done') {
        const result = textOf(answer.values);
        if (result.startsWith('(error)')) return;
        const done = { key, value: undefined, call, answer: ++this.#time, result, told: 'done' };
        this.#done.push(done);
        return;
      }
      await this.#timeline.sleep(random.next() * 60);
    }
  }

  /** As a gateway does (group-executor.ts): a write that may have been done is sent again with its number. */
  async #append(
    node: RowsNode,
    slot: number,
    key: string,
    isHere: () => boolean,
    random: Random,
  ): Promise<void> {
    const value = `v${++this.#value}`;
    const line = `append ${key} ${value}${'x'.repeat(random.below(1 + this.#payload))}`;
    const write = {
      ...{ node: node.number, incarnation: node.lives, first: 0 },
      number: ++this.#sequence * mostSlots + slot,
    };
    const call = ++this.#time;
    const deadline = this.#timeline.now + patienceMs;
    let told = 'notRun';
    while (this.#timeline.now < deadline && isHere()) {
      const target = this.#target(node, random);
      const command = append(line);
      const isNumbered = target !== node || told === 'unknown';
      if (isNumbered) command.transform = once(command.transform, write);
      const answer = await this.#ask(node, target, command, isHere);
      if (answer.kind === 'done') {
        const result = textOf(answer.values);
        const isError = result.startsWith('(error)');
        this.#done.push({
          ...{ key, value, call, answer: ++this.#time },
          ...{ result: isError ? undefined : result, told: isError ? result : 'done' },
        });
        return;
      }
      if (answer.kind === 'unknown') told = 'unknown';
      if (answer.kind === 'unknown' && !isNumbered) break;
      await this.#timeline.sleep(random.next() * 60);
    }
    if (!isHere()) told = 'unknown';
    this.#done.push({ key, value, call, answer: ++this.#time, result: undefined, told });
  }

  /** A write that is sent once. Nothing is expected of it but that all replicas have the same of it. */
  #otherWrite(random: Random): Command {
    const key = `k${random.below(30)}`;
    const n = random.below(6);
    const filled = 'x'.repeat(1 + random.below(random.chance(0.1) ? 60_000 : 400));
    const line = random.pick([
      ...[`put ${key} ${filled}`, `put ${key} ${filled}`, `field ${key} f${n} ${filled}`],
      ...[`unfield ${key} f${n}`, `score ${key} m${n} ${n}`, `push ${key} HEAD e${n}`],
      ...[`pop ${key} TAIL`, `rename ${key} k${n}`, `drop ${key}`, `drop ${key}`],
      `expire ${key} ${1_000_000 + Math.ceil(this.#timeline.now) + random.below(900)}`,
      random.chance(0.1) ? 'clear' : 'swap 1 2',
    ]);
    return commandOf(line, 1 + random.below(2));
  }

  /** The leader, as far as this node knows; any node otherwise. */
  #target(node: RowsNode, random: Random): RowsNode {
    const leader = node.life?.pod.leader ?? 0;
    if (node.life?.pod.role === 'leader' || node.life?.pod.isPaused === true) return node;
    if (leader !== 0 && random.chance(0.8)) return this.#node(nodeOfReplica(leader));
    return random.pick(this.#nodes);
  }

  #ask(from: RowsNode, to: RowsNode, command: Command, isHere: () => boolean): Promise<Answer> {
    const { faults } = this.#network;
    const way = (a: RowsNode, b: RowsNode, then: () => void): void => {
      if (a === b) then();
      else if (!this.#cut.has(`${a.number} ${b.number}`)) {
        this.#timeline.after(this.#random.next() * faults.delay, then);
      }
    };
    return new Promise((resolve) => {
      let isOver = false;
      const end = (answer: Answer): void => {
        if (isOver) return;
        isOver = true;
        resolve(answer);
      };
      way(from, to, () =>
        to.request(command, (answer) =>
          way(to, from, () => {
            // A process that stands still hears of it later.
            const hear = (): void => {
              if (from.isPaused) this.#timeline.after(10, hear);
              else end(isHere() ? answer : { kind: 'unknown' });
            };
            hear();
          }),
        ),
      );
      if (from !== to) this.#timeline.after(silentMs, () => end({ kind: 'unknown' }));
    });
  }
}

/** The beginning of an element: what follows only takes room. */
function named(element: string): string {
  return element.replace(/x.*/, '');
}

/** Appends a value and answers the length. */
function append(line: string): Command {
  const command = commandOf(line.replace('append', 'push'), 0);
  return {
    ...command,
    action: Action.update,
    transform: (rows, args, reply) => {
      const [key, value] = [args.bytes(1), args.bytes(2)];
      let row = rows.find(key, 0, key.length);
      if (row === 0) row = rows.create(key, 0, key.length, Shape.array);
      rows.push(row, false, value, 0, value.length);
      reply.integer(rows.count(row));
    },
  };
}

function readList(key: string): Command {
  const command = commandOf(`get ${key}`, 0);
  return {
    ...command,
    action: Action.fetch,
    transform: (rows, args, reply) => {
      const bytes = args.bytes(1);
      const row = rows.find(bytes, 0, bytes.length);
      const found: string[] = [];
      if (row !== 0) {
        rows.eachElement(row, 0, rows.count(row), false, (b, s, n) => {
          found.push(named(b.toString('latin1', s, Math.min(s + n, s + mostNameBytes))));
        });
      }
      reply.text(found.join(','));
    },
  };
}

function textOf(values: Buffer): string {
  const reply = new TextReply();
  copyValue(new WireReader(values), reply);
  return reply.toString();
}

/** The same seed, the same history. */
export function runRowsHistory(seed: number): Promise<RowsResult> {
  return new RowsHistory(seed).run(seed);
}
