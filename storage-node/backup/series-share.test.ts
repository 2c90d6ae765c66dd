// Time series of so many partitions, restored into another number of them.

import { afterEach, beforeEach, expect, test } from 'vitest';
import { maxTime, minTime } from '../../contracts/series-store.ts';
import {
  batchOf,
  type FieldValue,
  type TestPoint,
  TestSeriesCache,
} from '../../engines/tsm/testing/point-batches.ts';
import { readAll } from '../../engines/tsm/testing/read-points.ts';
import { seriesPartition } from '../../universal-row/series/series-partition.ts';
import { inOneGo } from '../../universal-row/slices.ts';
import { realDisk } from '../disk/real-disk.ts';
import type { SeriesPod } from '../series-pod.ts';
import { BackupFixture } from './backup-fixture.ts';
import { chainOf, partsOf, podsOf } from './chain.ts';
import { readManifest } from './manifest.ts';
import type { BackupManifest } from './manifest-content.ts';
import { seriesRestore } from './plane-parts.ts';
import { overlaps, seriesModel } from './series-share.ts';

const day = 86_400n * 1_000_000_000n;
const week = 7n * day;
const now = ((BigInt(Date.now()) * 1_000_000n) / week) * week;
const fields = ['f', 'i', 's', 'b'];

let f: BackupFixture;
let cache: TestSeriesCache;
let opened = 0;
beforeEach(() => {
  f = new BackupFixture();
  cache = new TestSeriesCache();
});
afterEach(() => f.close());

async function pods(count: number): Promise<SeriesPod[]> {
  const name = `pods-${++opened}`;
  return await Promise.all(Array.from({ length: count }, (_, n) => f.seriesPod(`${name}-${n}`)));
}

function placeOf({ series }: TestPoint, of: number): number {
  const key = Buffer.from(series);
  return seriesPartition(key, 0, key.length, of);
}

async function write(to: readonly SeriesPod[], points: TestPoint[], policy = ''): Promise<void> {
  for (const [n, pod] of to.entries()) {
    const own = points.filter((point) => placeOf(point, to.length) === n);
    if (own.length === 0) continue;
    const { error } = await pod.write('d', policy, batchOf(cache, own));
    expect(error).toBeUndefined();
    pod.endTick();
  }
}

function change(to: readonly SeriesPod[], what: Parameters<SeriesPod['change']>[0]): void {
  for (const pod of to) {
    void pod.change(what);
    pod.endTick();
  }
}

/** Points of all types, one a minute, in two measurements of some series. */
function points(count: number, from: bigint, more = ''): TestPoint[] {
  return Array.from({ length: count }, (_, n): TestPoint => {
    const values: Record<string, FieldValue> = { f: n / 3 };
    if (n % 3 === 0) values['i'] = { integer: n % 2 === 0 ? n : 2n ** 60n + BigInt(n) };
    if (n % 5 === 0) values['s'] = `text ${n}${more}`;
    if (n % 7 === 0) values['b'] = n % 2 === 0;
    const series = `${n % 2 === 0 ? 'm' : 'n'},host=h${n % 23}${more}`;
    return { series, time: from + BigInt(n) * 60_000_000_000n, fields: values };
  });
}

/** By series and time, of all pods together. */
function readOf(from: readonly SeriesPod[], policy = ''): string[] {
  const found = from.flatMap((pod) =>
    ['m', 'n'].flatMap((measurement) => {
      const scan = { database: 'd', retentionPolicy: policy, measurement, fields };
      const whole = { from: minTime, to: maxTime, descending: false };
      return readAll(inOneGo(pod.scan({ ...scan, ...whole })), fields);
    }),
  );
  const text = (point: unknown): string =>
    JSON.stringify(point, (_, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value));
  return found.map(text).sort();
}

async function backup(of: readonly SeriesPod[], after?: BackupManifest): Promise<BackupManifest> {
  const named = of.map((pod, n) => [seriesModel({ partition: n, of: of.length }), pod] as const);
  return await f.backup(Object.fromEntries(named), after);
}

function restoreOf(manifest: BackupManifest, into: readonly SeriesPod[]) {
  const chain = chainOf(manifest.id, (id) => readManifest(realDisk, f.set, id));
  const sources = podsOf(chain).map((pod) => partsOf(chain, pod, f.set));
  const tenants = [{ from: 0, to: 0 }];
  const start = { id: 'restore', sources, tables: [], tenants, replace: false };
  return seriesRestore(realDisk, start, () => into);
}

async function restored(manifest: BackupManifest, into: readonly SeriesPod[]) {
  const restore = restoreOf(manifest, into);
  const loaded = await restore.load();
  await restore.commit();
  await restore.release();
  return loaded;
}

/** Each series is where points of it are written to, and looked for. */
function expectDivided(of: readonly SeriesPod[]): void {
  for (const [n, pod] of of.entries()) {
    for (const measurement of ['m', 'n']) {
      const keys = inOneGo(pod.seriesKeys({ database: 'd', measurement }));
      for (const series of keys) {
        expect(placeOf({ series, time: 0n, fields: {} }, of.length)).toBe(n);
      }
    }
  }
}

for (const [from, to] of [
  [1, 4],
  [4, 1],
  [3, 2],
  [2, 5],
] as const) {
  test(`of ${from} become those of ${to}`, async () => {
    const source = await pods(from);
    change(source, { kind: 'createDatabase', database: 'd' });
    change(source, { kind: 'createDatabase', database: 'empty' });
    const policy = { duration: 100n * day, shardGroupDuration: day, makeDefault: true };
    change(source, { kind: 'createRetentionPolicy', database: 'd', name: 'short', policy });
    await write(source, points(9000, now - 3n * week), 'autogen');
    await write(source, points(700, now - 2n * day, 'x'), 'short');
    const full = await backup(source);
    await write(source, points(300, now, 'late'), 'autogen');
    for (const pod of source) {
      inOneGo(
        pod.deletePoints({ database: 'd', measurement: 'm', from: now, to: now + day / 48n }),
      );
      pod.endTick();
    }
    const manifest = await backup(source, full);
    expect(manifest.parts[0]!.kind).toBe('shards');

    const target = await pods(to);
    const { shards, expiredShards } = await restored(manifest, target);
    expect(expiredShards).toBe(0);
    const rows = readOf(source, 'autogen').length + readOf(source, 'short').length;
    expect(shards.reduce((sum, shard) => sum + shard.rows, 0)).toBe(rows);
    expectDivided(target);
    for (const pod of target) expect(pod.databases()).toEqual(source[0]!.databases());
    for (const name of ['autogen', 'short']) {
      expect(readOf(target, name)).toEqual(readOf(source, name));
    }
    // They are points like any other: written over, and whole after a restart.
    await write(target, points(9000, now - 3n * week), 'autogen');
    expect(readOf(target, 'autogen')).toEqual(readOf(source, 'autogen'));
    await write(target, points(50, now + week, 'more'), 'autogen');
    expect(readOf(target, 'autogen').length).toBe(readOf(source, 'autogen').length + 50);
    // The other way round.
    const again = await pods(from);
    await restored(await backup(target), again);
    expect(readOf(again, 'autogen')).toEqual(readOf(target, 'autogen'));
  });
}

test('shards of partitions that overlap become one', async () => {
  const source = await pods(2);
  change(source, { kind: 'createDatabase', database: 'd' });
  const all = points(3000, now - week);
  const first = all.filter((point) => placeOf(point, 2) === 0);
  await write(source, first);
  const policy = { shardGroupDuration: day };
  change(source, { kind: 'alterRetentionPolicy', database: 'd', name: 'autogen', policy });
  await write(source, all);
  const manifest = await backup(source);
  const seconds = manifest.parts.flatMap(({ shards }) => shards!.map((shard) => shard.seconds));
  expect(new Set(seconds).size).toBe(2);
  const target = await pods(1);
  const { shards } = await restored(manifest, target);
  expect(shards.map(({ rows }) => rows)).toEqual([3000]);
  expect(readOf(target)).toEqual(readOf(source));
});

test('a field of several types is refused where they would come together', async () => {
  const source = await pods(2);
  change(source, { kind: 'createDatabase', database: 'd' });
  const hosts = Array.from({ length: 40 }, (_, n) => `m,host=h${n}`);
  const point = (series: string): TestPoint => ({ series, time: now, fields: {} });
  const typed = hosts.map((series) => ({
    ...point(series),
    fields: { f: placeOf(point(series), 2) === 0 ? 1.5 : 'text' },
  }));
  await write(source, typed);
  const manifest = await backup(source);
  const target = await pods(1);
  const restore = restoreOf(manifest, target);
  await expect(restore.load()).rejects.toThrow(
    'field f of m is of type float in some and of type string in others. Restore them with polyrow restore --into DIRECTORY, or into a server or a cluster that was begun with --influx.partitions 2, or a multiple of it',
  );
  await restore.release();
  expect(target[0]!.databases()).toEqual([]);
  for (const count of [2, 4, 6]) {
    const beside = await pods(count);
    await restored(manifest, beside);
    expect(readOf(beside)).toEqual(readOf(source));
  }
});

test('shards that overlap over too long a time are refused where they would come together', async () => {
  const source = await pods(2);
  change(source, { kind: 'createDatabase', database: 'd' });
  const every = (name: string, shardGroupDuration: bigint): Parameters<SeriesPod['change']>[0] => ({
    ...{ kind: 'alterRetentionPolicy', database: 'd', name },
    policy: { shardGroupDuration },
  });
  // Of one partition they begin in the midst of those of the other.
  for (const [n, weeks] of [13n, 8n].entries()) {
    change([source[n]!], every('autogen', weeks * week));
  }
  const all = points(3000, now - 30n * week).map((point, n) => ({
    ...point,
    time: point.time + BigInt(n % 30) * week,
  }));
  await write(source, all);
  const manifest = await backup(source);
  const target = await pods(1);
  const restore = async (): Promise<unknown> => await restoreOf(manifest, target).load();
  await expect(restore()).rejects.toThrow(/overlap over 13 weeks\. Restore them with/);
  const beside = await pods(2);
  await restored(manifest, beside);
  expect(readOf(beside)).toEqual(readOf(source));
});

test('partitions overlap as the ranges of hashes that they are', () => {
  for (let of = 1; of <= 9; of++) {
    for (let other = 1; other <= 9; other++) {
      const found = new Set<string>();
      for (let n = 0; n < of * other; n++) {
        found.add(`${Math.floor(n / other)} ${Math.floor(n / of)}`);
      }
      for (let a = 0; a < of; a++) {
        for (let b = 0; b < other; b++) {
          const meets = overlaps({ partition: a, of }, { partition: b, of: other });
          expect(meets, `${a} of ${of}, ${b} of ${other}`).toBe(found.has(`${a} ${b}`));
        }
      }
    }
  }
});
