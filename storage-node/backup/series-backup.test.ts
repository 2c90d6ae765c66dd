import { inOneGo } from '../../universal-row/slices.ts';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  batchOf,
  type FieldValue,
  type TestPoint,
  TestSeriesCache,
} from '../../engines/tsm/testing/point-batches.ts';
import { type ReadPoint, readAll } from '../../engines/tsm/testing/read-points.ts';
import { maxTime, minTime } from '../../contracts/series-store.ts';
import { realDisk } from '../disk/real-disk.ts';
import type { SeriesPod } from '../series-pod.ts';
import { BackupFixture, ended } from './backup-fixture.ts';
import type { BackupManifest } from './manifest-content.ts';
import { dropShadowDatabases, SeriesRestore } from './series-restore.ts';
import { isShadowDatabase } from './shadow.ts';
import { verifyBackup } from './verify.ts';

const day = 86_400n * 1_000_000_000n;
const week = 7n * day;
/** The beginning of a shard: the points of a test, some hours or days from it, are in as many shards on any day of the week. */
const now = ((BigInt(Date.now()) * 1_000_000n) / week) * week;
const fields = ['f', 'i', 's', 'b'];
const measurements = ['m', 'n'];

let f: BackupFixture;
let cache: TestSeriesCache;
beforeEach(() => {
  f = new BackupFixture();
  cache = new TestSeriesCache();
});
afterEach(() => f.close());

async function write(
  pod: SeriesPod,
  points: TestPoint[],
  database = 'd',
  policy = '',
): Promise<void> {
  const outcome = await pod.write(database, policy, batchOf(cache, points));
  expect(outcome.error).toBeUndefined();
  pod.endTick();
}

/** Points of all types, one a minute from `from` on, in two measurements of some series. */
function points(count: number, from: bigint, more = ''): TestPoint[] {
  return Array.from({ length: count }, (_, n): TestPoint => {
    const values: Record<string, FieldValue> = { f: n / 3 };
    if (n % 3 === 0) values['i'] = { integer: n % 2 === 0 ? n : 2n ** 60n + BigInt(n) };
    if (n % 5 === 0) values['s'] = `text ${n}${more}`;
    if (n % 7 === 0) values['b'] = n % 2 === 0;
    const series = `${n % 2 === 0 ? 'm' : 'n'},host=h${n % 11}${more}`;
    return { series, time: from + BigInt(n) * 60_000_000_000n, fields: values };
  });
}

function readOf(pod: SeriesPod, database = 'd', policy = ''): ReadPoint[] {
  return measurements.flatMap((measurement) =>
    readAll(
      inOneGo(
        pod.scan({
          database,
          retentionPolicy: policy,
          measurement,
          fields,
          from: minTime,
          to: maxTime,
          descending: false,
        }),
      ),
      fields,
    ),
  );
}

function restoreOf(
  manifest: BackupManifest,
  pod: SeriesPod,
  change: Partial<{ from: number; to: number; replace: boolean }> = {},
): SeriesRestore {
  const { from = 0, to = 0, replace = false } = change;
  const parts = f.parts(manifest, 'tsm');
  return new SeriesRestore({
    ...{ disk: realDisk, pod, sources: [parts], moves: [{ from, to }], replace },
  });
}

async function restored(restore: SeriesRestore) {
  const loaded = await restore.load();
  await restore.commit();
  await restore.release();
  return loaded;
}

test('time series come back with their policies, and the restore has compared them', async () => {
  const source = await f.seriesPod('source');
  void source.change({ kind: 'createDatabase', database: 'd' });
  void source.change({ kind: 'createDatabase', database: 'empty' });
  const policy = { duration: 100n * day, shardGroupDuration: day, replicaN: 2, makeDefault: true };
  void source.change({ kind: 'createRetentionPolicy', database: 'd', name: 'short', policy });
  await write(source, points(3000, now - 3n * week), 'd', 'autogen');
  await write(source, points(500, now - 2n * day, 'x'), 'd', 'short');
  await source.checkpoint();
  inOneGo(
    source.deletePoints({
      database: 'd',
      measurement: 'm',
      from: now - 3n * week,
      to: now - 20n * day,
    }),
  );
  await write(source, points(800, now - week), 'd', 'autogen');
  const manifest = await f.backup({ tsm: source });
  expect(await verifyBackup(realDisk, f.set, manifest.id)).toMatchObject({ problems: [] });

  const target = await f.seriesPod('target');
  const { shards, expired } = await restored(restoreOf(manifest, target));
  expect(expired).toBe(0);
  expect(shards.length).toBe(manifest.parts[0]!.shards!.length);
  expect(target.databases()).toEqual(source.databases());
  expect(readOf(target, 'd', 'autogen')).toEqual(readOf(source, 'd', 'autogen'));
  expect(readOf(target, 'd', 'short')).toEqual(readOf(source, 'd', 'short'));
  await target.close();
  const again = await f.seriesPod('target');
  expect(readOf(again, 'd', 'autogen')).toEqual(readOf(source, 'd', 'autogen'));
  // They are databases like any other.
  await write(again, points(10, now, 'later'));
  expect(readOf(again).length).toBe(readOf(source).length + 10);
});

test('of an incremental backup come what has changed, and the rest from before', async () => {
  const source = await f.seriesPod('source');
  void source.change({ kind: 'createDatabase', database: 'd' });
  await write(source, points(5000, now - 4n * week));
  await write(source, points(100, now - 100n * week));
  const full = await f.backup({ tsm: source });
  await write(source, points(100, now, 'new'));
  inOneGo(source.dropSeries({ database: 'd', measurement: 'm', from: undefined, to: undefined }));
  source.endTick();
  await write(source, points(200, now - week, 'again'));
  const second = await f.backup({ tsm: source }, full);
  await source.checkpoint();
  inOneGo(source.deletePoints({ database: 'd', measurement: 'n', from: now, to: now + day / 48n }));
  source.endTick();
  void source.change({ kind: 'createDatabase', database: 'late' });
  source.endTick();
  const third = await f.backup({ tsm: source }, second);
  const included = ({ parts }: BackupManifest): number =>
    parts[0]!.shards!.filter((shard) => shard.included).length;
  expect(third.parts[0]).toMatchObject({ kind: 'shards' });
  expect(included(third)).toBeLessThan(included(full));
  expect(included(third)).toBeGreaterThan(0);

  const target = await f.seriesPod('target');
  await restored(restoreOf(third, target));
  expect(target.databases()).toEqual(source.databases());
  expect(readOf(target)).toEqual(readOf(source));
  const older = await f.seriesPod('older');
  await restored(restoreOf(full, older));
  expect(readOf(older).length).toBe(5100);
});

test('without a change a backup has no points', async () => {
  const source = await f.seriesPod('source');
  void source.change({ kind: 'createDatabase', database: 'd' });
  await write(source, points(100, now - week));
  await source.checkpoint();
  const full = await f.backup({ tsm: source });
  await source.close();
  const again = await f.seriesPod('source');
  const second = await f.backup({ tsm: again }, full);
  expect(second.parts[0]!.shards!.every(({ included }) => !included)).toBe(true);
  const target = await f.seriesPod('target');
  await restored(restoreOf(second, target));
  expect(readOf(target)).toEqual(readOf(again));
});

test('of one tenant become those of another', async () => {
  const source = await f.seriesPod('source');
  const { engine, log } = source.parts;
  for (const database of ['d', 'theirs']) void source.change({ kind: 'createDatabase', database });
  await write(source, points(300, now - week));
  await write(source, points(200, now - week, 'theirs'), 'theirs');
  // Another tenant's database with the client name `d`.
  await source.ingest(() => engine.prepareRename('theirs', '\u00015\u0001d', log.writer));
  const tenant = { number: 5, firstTable: 4096, databases: 16 };
  const manifest = await f.backup({ tsm: source }, undefined, { tenant });
  expect(manifest.parts[0]!.shards!.map(({ database }) => database)).toEqual(['\u00015\u0001d']);
  const target = await f.seriesPod('target');
  void target.change({ kind: 'createDatabase', database: 'd' });
  await write(target, points(50, now - week, 'mine'));
  await restored(restoreOf(manifest, target, { from: 5, to: 9 }));
  expect(target.databases().map(({ name }) => name)).toEqual(['d', '\u00019\u0001d']);
  expect(readOf(target, '\u00019\u0001d')).toEqual(readOf(source, '\u00015\u0001d'));
  expect(readOf(target).length).toBe(50);
});

test('that are there already are in the way, or make room', async () => {
  const source = await f.seriesPod('source');
  void source.change({ kind: 'createDatabase', database: 'd' });
  await write(source, points(100, now - week));
  const manifest = await f.backup({ tsm: source });
  const target = await f.seriesPod('target');
  for (const database of ['d', 'other']) void target.change({ kind: 'createDatabase', database });
  await write(target, points(7, now - week, 'mine'));
  await expect(restoreOf(manifest, target).load()).rejects.toThrow('database d holds points');
  await restored(restoreOf(manifest, target, { replace: true }));
  expect(target.databases().map(({ name }) => name)).toEqual(['d']);
  expect(readOf(target)).toEqual(readOf(source));
});

test('are of one moment, whatever is written meanwhile', async () => {
  const source = await f.seriesPod('source');
  void source.change({ kind: 'createDatabase', database: 'd' });
  await write(source, points(4000, now - 3n * week));
  const before = readOf(source);
  const { id, backups } = await f.begin({ tsm: source });
  await write(source, points(1000, now - 3n * week, 'new'));
  inOneGo(source.dropSeries({ database: 'd', measurement: 'n' }));
  source.endTick();
  await source.checkpoint();
  await ended(backups, id);
  const manifest = await f.finish(id, backups);
  const target = await f.seriesPod('target');
  await restored(restoreOf(manifest, target));
  expect(readOf(target)).toEqual(before);
});

test('a restore that is given up, or interrupted, leaves nothing', async () => {
  const source = await f.seriesPod('source');
  void source.change({ kind: 'createDatabase', database: 'd' });
  await write(source, points(3000, now - week));
  const manifest = await f.backup({ tsm: source });
  const target = await f.seriesPod('target');
  const restore = restoreOf(manifest, target);
  const loading = restore.load();
  while (target.databases().length === 0) await new Promise(setImmediate);
  restore.cancel();
  await expect(loading).rejects.toThrow('cancelled');
  expect(target.databases().some(({ name }) => isShadowDatabase(name))).toBe(true);
  await restore.release();
  expect(target.databases()).toEqual([]);
});

describe('what happens between two steps of a restore', () => {
  let target: SeriesPod;

  /** A restore of points that have expired and of such that have not; `act` runs after its first step. */
  async function restoring(act: () => Promise<unknown> | void): Promise<SeriesRestore> {
    const source = await f.seriesPod('source');
    void source.change({ kind: 'createDatabase', database: 'd' });
    for (const age of [60n * day, 0n]) await write(source, points(50, now - age));
    const policy = { duration: 30n * day, shardGroupDuration: day };
    void source.change({ kind: 'alterRetentionPolicy', database: 'd', name: 'autogen', policy });
    source.endTick();
    const manifest = await f.backup({ tsm: source });
    target = await f.seriesPod('target');
    const real = target.ingest.bind(target);
    target.ingest = async (prepare) => {
      await real(prepare);
      target.ingest = real;
      await act();
    };
    return restoreOf(manifest, target);
  }

  test('points expire only once they are restored', async () => {
    const restore = await restoring(() => void target.tick());
    const { shards } = await restored(restore);
    expect(shards.length).toBeGreaterThan(1);
    expect(readOf(target).length).toBe(100);
    await target.close();
    expect(readOf(await f.seriesPod('target')).length).toBe(100);
  });

  test('a restore whose databases another node drops fails, and nothing else does', async () => {
    const restore = await restoring(() => dropShadowDatabases(target));
    await expect(restore.load()).rejects.toThrow('has been dropped: restore it again');
    await restore.release();
    await target.close();
    expect((await f.seriesPod('target')).databases()).toEqual([]);
  });
});
