// Pods of time series over logs that delay commits, lose tails and change roles at random, beside an engine that applies
// what is committed.

import { setImmediate as nextTick } from 'node:timers/promises';
import { expect, test } from 'vitest';
import {
  type CatalogChange,
  maxTime,
  minTime,
  NotLeaderError,
  OutcomeUnknownError,
  TooLargeError,
  UnavailableError,
  type WriteOutcome,
} from '../contracts/series-store.ts';
import { MemoryDisk } from '../engines/memory/testing/memory-disk.ts';
import { Random } from '../engines/memory/testing/oracle.ts';
import { batchOf, TestSeriesCache } from '../engines/tsm/testing/point-batches.ts';
import type { FieldValue, TestPoint } from '../engines/tsm/testing/point-batches.ts';
import { engineText } from '../engines/tsm/testing/engine-text.ts';
import { readAll } from '../engines/tsm/testing/read-points.ts';
import { TsmEngine } from '../engines/tsm/tsm-engine.ts';
import type { PortableSeriesEngine } from '../engines/series-engine.ts';
import type { BatchIdentity } from '../universal-row/series/batch-identity.ts';
import { inOneGo, type Slices, whenFinished } from '../universal-row/slices.ts';
import { FaultyDisk } from './disk/faulty-disk.ts';
import { TestClock } from './pod-fixture.ts';
import { RaftHost } from './replicator/raft/raft-host.ts';
import { replicaId } from './replicator/raft/replica-id.ts';
import { Random as SeededRandom } from './replicator/simulation/timeline.ts';
import { UnreliableCluster, UnreliableLog } from './replicator/testing/unreliable-log.ts';
import { entryOpsAt } from './replicator/tick-entry.ts';
import { SeriesPod } from './series-pod.ts';
import { chunksOf } from './series-snapshot.ts';
import { openSeriesReplica } from './series-replica-host.ts';
import { systemClock } from '../universal-row/environment.ts';
import { until } from '../test/support/until.ts';

const histories = process.env['POLYROW_FULL'] === undefined ? 300 : 3000;
const week = 7n * 86_400n * 1_000_000_000n;
const fields = ['a', 'b', 'v'];
const contentOf = (engine: PortableSeriesEngine): string => engineText(engine, fields);

class Node {
  readonly id: number;
  readonly clock = new TestClock();
  engine!: TsmEngine;
  log!: UnreliableLog;
  pod!: SeriesPod;
  /** Begun anew now and then, as a gateway does. */
  caches = [new TestSeriesCache(), new TestSeriesCache()];
  readonly #cluster: UnreliableCluster;
  readonly #disk = new MemoryDisk();
  readonly #reports: string[];

  constructor(id: number, cluster: UnreliableCluster, reports: string[]) {
    this.id = id;
    this.#cluster = cluster;
    this.#reports = reports;
  }

  async open(): Promise<void> {
    const engine = new TsmEngine({
      directory: 'data',
      disk: this.#disk,
      clock: this.clock,
      limits: { seriesPerDatabase: 40 },
    });
    this.engine = engine;
    await engine.open();
    this.log = new UnreliableLog(this.#cluster, this.id, engine.appliedIndex);
    this.pod = new SeriesPod({
      engine,
      log: this.log,
      checkpointBytes: 1 << 30,
      retentionIntervalMs: 1 << 30,
      clock: this.clock,
      report: (level, message, more) => {
        if (level !== 'info') this.#reports.push(`${message} ${JSON.stringify(more)}`);
      },
    });
  }

  async restart(): Promise<void> {
    await this.pod.close();
    await this.open();
  }
}

class History {
  readonly random: Random;
  readonly cluster = new UnreliableCluster();
  readonly reports: string[] = [];
  readonly nodes: Node[];
  /** Points of database `kept` that were acknowledged. */
  readonly acknowledged: string[] = [];
  readonly errors = new Set<string>();
  #next = 0;
  readonly #pending = new Set<Promise<void>>();

  constructor(seed: number) {
    this.random = new Random(seed);
    this.nodes = [1, 2, 3].map((id) => new Node(id, this.cluster, this.reports));
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
    else if (kind < 60) {
      const of = random.below(5) > 0 ? this.nodes.find(({ log }) => log === leader) : node;
      for (let left = random.below(4); left >= 0; left--) this.#act(of ?? node);
    } else if (kind < 75) leader?.commit(1 + random.below(3));
    else if (kind < 83) await node.log.follow(1 + random.below(5));
    else if (kind < 87) await leader?.loseTail(random.below(leader.pending + 1));
    else if (kind < 91) leader?.depose(random.below(leader.pending + 1));
    else if (kind < 95) {
      if (node.log !== leader) await node.log.stepDown(() => random.below(2) === 0);
    } else if (kind < 97) await node.pod.checkpoint();
    else if (kind < 98) await node.restart();
    else node.caches[random.below(2)] = new TestSeriesCache();
  }

  /** Something that changes the pod; whether it is done is told some steps later. */
  #act(node: Node): void {
    const { random } = this;
    const kind = random.below(20);
    const { pod } = node;
    if (kind < 10) this.#write(node, 'db');
    else if (kind < 14) this.#write(node, 'kept');
    else if (kind < 18) this.#follow(Promise.resolve().then(() => pod.change(this.#change())));
    else {
      const filter = { kind: 'equal', tag: 't', value: String(random.below(4)) } as const;
      const from = BigInt(random.below(4)) * week;
      const selection = { database: 'db', filter: random.below(2) === 0 ? filter : undefined };
      this.#follow(
        whenFinished(
          kind === 18
            ? pod.deletePoints({ ...selection, from, to: from + week })
            : pod.dropSeries({ ...selection, measurement: `m${random.below(3)}` }),
        ),
      );
    }
  }

  #write(node: Node, database: string): void {
    const { random } = this;
    const points = Array.from({ length: 1 + random.below(3) }, () => this.#point(database));
    const batch = batchOf(this.pick(node.caches), points);
    const policy = database === 'db' && random.below(6) === 0 ? 'other' : '';
    const write = Promise.resolve().then(() => node.pod.write(database, policy, batch));
    this.#follow(
      write.then((outcome) => {
        if (database !== 'kept') return;
        expect(outcome).toMatchObject({ written: points.length, dropped: 0 });
        this.acknowledged.push(...points.map(({ time }) => String(time)));
      }),
    );
  }

  #point(database: string): TestPoint {
    const { random } = this;
    if (database === 'kept') {
      const n = ++this.#next;
      const series = `k,s=${n % 5}`;
      return { series, fields: { v: n }, time: BigInt(n) + BigInt(n % 3) * week };
    }
    const series = `m${random.below(3)},t=${random.below(4)},u=${random.below(6)}`;
    const value: FieldValue = random.below(4) === 0 ? 'text' : random.below(100);
    const time = BigInt(random.below(4)) * week + BigInt(random.below(50));
    return { series, fields: { [this.pick(fields)]: value }, time };
  }

  #change(): CatalogChange {
    const { random } = this;
    const database = random.below(3) === 0 ? 'kept' : 'db';
    const policy = { duration: 0n, shardGroupDuration: week * BigInt(1 + random.below(2)) };
    return this.pick<CatalogChange>([
      { kind: 'createDatabase', database },
      { kind: 'createDatabase', database },
      { kind: 'createRetentionPolicy', database: 'db', name: 'other', policy },
      { kind: 'alterRetentionPolicy', database: 'db', name: 'other', policy },
      { kind: 'dropRetentionPolicy', database: 'db', name: 'other' },
      { kind: 'dropDatabase', database: 'db' },
    ]);
  }

  #follow(done: Promise<void>): void {
    const followed = done.catch((error: Error) => {
      if (error.name === 'AssertionError') this.reports.push(error.message);
      else if (error.name !== 'SeriesError') this.reports.push(String(error.stack));
      else this.errors.add(error instanceof UnavailableError ? error.message : 'refused');
    });
    this.#pending.add(followed);
    void followed.finally(() => this.#pending.delete(followed));
  }

  async #heal(): Promise<void> {
    const { cluster, nodes } = this;
    for (const { log } of nodes) if (log !== cluster.leader) await log.stepDown(() => false);
    if (cluster.leader === undefined) await nodes[0]!.log.lead();
    for (let quiet = 0; quiet < 3; quiet++) {
      if (this.#pending.size > 0) quiet = 0;
      cluster.leader!.commit(Infinity);
      for (const { log } of nodes) await log.follow(Infinity);
      await nextTick();
    }
  }

  async #check(): Promise<void> {
    const { committed } = this.cluster;
    const reference = new TsmEngine({ directory: 'data', disk: new MemoryDisk() });
    await reference.open();
    for (const [i, entry] of committed.entries()) {
      reference.apply(entry, entryOpsAt, entry.length, i + 1);
    }
    const expected = contentOf(reference);
    for (const { engine } of this.nodes) {
      expect(engine.appliedIndex).toBe(committed.length);
      expect(contentOf(engine)).toBe(expected);
    }
    for (const time of this.acknowledged) {
      const found = expected
        .split('\n')
        .filter((line) => line.startsWith('k,s=') && line.includes(` ${time} `));
      expect(found, `point at ${time}`).toHaveLength(1);
    }
    await reference.close();
  }
}

/** The outcome of a change, whose log commits all that it has. */
async function settled<T>(log: UnreliableLog, change: Promise<T> | T): Promise<T> {
  let isOver = false;
  const over = Promise.resolve(change).finally(() => (isOver = true));
  over.catch(() => {});
  while (!isOver) {
    await nextTick();
    log.commit(Infinity);
  }
  return over;
}

test('a batch of points that is larger than an entry is refused, and leaves nothing', async () => {
  const cluster = new UnreliableCluster();
  const node = new Node(1, cluster, []);
  await node.open();
  await node.log.lead();
  const { pod, log } = node;
  const write = (points: number): ReturnType<SeriesPod['write']> => {
    const list = Array.from({ length: points }, (_, n): TestPoint => {
      return { series: `m,s=${n}`, time: BigInt(n), fields: { v: n } };
    });
    return pod.write('db', '', batchOf(new TestSeriesCache(), list));
  };
  await settled(log, pod.change({ kind: 'createDatabase', database: 'db' }));
  log.maxWriteBytes = 500;
  const entries = cluster.committed.length;
  await expect(settled(log, write(100))).rejects.toThrow(TooLargeError);
  expect(cluster.committed.length).toBe(entries);
  expect(await settled(log, write(3))).toMatchObject({ written: 3 });
  expect(inOneGo(node.engine.seriesKeys({ database: 'db', retentionPolicy: '' }))).toHaveLength(3);
  await pod.close();
});

test('a change that is lost can be made elsewhere, one whose outcome is not known cannot', async () => {
  for (const [outcome, error] of [
    ['lost', NotLeaderError],
    ['unknown', OutcomeUnknownError],
  ] as const) {
    const cluster = new UnreliableCluster();
    const node = new Node(1, cluster, []);
    await node.open();
    await node.log.lead();
    const change = Promise.resolve(node.pod.change({ kind: 'createDatabase', database: 'db' }));
    const failure = expect(change).rejects.toThrow(error);
    while (node.log.pending === 0) await nextTick();
    node.log.depose(outcome === 'lost' ? 0 : 1);
    await node.log.stepDown(() => true);
    await failure;
    await node.pod.close();
  }
});

test('a batch whose outcome was unknown is not stored again over what was written since', async () => {
  const cluster = new UnreliableCluster();
  const [first, second] = [new Node(1, cluster, []), new Node(2, cluster, [])];
  for (const node of [first, second]) await node.open();
  const write = async (node: Node, v: number, identity: BatchIdentity): Promise<WriteOutcome> => {
    const batch = batchOf(new TestSeriesCache(), [{ series: 'm', time: 1n, fields: { v } }]);
    batch.identity = identity;
    return await node.pod.write('db', '', batch);
  };
  const at = first.clock.monotonic();
  const early = { id: 'early', at, isRepeated: false };
  const late = { id: 'late', at, isRepeated: false };
  await first.log.lead();
  await settled(
    first.log,
    Promise.resolve(first.pod.change({ kind: 'createDatabase', database: 'db' })),
  );
  const failure = expect(write(first, 1, early)).rejects.toThrow(OutcomeUnknownError);
  while (first.log.pending === 0) await nextTick();
  // It is committed, which its leader does not hear of.
  first.log.depose(1);
  await first.log.stepDown(() => true);
  await failure;

  await second.log.lead();
  expect(await settled(second.log, write(second, 2, late))).toMatchObject({ written: 1 });
  const entries = cluster.committed.length;
  const again = { ...early, isRepeated: true };
  expect(await settled(second.log, write(second, 1, again))).toMatchObject({
    written: 1,
    dropped: 0,
  });
  expect(cluster.committed.length).toBe(entries);
  const range = { from: minTime, to: maxTime, descending: false };
  const place = { database: 'db', retentionPolicy: '', measurement: 'm', fields: ['v'] };
  const points = readAll(inOneGo(second.engine.scan({ ...place, ...range })), ['v']);
  expect(points.map((point) => point.at(-1))).toEqual(['v=2']);

  // A replica that was opened since would not know it.
  const unknown = write(second, 3, { ...again, id: 'other' });
  await expect(settled(second.log, unknown)).rejects.toThrow(OutcomeUnknownError);
  for (const { pod } of [first, second]) await pod.close();
});

test.each(['closed', 'replaced'] as const)(
  'a read during which the state is %s is made elsewhere',
  async (how) => {
    const node = new Node(1, new UnreliableCluster(), []);
    await node.open();
    await node.log.lead();
    const { pod, log, engine } = node;
    await settled(log, pod.change({ kind: 'createDatabase', database: 'db' }));
    const points: TestPoint[] = [{ series: 'm', time: 1n, fields: { v: 1 } }];
    await settled(log, pod.write('db', '', batchOf(new TestSeriesCache(), points)));
    log.readBarrier = (then) => then('committed');
    const all = { from: minTime, to: maxTime, descending: false, fields: ['v'] };
    const reads: (() => Slices<unknown>)[] = [
      () => pod.fieldKeys({ database: 'db', measurement: 'm' }),
      () => pod.measurements({ database: 'db' }),
      () => pod.scan({ database: 'db', retentionPolicy: '', measurement: 'm', ...all }),
    ];
    const replace = async (): Promise<void> => {
      if (how === 'closed') return await pod.close();
      const batches = chunksOf(engine.exportSnapshot());
      await log.install({ index: engine.appliedIndex, batches });
    };
    for (const open of reads) {
      const [before, begun] = [open(), open()];
      // One has passed its read barrier, and the other one has begun to read.
      await (before.next().value as Promise<unknown>);
      await (begun.next().value as Promise<unknown>);
      const isDone = begun.next().done;
      await replace();
      // The whole new state may be read.
      if (how === 'replaced') await whenFinished(before);
      else await expect(whenFinished(before)).rejects.toThrow(NotLeaderError);
      if (!isDone) await expect(whenFinished(begun)).rejects.toThrow(NotLeaderError);
      if (how === 'closed') break;
    }
  },
);

test('a state with removed series goes to replicas whose node can read it', async () => {
  const clock = new TestClock();
  const engine = new TsmEngine({ directory: 'data', disk: new MemoryDisk(), clock });
  await engine.open();
  const log = new UnreliableLog(new UnreliableCluster(), 1, 0);
  log.readBarrier = (then) => then('committed');
  const pod = new SeriesPod({
    ...{ engine, log, checkpointBytes: 1 << 30, retentionIntervalMs: 1 << 30 },
    ...{ clock, report: () => {}, knowsRemoved: (replica) => replica === 7 },
  });
  await log.lead();
  await settled(log, pod.change({ kind: 'createDatabase', database: 'db' }));
  const points = ['m', 'n'].map((series): TestPoint => ({ series, time: 1n, fields: { v: 1 } }));
  await settled(log, pod.write('db', '', batchOf(new TestSeriesCache(), points)));
  expect(() => log.export(6)).not.toThrow();
  await settled(log, whenFinished(pod.dropSeries({ database: 'db', measurement: 'm' })));
  expect(() => log.export(6)).toThrow('a node of an earlier build');
  expect(() => log.export(7)).not.toThrow();
});

test('replicas hold what is committed, and nothing of what was lost', async () => {
  const only = process.env['POLYROW_SEED'];
  const seeds = only === undefined ? [...Array(histories).keys()] : [Number(only)];
  const errors = new Set<string>();
  let acknowledged = 0;
  for (const seed of seeds) {
    const history = new History(seed);
    try {
      await history.run(100);
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error });
    }
    acknowledged += history.acknowledged.length;
    for (const error of history.errors) errors.add(error);
  }
  expect(acknowledged).toBeGreaterThan(2 * seeds.length);
  if (only === undefined) {
    expect([...errors]).toEqual(expect.arrayContaining(['outcome unknown', 'refused']));
  }
}, 600_000);

test('points that are acknowledged after a power cut are stored, whatever shards held before', async () => {
  let disk = new FaultyDisk({ rng: new SeededRandom(1) });
  const cache = new TestSeriesCache();
  let engine!: TsmEngine;
  let boot = 0;
  const start = async () => {
    disk.makeDirectory('/data');
    // Each head is flushed at once.
    engine = new TsmEngine({ directory: '/data/rows', disk, headBytes: 1 });
    const host = await RaftHost.open({
      ...{ disk, directory: '/data/wal', ids: { cluster: 1, node: 1 }, transport: undefined },
      ...{ fsync: 'no', boot: String(++boot), tickMs: 5, electionTicks: 10 },
      // The one before ends with its disk.
      onFatal: () => undefined,
    });
    const replica = replicaId(1);
    const { pod } = await openSeriesReplica({
      ...{ engine, raft: host.pod, definition: { group: 9, initial: [replica] }, replica },
      ...{ checkpointBytes: Infinity, retentionIntervalMs: 1 << 30, clock: systemClock },
      report: () => undefined,
    });
    pod.start();
    await until(() => pod.parts.log.role === 'leader');
    return { host, pod };
  };
  const body = (from: number, count: number) => {
    const times = Array.from({ length: count }, (_, i) => BigInt(from + i));
    return batchOf(
      cache,
      times.map((time) => ({ series: 'm,s=a', fields: { v: 1 }, time })),
    );
  };
  const first = await start();
  await first.pod.change({ kind: 'createDatabase', database: 'db' });
  await first.pod.write('db', '', body(0, 1));
  await first.pod.checkpoint();
  await first.host.pod.sync();
  const { lastIndex } = first.pod.parts.log;
  for (let i = 1; i <= 5; i++) await first.pod.write('db', '', body(i, 1));
  await until(() => engine.durableIndex === lastIndex + 5);
  disk = disk.crash();
  cache.empty();
  const second = await start();
  expect(second.pod.parts.log.lastIndex).toBeLessThan(lastIndex + 5);
  for (let i = 10; i < 15; i++) await second.pod.write('db', '', body(i, 1));
  const place = { database: 'db', retentionPolicy: '', measurement: 'm', fields: ['v'] };
  const scan = engine.scan({ ...place, from: minTime, to: maxTime, descending: false });
  const found = readAll(inOneGo(scan), ['v']).map(([, time]) => Number(time));
  expect(found).toEqual(expect.arrayContaining([0, 10, 11, 12, 13, 14]));
  await second.pod.close();
  await second.host.close();
});
