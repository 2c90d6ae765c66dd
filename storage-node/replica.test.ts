import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTick } from 'node:timers/promises';
import { afterAll, describe, expect, test } from 'vitest';
import type { Reply } from '../universal-row/reply.ts';
import { applyBatch } from '../engines/apply.ts';
import { assertSameContents, decodeSnapshot } from '../engines/conformance/contents.ts';
import type { Engine } from '../engines/engine.ts';
import { KvEngine } from '../engines/kv/kv-engine.ts';
import { MemoryEngine } from '../engines/memory/memory-engine.ts';
import { MemoryDisk } from '../engines/memory/testing/memory-disk.ts';
import { Random } from '../engines/memory/testing/oracle.ts';
import { commandOf, TestClock, TextReply } from './pod-fixture.ts';
import { Pod } from './pod.ts';
import { entryOpsAt } from './replicator/tick-entry.ts';
import { UnreliableCluster, UnreliableLog } from './replicator/testing/unreliable-log.ts';
import { noRules } from './table-rules.ts';

const root = mkdtempSync(join(tmpdir(), 'polyrow-replica-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let directories = 0;

const group = 5;
const tables = new Map([0, 1, 2, 3].map((table) => [table, noRules]));

interface Model {
  model: string;
  /** Opens what is in the directory. */
  create: (directory: string, disk: MemoryDisk) => Engine;
  histories: number;
}

const full = process.env['POLYROW_FULL'] !== undefined;
const models: Model[] = [
  {
    model: 'memory',
    create: (directory, disk) => new MemoryEngine({ directory, disk }),
    histories: full ? 8000 : 800,
  },
  {
    model: 'kv',
    create: (directory) => new KvEngine({ directory, cacheBytes: 20_000 }),
    histories: full ? 2000 : 200,
  },
];

/** A read or a write of one key, from when it was sent until it was answered. */
interface Operation {
  key: string;
  /** A write's value: all are different. */
  wrote: string | undefined;
  read: string | undefined;
  sentAt: number;
  answeredAt: number;
}

/** Ends ticks, and gives out the answers of each once what they saw is committed. */
class Gateway {
  readonly #pod: Pod;
  #answers: ((isCommitted: boolean) => void)[] = [];
  #isClosed = false;

  constructor(pod: Pod) {
    this.#pod = pod;
  }

  answer(then: (isCommitted: boolean) => void): void {
    if (this.#isClosed) then(false);
    else if (this.#answers.push(then) === 1) setImmediate(() => this.end());
  }

  end(): void {
    const answers = this.#answers.splice(0);
    if (this.#isClosed) return;
    const position = this.#pod.endTick();
    const settled = (outcome: string): void => {
      for (const then of answers) then(outcome === 'committed');
    };
    if (position < 0) settled('committed');
    else this.#pod.whenSettled(position, settled);
  }

  close(): void {
    this.#isClosed = true;
    for (const then of this.#answers.splice(0)) then(false);
  }
}

class Node {
  readonly id: number;
  readonly clock = new TestClock();
  engine!: Engine;
  log!: UnreliableLog;
  pod!: Pod;
  gateway!: Gateway;
  readonly #cluster: UnreliableCluster;
  readonly #model: Model;
  readonly #directory = join(root, String(directories++));
  readonly #disk = new MemoryDisk();
  readonly #reports: string[];

  constructor(id: number, cluster: UnreliableCluster, model: Model, reports: string[]) {
    this.id = id;
    this.#cluster = cluster;
    this.#model = model;
    this.#reports = reports;
  }

  async open(): Promise<void> {
    this.engine = this.#model.create(this.#directory, this.#disk);
    await this.engine.open();
    this.log = new UnreliableLog(this.#cluster, this.id, this.engine.appliedIndexOf(group));
    this.pod = new Pod({
      engine: this.engine,
      log: this.log,
      group,
      tables,
      clock: this.clock,
      rng: { next: () => 0.5 },
      maxMemoryBytes: Infinity,
      checkpointBytes: Infinity,
      report: (_level, message, fields) => {
        this.#reports.push(`${message} ${JSON.stringify(fields, errorText)}`);
      },
    });
    this.gateway = new Gateway(this.pod);
  }

  async restart(): Promise<void> {
    this.gateway.close();
    await this.pod.close();
    await this.open();
  }
}

function errorText(_key: string, value: unknown): unknown {
  return value instanceof Error ? value.stack : value;
}

class History {
  readonly random: Random;
  readonly cluster = new UnreliableCluster();
  readonly nodes: Node[];
  readonly operations: Operation[] = [];
  readonly reports: string[] = [];
  answered = 0;
  #time = 0;
  #writes = 0;
  readonly #answers = new Set<Promise<void>>();

  constructor(seed: number, model: Model) {
    this.random = new Random(seed);
    this.nodes = [1, 2, 3].map((id) => new Node(id, this.cluster, model, this.reports));
  }

  pick<T>(list: readonly T[]): T {
    return list[this.random.below(list.length)]!;
  }

  async run(steps: number): Promise<void> {
    for (const node of this.nodes) await node.open();
    for (let i = 0; i < steps; i++) {
      await this.#step();
      await nextTick();
    }
    await this.#heal();
    await this.#check();
    for (const { pod } of this.nodes) await pod.close();
    expect(this.reports).toEqual([]);
  }

  async #step(): Promise<void> {
    const { random, cluster } = this;
    const node = this.pick(this.nodes);
    const { leader } = cluster;
    const kind = random.below(100);
    if (leader === undefined && kind < 40) await node.log.lead();
    else if (kind < 50) {
      const of = random.below(5) > 0 ? this.nodes.find(({ log }) => log === leader) : node;
      this.#tick(of ?? node);
    } else if (kind < 70) leader?.commit(1 + random.below(4));
    else if (kind < 80) await node.log.follow(1 + random.below(5));
    else if (kind < 84) await leader?.loseTail(random.below(leader.pending + 1));
    else if (kind < 88) leader?.depose(random.below(leader.pending + 1));
    else if (kind < 92) {
      if (node.log !== leader) await node.log.stepDown(() => random.below(2) === 0);
    } else if (kind < 95) await node.pod.checkpoint();
    else if (kind < 97) await node.restart();
    else {
      node.clock.time += random.below(2000);
      node.pod.maintain();
    }
  }

  #tick(node: Node): void {
    for (let i = this.random.below(4); i >= 0; i--) {
      const kind = this.random.below(10);
      if (kind < 5) this.#register(node);
      else this.#other(node, kind === 9);
    }
    node.gateway.end();
  }

  #register(node: Node): void {
    const key = `r${this.random.below(3)}`;
    const wrote = this.random.below(2) === 0 ? `v${++this.#writes}.` : undefined;
    const operation = { key, wrote, read: undefined, sentAt: ++this.#time, answeredAt: Infinity };
    this.operations.push(operation);
    const line = wrote === undefined ? `get ${key}` : `put ${key} ${wrote}`;
    const reply = new TextReply();
    const done = node.pod.execute(commandOf(line, 0), reply);
    this.#whenAnswered(node, done, reply, (text) => {
      const isRefused = text.startsWith('(error)');
      if (isRefused) return;
      this.answered++;
      this.#answer(operation, text);
    });
  }

  #answer(operation: Operation, text: string): void {
    operation.answeredAt = ++this.#time;
    if (operation.wrote === undefined) operation.read = text;
  }

  #other(node: Node, isTransaction: boolean): void {
    const lines = Array.from({ length: isTransaction ? 3 : 1 }, () => this.#line());
    const commands = lines.map((line) => commandOf(line, 1 + this.random.below(3)));
    const reply = new TextReply();
    const done = isTransaction
      ? node.pod.executeAll(commands, reply, () => true)
      : node.pod.execute(commands[0]!, reply);
    this.#whenAnswered(node, done, reply, () => {});
  }

  #line(): string {
    const { random } = this;
    const key = `k${random.below(6)}`;
    const n = random.below(8);
    const text = 'x'.repeat(1 + random.below(20)) + String(n);
    return this.pick([
      `put ${key} ${text}`,
      `put ${key} ${text} ${1_000_000 + random.below(20_000)}`,
      `patch ${key} ${n} ${text}`,
      `field ${key} f${n} ${text}`,
      `field ${key} f${n} ${text}`,
      `member ${key} m${n}`,
      `unfield ${key} f${n}`,
      `unfield ${key} m${n}`,
      `score ${key} m${n} ${random.below(5)}`,
      `push ${key} HEAD ${text}`,
      `push ${key} TAIL ${text}`,
      `pop ${key} HEAD`,
      `element ${key} ${n} ${text}`,
      `insert ${key} ${n} ${text}`,
      `remove ${key} ${n} 2`,
      `drop ${key}`,
      `expire ${key} ${1_000_000 + random.below(20_000)}`,
      `rename ${key} k${n}`,
      'clear',
      'swap 1 2',
      `stumble ${key} ${text}`,
      `get ${key}`,
    ]);
  }

  /** An answer is one only if all that it saw is committed. */
  #whenAnswered(
    node: Node,
    done: Promise<Reply | void> | Reply | void,
    reply: TextReply,
    then: (text: string) => void,
  ): void {
    const { gateway } = node;
    const settle = (answer: Reply | void): Promise<void> =>
      new Promise((resolve) => {
        gateway.answer((isCommitted) => {
          if (isCommitted) then(((answer ?? reply) as TextReply).toString());
          resolve();
        });
      });
    // A pod that closes leaves its pending reads without an answer.
    const answered = done instanceof Promise ? done.then(settle, () => {}) : settle(done);
    this.#answers.add(answered);
    void answered.finally(() => this.#answers.delete(answered));
  }

  async #heal(): Promise<void> {
    const { cluster, nodes } = this;
    for (const { log } of nodes) if (log !== cluster.leader) await log.stepDown(() => false);
    if (cluster.leader === undefined) await nodes[0]!.log.lead();
    for (let quiet = 0; quiet < 3; quiet++) {
      if (this.#answers.size > 0) quiet = 0;
      cluster.leader!.commit(Infinity);
      for (const { log } of nodes) await log.follow(Infinity);
      await nextTick();
    }
  }

  async #check(): Promise<void> {
    const { committed } = this.cluster;
    const reference = new MemoryEngine();
    for (const [i, entry] of committed.entries()) {
      applyBatch(reference, entry, entryOpsAt, entry.length, i + 1, group);
    }
    const expected = await decodeSnapshot(reference.exportSnapshot());
    for (const { id, engine } of this.nodes) {
      expect(engine.appliedIndexOf(group)).toBe(committed.length);
      const found = await decodeSnapshot(engine.exportSnapshot());
      assertSameContents(found, expected, `node ${id} at entry ${committed.length}`);
    }
    this.#checkOperations(committed.map((entry) => entry.toString('latin1')).join('\n'));
  }

  /** Answered operations of a key fit into the order in which its writes were committed. */
  #checkOperations(log: string): void {
    const seen = new Map<string, { place: number; answeredAt: number }[]>();
    const answered = this.operations.filter(({ answeredAt }) => answeredAt !== Infinity);
    answered.sort((a, b) => a.sentAt - b.sentAt);
    for (const { key, wrote, read, sentAt, answeredAt } of answered) {
      const token = wrote ?? read!;
      const place = token === '(nil)' ? -1 : log.indexOf(token);
      if (token !== '(nil)') expect(place, `${token} is committed`).toBeGreaterThanOrEqual(0);
      expect(log.indexOf(token, place + 1), `${token} is there once`).toBe(-1);
      const before = seen.get(key) ?? [];
      for (const other of before) {
        if (other.answeredAt > sentAt) continue;
        if (wrote === undefined) expect(place).toBeGreaterThanOrEqual(other.place);
        else expect(place).toBeGreaterThan(other.place);
      }
      seen.set(key, [...before, { place, answeredAt }]);
    }
  }
}

describe.each(models)('replicas with the $model engine', (model) => {
  test('lose nothing acknowledged, and hold what is committed', async () => {
    const only = process.env['POLYROW_SEED'];
    const seeds = only === undefined ? [...Array(model.histories).keys()] : [Number(only)];
    let answered = 0;
    for (const seed of seeds) {
      const history = new History(seed, model);
      try {
        await history.run(80);
      } catch (error) {
        throw new Error(`seed ${seed}`, { cause: error });
      }
      answered += history.answered;
    }
    expect(answered).toBeGreaterThan(5 * seeds.length);
  }, 600_000);

  test.each(['steps down', 'loses its tail'])(
    'propose nothing of a tick that was undone before it ended: a leader that %s',
    async (what) => {
      const cluster = new UnreliableCluster();
      const nodes = [1, 2].map((id) => new Node(id, cluster, model, []));
      for (const node of nodes) await node.open();
      const [leader, follower] = nodes as [Node, Node];
      await leader.log.lead();
      const run = (line: string): string => {
        const reply = new TextReply();
        expect(leader.pod.execute(commandOf(line, 1), reply)).toBeUndefined();
        return reply.toString();
      };
      run('field k f 1');
      leader.pod.endTick();
      leader.log.commit(Infinity);
      run('put other 1');
      leader.pod.endTick();
      run('drop k');
      if (what === 'steps down') {
        leader.log.depose(0);
        await leader.log.stepDown(() => false);
        await leader.log.lead();
      } else await leader.log.loseTail(0);
      // In the same tick, on the restored state.
      run('field k g 2');
      leader.pod.endTick();
      leader.log.commit(Infinity);
      await follower.log.follow(Infinity);
      const rows = await decodeSnapshot(leader.engine.exportSnapshot());
      assertSameContents(
        await decodeSnapshot(follower.engine.exportSnapshot()),
        rows,
        'the follower',
      );
      expect(cluster.committed).toHaveLength(2);
      for (const { pod } of nodes) await pod.close();
    },
  );
});
