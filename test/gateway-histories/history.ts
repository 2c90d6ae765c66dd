// One history of a cluster's gateways under faults: Redis clients append to lists, some by transactions with watched keys or in
// pipelines, and read them; nodes are killed, stopped and cut off. What was answered must agree with the lists at the end, and all replicas
// with each other.

import {
  assertSameContents,
  decodeSnapshot,
  type EngineContents,
} from '../../engines/conformance/contents.ts';
import { replicaId } from '../../storage-node/replicator/raft/replica-id.ts';
import { EnginePool } from '../../storage-node/replicator/simulation/engine-pool.ts';
import { Network } from '../../storage-node/replicator/simulation/network.ts';
import { Random } from '../../storage-node/replicator/simulation/timeline.ts';
import type { RespValue } from '../support/resp-value.ts';
import { GatewayNode, group, type NodesWorld } from './node.ts';
import { OwnedTimeline } from './owned-timeline.ts';
import type { FrontClient } from './redis-front.ts';
import { Wires } from './wires.ts';

export interface GatewayResult {
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
  /** What was answered: the length, or the elements. Undefined where there is nothing of it. */
  readonly result: string | undefined;
  readonly told: string;
}

const nodeNumbers = [1, 2, 3];
const clientsPerNode = 3;
const healedMs = 60_000;
const mostTries = 50;
const pipelined = ['read', 'append', 'append', 'other'] as const;
const select0 = ['select', '0'];

class GatewayHistory {
  readonly #random: Random;
  readonly #timeline = new OwnedTimeline();
  readonly #engines = new EnginePool();
  readonly #network: Network;
  readonly #nodes: GatewayNode[];
  readonly #wires: Wires;
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
    const wires = (this.#wires = new Wires({
      timeline: this.#timeline,
      random: new Random(random.below(2 ** 32)),
      hostOf: (node) => this.#node(node).host,
      isCut: (from, to) => this.#cut.has(`${from} ${to}`),
      delay: () => this.#network.faults.delay,
    }));
    const world: NodesWorld = {
      seed,
      ...{ timeline: this.#timeline, network: this.#network, wires, engines: this.#engines },
      random: new Random(random.below(2 ** 32)),
      nodes: nodeNumbers,
      limits: { checkpointEntries: entries, keptEntries: Math.floor(entries / 4) },
      breach: (error) => void (this.#failure ??= error),
    };
    this.#nodes = nodeNumbers.map((number) => new GatewayNode(world, number));
    this.#payload = random.chance(0.3) ? 3000 : 0;
    this.#faultyMs = 4000 + random.next() * 16_000;
    const rate = (most: number): number => (random.chance(0.7) ? random.next() * most : 0);
    this.#rates = {
      ...{ kill: rate(0.12), pause: rate(0.12), cut: rate(0.1) },
      ...{ transfer: rate(0.05), slow: rate(0.05) },
    };
  }

  #node(number: number): GatewayNode {
    return this.#nodes[number - 1]!;
  }

  async run(seed: number): Promise<GatewayResult> {
    const later = new Random(seed ^ 0x1a7e);
    try {
      await this.#timeline.insteadOfTimers(later, async () => {
        try {
          await this.#run();
        } finally {
          this.#wires.close();
        }
      });
    } catch (error) {
      this.#failure ??= error as Error;
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
    for (const node of this.#nodes) node.start();
    const clients = nodeNumbers.flatMap((number) =>
      Array.from({ length: clientsPerNode }, () => this.#client(number)),
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
      node.pause(0);
      node.start();
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

  #leader(): GatewayNode | undefined {
    return this.#nodes.find(({ life }) => life?.pod.role === 'leader');
  }

  #kill(node: GatewayNode, downMs: number): void {
    if (node.life === undefined) return;
    this.#kills++;
    node.kill();
    this.#timeline.after(this.#random.next() * downMs, () => node.start());
  }

  #fault(): void {
    const random = this.#random;
    const { kill, pause, cut, transfer, slow } = this.#rates;
    const some = (): GatewayNode =>
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
      const { log, owner } = this.#leader()?.life ?? {};
      if (log !== undefined) {
        this.#timeline.as(owner, () => log.transfer(replicaId(random.pick(nodeNumbers))));
      }
    }
    if (random.chance(slow)) {
      this.#network.faults.delay = 30 + random.next() * 300;
      this.#timeline.after(random.next() * 1500, () => (this.#network.faults.delay = 3));
    }
  }

  #cutOff(node: GatewayNode): void {
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

  async #client(number: number): Promise<void> {
    const node = this.#node(number);
    const random = new Random(this.#random.below(2 ** 32));
    let client: FrontClient | undefined;
    while (!this.#isOver) {
      await this.#timeline.sleep(random.next() * 60);
      if (client === undefined || client.isGone) client = node.connect();
      if (client === undefined) continue;
      const key = `list${Math.floor(this.#value / 60)}`;
      const draw = random.next();
      if (draw < 0.2) await this.#pipeline(client, ['read'], key, random);
      else if (draw < 0.4) await this.#pipeline(client, ['append'], key, random);
      else if (draw < 0.65) {
        const most = 1 + random.below(6);
        const steps = Array.from({ length: most }, () => random.pick(pipelined));
        await this.#pipeline(client, steps, key, random);
      } else if (draw < 0.85) await this.#appendWatched(client, key, random);
      else await this.#pipeline(client, ['other'], key, random);
    }
  }

  /** Sends several commands at once. */
  async #pipeline(
    client: FrontClient,
    steps: readonly (typeof pipelined)[number][],
    key: string,
    random: Random,
  ): Promise<void> {
    const sent = steps.map((step) => {
      if (step === 'read') return { step, value: undefined, words: ['lrange', key, '0', '-1'] };
      if (step === 'other') return { step, value: undefined, words: this.#otherWrite(random) };
      const { value, element } = this.#newElement(random);
      return { step, value, words: ['rpush', key, element] };
    });
    const call = ++this.#time;
    const commands = sent.flatMap(({ step, words }) => {
      return step === 'other' ? [['select', random.pick(['1', '2'])], words, select0] : [words];
    });
    const answers = await client.ask(...commands);
    let at = 0;
    let [appended, seen] = [0, 0];
    for (const { step, value } of sent) {
      if (step === 'other') {
        at += 3;
        continue;
      }
      const answer = answers[at++];
      const done =
        value === undefined
          ? this.#noteRead(key, call, answer)
          : this.#noteAppend(key, value, call, answer);
      if (done?.result === undefined) continue;
      // They run in their order. A read that is sent to the next leader together with writes that were done sees these.
      const length = lengthOf(done);
      if (length < (value === undefined ? seen : appended)) {
        throw new Error(`${key}: overtaken ${JSON.stringify(done)}`);
      }
      seen = Math.max(seen, length);
      if (value !== undefined) appended = length;
    }
  }

  #noteRead(key: string, call: number, answer: RespValue | undefined): Done | undefined {
    if (answer?.type !== '*') return undefined;
    const result = answer.items.map((item) => named(textOf(item))).join();
    return this.#note({ key, value: undefined, call, answer: 0, result, told: 'done' });
  }

  #note(done: Done): Done {
    const noted = { ...done, answer: ++this.#time };
    this.#done.push(noted);
    return noted;
  }

  #newElement(random: Random): { value: string; element: string } {
    const value = `v${++this.#value}`;
    return { value, element: `${value}${'x'.repeat(random.below(1 + this.#payload))}` };
  }

  /** WATCH, LRANGE, MULTI, RPUSH, EXEC: it is appended behind what was read, or not at all. */
  async #appendWatched(client: FrontClient, key: string, random: Random): Promise<void> {
    const [watched] = await client.ask(['watch', key]);
    if (watched?.type !== '+') return;
    const asked = ++this.#time;
    const [read] = await client.ask(['lrange', key, '0', '-1']);
    const before = this.#noteRead(key, asked, read);
    if (before === undefined) {
      await client.ask(['unwatch']);
      return;
    }
    if (random.chance(0.3)) await this.#timeline.sleep(random.next() * 300);
    const { value, element } = this.#newElement(random);
    const call = ++this.#time;
    const answers = await client.ask(['multi'], ['rpush', key, element], ['exec']);
    const answer = answers[2];
    const length = answer?.type === '*' ? answer.items[0] : answer;
    const done = this.#noteAppend(key, value, call, length);
    if (done.told === 'done' && lengthOf(done) !== lengthOf(before) + 1) {
      throw new Error(
        `${key}: a transaction ran though its key had changed: ${JSON.stringify(done)}`,
      );
    }
  }

  #noteAppend(key: string, value: string, call: number, answer: RespValue | undefined): Done {
    const isNothing = answer?.type === 'nil array' || answer?.type === 'nil';
    const isRefused = answer?.type === '-' && /^(CLUSTERDOWN|EXECABORT)/.test(answer.text);
    const told = isNothing || isRefused ? 'notRun' : answer?.type === ':' ? 'done' : 'unknown';
    const result = answer?.type === ':' ? answer.text : undefined;
    return this.#note({ key, value, call, answer: 0, result, told });
  }

  /** A write that is sent once. Nothing is expected of it but that all replicas have the same of it. */
  #otherWrite(random: Random): string[] {
    const key = `k${random.below(30)}`;
    const n = random.below(6);
    const filled = 'x'.repeat(1 + random.below(random.chance(0.1) ? 60_000 : 400));
    const line = random.pick([
      ...[`set ${key} ${filled}`, `set ${key} ${filled}`, `hset ${key} f${n} ${filled}`],
      ...[`hdel ${key} f${n}`, `zadd ${key} ${n} m${n}`, `lpush ${key} e${n}`],
      ...[`rpop ${key}`, `rename ${key} k${n}`, `del ${key}`, `del ${key}`, `incr n${n}`],
      `pexpire ${key} ${random.below(900)}`,
      random.chance(0.1) ? 'flushdb' : 'swapdb 1 2',
    ]);
    return line.split(' ');
  }
}

/** The beginning of an element: what follows only takes room. */
function named(element: string): string {
  return element.replace(/x.*/, '');
}

function textOf(value: RespValue): string {
  return 'text' in value ? value.text : '';
}

/** Elements that the list had, as was answered. */
function lengthOf({ value, result }: Done): number {
  return value === undefined ? (result === '' ? 0 : result!.split(',').length) : Number(result);
}

/** The same seed, the same history. */
export function runGatewayHistory(seed: number): Promise<GatewayResult> {
  return new GatewayHistory(seed).run(seed);
}
