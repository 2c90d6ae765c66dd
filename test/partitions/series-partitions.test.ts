// Time series of a single server in several partitions: restarts, failures in the middle, limits, backups.

import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import {
  type Partition,
  PartitionedStore,
} from '../../access/influx/partitions/partitioned-store.ts';
import { type Database, SeriesError, UnavailableError } from '../../contracts/series-store.ts';
import {
  batchOf,
  TestSeriesCache,
  type TestPoint,
} from '../../engines/tsm/testing/point-batches.ts';
import { TsmEngine, type TsmEngineOptions } from '../../engines/tsm/tsm-engine.ts';
import { LocalSeries } from '../../server/planes/local-series.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import { alignCatalogs } from '../../storage-node/series-partitions.ts';
import { systemClock } from '../../universal-row/environment.ts';
import { whenFinished } from '../../universal-row/slices.ts';

const cleanups: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

function directory(): string {
  const made = mkdtempSync(join(tmpdir(), 'polyrow-series-partitions-'));
  cleanups.push(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

interface Options {
  partitions?: number;
  acceptLoss?: boolean;
  engine?: Partial<TsmEngineOptions>;
}

async function open(
  path: string,
  { partitions = 4, acceptLoss = false, engine }: Options = {},
): Promise<LocalSeries> {
  const series = await LocalSeries.open({
    newEngine: (at) => new TsmEngine({ directory: at, disk: realDisk, ...engine }),
    partitions,
    disk: realDisk,
    directory: join(path, 'influx'),
    fsync: 'no',
    segmentBytes: 2 ** 20,
    checkpointBytes: 2 ** 30,
    retentionIntervalMs: 2 ** 30,
    acceptLoss,
    clock: systemClock,
    report: () => {},
    fatal: (error) => {
      throw error;
    },
  });
  let isOpen = true;
  const close = series.close.bind(series);
  series.close = async () => {
    if (isOpen) await close();
    isOpen = false;
  };
  cleanups.push(() => series.close());
  return series;
}

const cache = new TestSeriesCache();
const points: TestPoint[] = Array.from({ length: 200 }, (_, n) => ({
  series: `m,host=h${n % 50}`,
  fields: { v: n, text: `t${n}` },
  time: 1_600_000_000_000_000_000n + BigInt(n) * 1_000_000_000n,
}));

function flush(store: Partition): Promise<void> {
  return new Promise((resolve) => store.whenSafe(store.endTick(), resolve));
}

async function fill(store: Partition): Promise<void> {
  await store.change({ kind: 'createDatabase', database: 'db' });
  expect(await store.write('db', '', batchOf(cache, points))).toMatchObject({
    written: 200,
    dropped: 0,
  });
  await flush(store);
}

/** All rows, as `series time value`. */
async function rowsOf(store: Partition, database = 'db'): Promise<string[]> {
  const request = {
    database,
    retentionPolicy: '',
    measurement: 'm',
    from: 0n,
    to: 2n ** 62n,
    fields: ['v'],
  };
  const scan = await whenFinished(store.scan({ ...request, descending: false }));
  const rows: string[] = [];
  try {
    for (const series of scan.series) {
      const cursor = scan.cursor(series);
      for (let piece = cursor.next(); piece !== undefined; piece = cursor.next()) {
        if (piece.kind !== 'rows') throw new Error('no summary was asked for');
        for (let i = 0; i < piece.count; i++) {
          rows.push(
            `${series.key} ${piece.base * 1e9 + piece.times[i]!} ${piece.columns[0]!.numbers[i]!}`,
          );
        }
      }
    }
  } finally {
    scan.close();
  }
  return rows;
}

function countsOf({ pods }: LocalSeries): number[] {
  return pods.map((pod) => pod.engineStats().series);
}

test('series come back from the partitions that they were in', async () => {
  const path = directory();
  const series = await open(path);
  await fill(series.store);
  const rows = await rowsOf(series.store);
  const counts = countsOf(series);
  expect(rows).toHaveLength(200);
  expect(counts.every((count) => count > 0)).toBe(true);
  await series.close();
  // The number is as the directory has it.
  const again = await open(path, { partitions: 0 });
  expect(again.pods).toHaveLength(4);
  expect(await rowsOf(again.store)).toEqual(rows);
  expect(countsOf(again)).toEqual(counts);
  // What is there already is found in its partition.
  await again.store.write('db', '', batchOf(cache, points));
  expect(await rowsOf(again.store)).toEqual(rows);
  expect(countsOf(again)).toEqual(counts);
});

test('one partition is the pod itself, in the directory as it was', async () => {
  const path = directory();
  const series = await open(path, { partitions: 0 });
  expect(series.store).toBe(series.pods[0]);
  expect(readdirSync(join(path, 'influx')).sort()).toEqual(['data', 'wal']);
});

test('another number than the directory has is refused', async () => {
  const path = directory();
  await (await open(path, { partitions: 2 })).close();
  await expect(open(path, { partitions: 3 })).rejects.toThrow(
    /influx.partitions is 3, and the time series of .* are in 2 partitions/,
  );
  const undivided = directory();
  await (await open(undivided, { partitions: 1 })).close();
  await expect(open(undivided, { partitions: 4 })).rejects.toThrow(/are in one partition/);
  writeFileSync(join(path, 'influx', 'divided'), 'two\n');
  await expect(open(path, { partitions: 2 })).rejects.toThrow(/damaged/);
});

test('a write of which a part fails is refused; sent again, it changes nothing', async () => {
  const path = directory();
  const { pods } = await open(path);
  let broken: SeriesError | undefined;
  const fails: Partition = Object.create(pods[2]!, {
    write: {
      value: (...args: Parameters<Partition['write']>) => {
        if (broken !== undefined) throw broken;
        return pods[2]!.write(...args);
      },
    },
    endTick: { value: () => pods[2]!.endTick() },
    whenSafe: { value: (at: number, then: () => void) => pods[2]!.whenSafe(at, then) },
    change: { value: (...args: Parameters<Partition['change']>) => pods[2]!.change(...args) },
    scan: { value: (...args: Parameters<Partition['scan']>) => pods[2]!.scan(...args) },
  });
  const partitions = [pods[0]!, pods[1]!, fails, pods[3]!];
  const store = new PartitionedStore({ partitions, align: () => alignCatalogs(pods) });
  await store.change({ kind: 'createDatabase', database: 'db' });
  const write = async () => await store.write('db', '', batchOf(cache, points));
  broken = new SeriesError('write failed: the disk is full');
  await expect(write()).rejects.toThrow('write failed: the disk is full');
  broken = new UnavailableError('not now');
  await expect(write()).rejects.toThrow(UnavailableError);
  broken = undefined;
  expect(await write()).toMatchObject({ written: 200 });
  const rows = await rowsOf(store);
  expect(rows).toHaveLength(200);
  expect(await write()).toMatchObject({ written: 200 });
  expect(await rowsOf(store)).toEqual(rows);
});

function catalogs({ pods }: LocalSeries): Database[][] {
  return pods.map((pod) => [...pod.databases()].sort((a, b) => a.name.localeCompare(b.name)));
}

const policy = {
  duration: 86_400_000_000_000n,
  shardGroupDuration: 3_600_000_000_000n,
  replicaN: 1,
};

/** What a crash in the middle of changes leaves behind. */
async function unevenly({ pods }: LocalSeries): Promise<void> {
  const [first, second, third] = pods;
  await first!.change({ kind: 'createDatabase', database: 'new' });
  await first!.change({
    kind: 'createDatabase',
    database: 'own',
    policy: { name: 'p', ...policy },
  });
  await first!.change({ kind: 'dropDatabase', database: 'gone' });
  const names = { database: 'db', name: 'q' } as const;
  await first!.change({
    kind: 'createRetentionPolicy',
    ...names,
    policy: { ...policy, makeDefault: true },
  });
  await second!.change({ kind: 'createRetentionPolicy', ...names, policy });
  await third!.change({ kind: 'createRetentionPolicy', ...names, name: 'other', policy });
  for (const pod of pods) await flush(pod);
}

test('databases and policies of all partitions become those of the first at a start', async () => {
  const path = directory();
  const series = await open(path);
  for (const database of ['db', 'gone'])
    await series.store.change({ kind: 'createDatabase', database });
  await flush(series.store);
  await unevenly(series);
  await series.close();
  const again = await open(path);
  const [first, ...others] = catalogs(again);
  expect(first!.map(({ name }) => name)).toEqual(['db', 'new', 'own']);
  const sorted = (databases: Database[]) =>
    databases.map((one) => ({
      ...one,
      retentionPolicies: [...one.retentionPolicies].sort((a, b) => a.name.localeCompare(b.name)),
    }));
  for (const other of others) expect(sorted(other)).toEqual(sorted(first!));
  // There is nothing left to do.
  const versions = again.pods.map((pod) => pod.catalogVersion);
  await alignCatalogs(again.pods);
  expect(again.pods.map((pod) => pod.catalogVersion)).toEqual(versions);
});

test('where losses are accepted, the first partition gets back what the others have', async () => {
  const path = directory();
  const series = await open(path);
  await fill(series.store);
  await series.pods[0]!.change({ kind: 'dropDatabase', database: 'db' });
  await flush(series.store);
  const held = countsOf(series).slice(1);
  await series.close();
  const again = await open(path, { acceptLoss: true });
  expect(again.store.database('db')).toBeDefined();
  expect(countsOf(again).slice(1)).toEqual(held);
});

test('a change that fails half way is made up for by the next one', async () => {
  const path = directory();
  const { pods } = await open(path);
  let fails = true;
  const last: Partition = Object.create(pods[3]!, {
    change: {
      value: (...args: Parameters<Partition['change']>) => {
        if (fails) throw new SeriesError('write failed: the disk is full');
        return pods[3]!.change(...args);
      },
    },
  });
  const partitions = [pods[0]!, pods[1]!, pods[2]!, last];
  const store = new PartitionedStore({ partitions, align: () => alignCatalogs(pods) });
  expect(() => store.change({ kind: 'createDatabase', database: 'a' })).toThrow('the disk is full');
  expect(pods.map((pod) => pod.database('a') !== undefined)).toEqual([true, true, true, false]);
  fails = false;
  await store.change({ kind: 'createDatabase', database: 'b' });
  for (const pod of pods) expect(pod.databases().map(({ name }) => name)).toEqual(['a', 'b']);
  // One that all refuse changes nothing.
  const refused = {
    kind: 'createRetentionPolicy',
    database: 'nosuch',
    name: 'p',
    policy: {},
  } as const;
  expect(() => store.change(refused)).toThrow('database not found: nosuch');
});

test('a limit of series is that of all partitions together', async () => {
  const path = directory();
  const limits = { seriesPerDatabase: 20, valuesPerTag: Infinity };
  const series = await open(path, { engine: { limits } });
  await series.store.change({ kind: 'createDatabase', database: 'db' });
  const outcome = await series.store.write('db', '', batchOf(cache, points));
  expect(countsOf(series).reduce((sum, count) => sum + count, 0)).toBe(20);
  expect(outcome).toMatchObject({
    written: 80,
    dropped: 120,
    error: 'max-series-per-database limit exceeded: (20)',
  });
});

test('a limit of shards of a tenant is that of all partitions together', async () => {
  const path = directory();
  const series = await open(path, { partitions: 2, engine: { maxTenantShards: 3 } });
  await series.store.change({ kind: 'createDatabase', database: 'db' });
  const week = 7n * 86_400_000_000_000n;
  const spread = points.slice(0, 40).map((point, n) => ({ ...point, time: BigInt(n) * week }));
  const { error } = await series.store.write('db', '', batchOf(cache, spread));
  expect(error).toBe('max-shards-per-tenant limit exceeded: (3)');
  expect(series.pods.reduce((sum, pod) => sum + pod.engineStats().shards, 0)).toBe(3);
});
