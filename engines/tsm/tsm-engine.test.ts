// Writes, queries and deletions of the engine.

import { inOneGo } from '../../universal-row/slices.ts';
import { describe, expect, test } from 'vitest';
import { FaultyDisk } from '../../storage-node/disk/faulty-disk.ts';
import { RecordBatchWriter } from '../../universal-row/record-batch.ts';
import {
  maxTime,
  minTime,
  type SeriesFilter,
  type WriteOutcome,
} from '../../contracts/series-store.ts';
import { day, hour } from './durations.ts';
import { seeded } from './shard/testing/seeded.ts';
import { directory, EngineTrial, i, point } from './testing/engine-trial.ts';
import { batchOf, type TestPoint } from './testing/point-batches.ts';
import type { ReadPoint } from './testing/read-points.ts';
import { type TsmEngineOptions } from './tsm-engine.ts';

const second = 1_000_000_000n;
const week = 7n * day;

function openTrial(options: Partial<TsmEngineOptions> = {}): Promise<EngineTrial> {
  return EngineTrial.open(new FaultyDisk({ rng: seeded(1) }), options);
}

describe('writing', () => {
  test('what was written is read, series by series', async () => {
    const trial = await openTrial();
    const outcome = trial.write([
      point('m,h=b', 2n * second, 1.5),
      point('m,h=a', 1n * second, 2.5),
      point('m,h=b', 1n * second, -0),
    ]);
    expect(outcome).toEqual({ written: 3, dropped: 0, error: undefined });
    trial.write([point('m,h=b', 2n * second, 3.5)]);
    expect(trial.read()).toEqual([
      ['m,h=a', second, 'v=2.5'],
      ['m,h=b', second, 'v=0'],
      ['m,h=b', 2n * second, 'v=3.5'],
    ]);
    expect(trial.read(['v'], { descending: true, from: 2n * second })).toEqual([
      ['m,h=b', 2n * second, 'v=3.5'],
    ]);
  });

  test('all types, and integers of 64 bits', async () => {
    const trial = await openTrial();
    const fields = ['f', 'i', 'big', 's', 'b'];
    trial.write([
      { series: 'm', time: 1n, fields: { f: 0.1, i: i(-7), s: 'é,"', b: true } },
      { series: 'm', time: 2n, fields: { big: i(2n ** 63n - 1n), s: '', b: false } },
      { series: 'm', time: 3n, fields: { big: i(-5), i: i(1_000_000) } },
    ]);
    expect(trial.read(fields)).toEqual([
      ['m', 1n, 'f=0.1 i=-7i s="é,\\"" b=true'],
      ['m', 2n, `big=9223372036854775807i s="" b=false`],
      ['m', 3n, 'i=1000000i big=-5i'],
    ]);
    await trial.engine.checkpoint();
    expect(trial.engine.stats()).toMatchObject({ headPoints: 0, files: 1, series: 1 });
    expect(trial.read(fields)).toHaveLength(3);
  });

  test('a batch over several shards and before 1970', async () => {
    const trial = await openTrial();
    const times = [-1n, 0n, week - 1n, week, -week, -week - 1n, 3n * week + 5n];
    expect(
      trial.write(
        times.map((time, n) => point('m', time, n)),
        '',
        0,
      ),
    ).toMatchObject({
      written: 7,
    });
    expect(trial.engine.stats().shards).toBe(5);
    const ascending = times.map((time, n): ReadPoint => ['m', time, `v=${n}`]);
    ascending.sort(([, a], [, b]) => Number(a - b));
    expect(trial.read()).toEqual(ascending);
    expect(trial.read(['v'], { descending: true })).toEqual(ascending.toReversed());
    const from = -1n;
    expect(trial.read(['v'], { from, to: week - 1n }).map(([, time]) => time)).toEqual([
      -1n,
      0n,
      week - 1n,
    ]);
  });

  test('the ends of time', async () => {
    const trial = await openTrial();
    trial.write([point('m', minTime, 1)]);
    trial.write([point('m', maxTime, 2)]);
    await trial.engine.checkpoint();
    expect(trial.read()).toEqual([
      ['m', minTime, 'v=1'],
      ['m', maxTime, 'v=2'],
    ]);
  });

  test('series whose keys differ by little in several shards are merged by key', async () => {
    const trial = await openTrial();
    const keys = ['m', 'm,a=1', 'm,a=10', 'm,a=\u{1f600}', 'm,a=\uffff', 'm,b=0'];
    trial.write(keys.map((key, n) => point(key, 0n, n)));
    trial.write(keys.toReversed().map((key, n) => point(key, week, n)));
    const sorted = keys.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    expect(trial.read().map(([key]) => key)).toEqual(sorted.flatMap((key) => [key, key]));
    expect(inOneGo(trial.engine.seriesKeys({ database: 'd' }))).toEqual(sorted);
    expect(inOneGo(trial.engine.seriesCardinality({ database: 'd' }))).toBe(6);
  });

  test('a cache that was emptied means other series by its handles', async () => {
    const trial = await openTrial();
    trial.write([point('m,h=a', 1n, 1), point('m,h=b', 1n, 2)]);
    trial.cache.empty();
    trial.write([point('m,h=b', 2n, 3), point('m,h=c', 2n, 4)]);
    expect(trial.read().map(([key, , v]) => `${key} ${v}`)).toEqual([
      'm,h=a v=1',
      'm,h=b v=2',
      'm,h=b v=3',
      'm,h=c v=4',
    ]);
  });

  test('what is prepared and discarded has not been', async () => {
    const trial = await openTrial();
    const batch = batchOf(trial.cache, [point('m,h=a', 1n, 1), point('n', week, 1)]);
    const into = new RecordBatchWriter();
    trial.engine.prepareWrite('d', '', batch, 0, into);
    trial.engine.discard();
    expect(inOneGo(trial.engine.measurements({ database: 'd' }))).toEqual([]);
    trial.write([point('m,h=b', 1n, 'text'), point('m,h=a', 1n, 'text')]);
    expect(trial.read()).toEqual([
      ['m,h=a', 1n, 'v="text"'],
      ['m,h=b', 1n, 'v="text"'],
    ]);
  });
});

describe('what cannot be stored', () => {
  test('what is refused as a whole needs no discarding', async () => {
    const trial = await openTrial();
    trial.write([point('m', 1n, 1)]);
    const into = new RecordBatchWriter();
    for (let n = 0; n < 2; n++) {
      const batch = batchOf(trial.cache, [point('m', 1n, 'text')]);
      trial.engine.prepareWrite('d', '', batch, 0, into);
    }
    expect(into.pos).toBe(0);
  });

  test('unknown database and policy', async () => {
    const trial = await openTrial();
    const batch = batchOf(trial.cache, [point('m', 1n, 1)]);
    const into = new RecordBatchWriter();
    const write = (database: string, policy: string) => () =>
      trial.engine.prepareWrite(database, policy, batch, 0, into);
    expect(write('x', '')).toThrow('database not found: "x"');
    expect(write('d', 'p')).toThrow('retention policy not found: p');
    trial.change({ kind: 'dropRetentionPolicy', database: 'd', name: 'autogen' });
    expect(write('d', '')).toThrow('retention policy not found: autogen');
    expect(into.pos).toBe(0);
  });

  const was = [point('w,h=a', 1n, i(1), 'f')];
  const conflict = (field: string, type: string, existing: string): string =>
    `field type conflict: input field "${field}" on measurement "w" is type ${type}, already exists as type ${existing}`;
  const outcomes: [string, TestPoint[], Partial<WriteOutcome>, string[]][] = [
    [
      'a field of another type',
      [point('w,h=a', 2n, 1.5, 'f'), point('w,h=b', 2n, i(2), 'f'), point('w,h=c', 2n, 's', 'f')],
      { written: 1, dropped: 2, error: conflict('f', 'float', 'integer') },
      ['w,h=a f=1i', 'w,h=b f=2i'],
    ],
    [
      'a new field with two types: the first counts',
      [point('w,h=a', 2n, true, 'g'), point('w,h=a', 3n, 1, 'g'), point('w,h=a', 4n, false, 'g')],
      { written: 2, dropped: 1, error: conflict('g', 'float', 'boolean') },
      ['w,h=a f=1i', 'w,h=a g=true', 'w,h=a g=false'],
    ],
    [
      'all of a batch',
      [point('w,h=b', 2n, 1.5, 'f')],
      { written: 0, dropped: 1, error: conflict('f', 'float', 'integer') },
      ['w,h=a f=1i'],
    ],
    [
      'a row of which only one field conflicts',
      [{ series: 'w,h=b', time: 2n, fields: { f: 1.5, g: 1 } }, point('w,h=c', 2n, 2, 'g')],
      { written: 1, dropped: 1, error: conflict('f', 'float', 'integer') },
      ['w,h=a f=1i', 'w,h=c g=2'],
    ],
  ];
  test.each(outcomes)('%s', async (_, points, outcome, expected) => {
    const trial = await openTrial();
    trial.write(was);
    expect(trial.write(points)).toEqual({ error: undefined, ...outcome });
    const rows = trial.read(['f', 'g'], { measurement: 'w' });
    expect(rows.map(([key, , values]) => `${key} ${values}`)).toEqual(expected);
  });

  test('a field has its type in each shard by itself', async () => {
    const trial = await openTrial();
    trial.write([point('m', 0n, i(1))]);
    expect(trial.write([point('m', week, 1.5)])).toMatchObject({ written: 1 });
    expect(trial.read()).toEqual([
      ['m', 0n, 'v=1i'],
      ['m', week, 'v=1.5'],
    ]);
    const keys = trial.engine.fieldKeys({ database: 'd', measurement: 'm' });
    expect(keys).toEqual([
      { name: 'v', type: 'float' },
      { name: 'v', type: 'integer' },
    ]);
  });

  test('points older than the policy keeps them', async () => {
    const trial = await openTrial();
    trial.change({
      kind: 'alterRetentionPolicy',
      database: 'd',
      name: 'autogen',
      policy: { duration: hour, shardGroupDuration: hour },
    });
    trial.now = 7_200_000;
    const points = [hour - 1n, hour, hour + 1n].map((time, n) => point('m', time, n));
    expect(trial.write(points)).toEqual({
      written: 2,
      dropped: 1,
      error: 'points beyond retention policy',
    });
    expect(trial.read().map(([, time]) => time)).toEqual([hour, hour + 1n]);
  });

  test('series beyond a limit', async () => {
    const trial = await openTrial({ limits: { seriesPerDatabase: 3 } });
    trial.write([point('m,h=a', 1n, 1), point('n', 1n, 1)]);
    const points = ['b', 'c', 'c', 'a'].map((h, n) => point(`m,h=${h}`, BigInt(n), n));
    expect(trial.write(points)).toEqual({
      written: 2,
      dropped: 2,
      error: 'max-series-per-database limit exceeded: (3)',
    });
    expect(trial.read().map(([key]) => key)).toEqual(['m,h=a', 'm,h=a', 'm,h=b']);
  });

  test('series that several databases share', async () => {
    const trial = await openTrial({ limits: { seriesPerDatabase: 5 } });
    const { engine } = trial;
    for (const database of ['e', 'alone']) trial.change({ kind: 'createDatabase', database });
    engine.seriesAllowance = (database) =>
      database === 'alone'
        ? undefined
        : { databases: ['d', 'e', 'gone'], series: 3, refusal: 'no more' };
    const of = (...keys: string[]) => keys.map((key) => point(key, 1n, 1));
    expect(trial.writeTo('d', of('m,h=a', 'm,h=b'))).toMatchObject({ written: 2 });
    // In one batch, over several measurements, and with those that are there.
    expect(trial.writeTo('e', of('m', 'm', 'n', 'o'))).toEqual({
      written: 2,
      dropped: 2,
      error: 'no more',
    });
    expect(trial.writeTo('d', of('m,h=a', 'm,h=c'))).toMatchObject({ dropped: 1 });
    const six = of('m', 'n', 'o', 'p', 'q', 'r');
    expect(trial.writeTo('alone', six)).toMatchObject({ written: 5, dropped: 1 });
    trial.change({ kind: 'dropDatabase', database: 'e' });
    expect(trial.writeTo('d', of('m,h=c', 'm,h=d'))).toMatchObject({ written: 1 });
  });

  test('limits may change, and a shard that got nothing is not made', async () => {
    const trial = await openTrial();
    trial.engine.limits = { ...trial.engine.limits, seriesPerDatabase: 0 };
    expect(trial.write([point('m', 1n, 1)])).toMatchObject({ written: 0, dropped: 1 });
    expect(trial.engine.stats().shards).toBe(0);
    trial.engine.limits = { ...trial.engine.limits, seriesPerDatabase: 1 };
    expect(trial.write([point('m', 1n, 1), point('m', week, 1)])).toMatchObject({ written: 1 });
    expect(trial.engine.stats().shards).toBe(1);
  });

  test('more shards than one batch may make', async () => {
    const trial = await openTrial();
    trial.change({
      kind: 'alterRetentionPolicy',
      database: 'd',
      name: 'autogen',
      policy: { shardGroupDuration: hour },
    });
    const points = Array.from({ length: 259 }, (_, n) => point('m', BigInt(n) * hour, n));
    expect(trial.write(points)).toEqual({
      written: 256,
      dropped: 3,
      error: 'more than 256 new shards in one batch',
    });
  });

  test('more shards than a database may have', async () => {
    const trial = await openTrial({ maxShards: 3 });
    const error = 'max-shards-per-database limit exceeded: (3)';
    const refused = { written: 0, dropped: 1, error };
    const weeks = [5n, 0n, 2n].map((n) => point('m', n * week, 1));
    expect(trial.write(weeks)).toMatchObject({ written: 3, dropped: 0 });
    expect(trial.write([point('m', 3n * week, 1)])).toEqual(refused);
    expect(trial.write([point('m', 2n * week + 1n, 1)])).toMatchObject({ written: 1 });
    trial.delete('series', { measurement: 'm' });
    expect(trial.write([point('m', 3n * week, 1)])).toMatchObject({ written: 1 });
  });

  test('more shards than the databases of a tenant may have together', async () => {
    const trial = await openTrial({ maxShards: 3, maxTenantShards: 4 });
    const { engine } = trial;
    for (const database of ['e', 'f', 'other']) trial.change({ kind: 'createDatabase', database });
    let counts = 0;
    engine.databasesOfTenant = (database) => {
      counts++;
      return database === 'other' ? ['other'] : ['d', 'e', 'f', 'gone'];
    };
    const weeks = (...numbers: bigint[]) => numbers.map((n) => point('m', n * week, 1));
    expect(trial.writeTo('d', weeks(0n, 1n, 2n))).toMatchObject({ written: 3, dropped: 0 });
    expect(counts, 'counted once a batch').toBe(1);
    expect(trial.writeTo('e', weeks(0n, 1n, 2n))).toEqual({
      written: 1,
      dropped: 2,
      error: 'max-shards-per-tenant limit exceeded: (4)',
    });
    expect(trial.writeTo('f', weeks(0n))).toMatchObject({ written: 0, dropped: 1 });
    // What is there goes on, as do others.
    counts = 0;
    expect(trial.writeTo('e', weeks(0n))).toMatchObject({ written: 1 });
    expect(counts, 'nothing is counted for shards that are there').toBe(0);
    expect(trial.writeTo('other', weeks(0n, 1n, 2n))).toMatchObject({ written: 3 });
    trial.change({ kind: 'dropDatabase', database: 'd' });
    expect(trial.writeTo('f', weeks(0n, 1n, 2n))).toMatchObject({ written: 3 });
  });

  test('points of many weeks in any order go to the shards of their weeks', async () => {
    const trial = await openTrial();
    const points = Array.from({ length: 200 }, (_, n) => {
      const at = BigInt((n * 37) % 100) * week + BigInt(n);
      return point(`m,h=${n % 3}`, at, n);
    });
    expect(trial.write(points, '', 0)).toMatchObject({ written: 200, dropped: 0 });
    const spans = trial.engine.shards().map(({ startSeconds, seconds }) => [startSeconds, seconds]);
    const expected = Array.from({ length: 100 }, (_, n) => [n * 604_800, 604_800]);
    expect(spans.sort((a, b) => a[0]! - b[0]!)).toEqual(expected);
    expect(trial.read()).toHaveLength(200);
  });

  test('values of a tag beyond a limit', async () => {
    const trial = await openTrial({ limits: { valuesPerTag: 2 } });
    const keys = ['m,h=a', 'm,h=b', 'm,h=c', 'm,h=b,k=1', 'n,h=c'];
    const error = 'max-values-per-tag limit exceeded (2/2): measurement="m" tag="h" value="c"';
    const outcome = { written: 4, dropped: 1, error };
    const points = keys.map((key) => point(key, 1n, 1));
    expect(trial.write(points)).toEqual(outcome);
    expect(trial.write(points)).toEqual(outcome);
    expect(inOneGo(trial.engine.tagValues({ database: 'd', measurement: 'm' }, 'h'))).toEqual([
      'a',
      'b',
    ]);
  });
});

describe('the schema', () => {
  const equal = (tag: string, value: string): SeriesFilter => ({ kind: 'equal', tag, value });

  test('over shards, by filter, range and policy', async () => {
    const trial = await openTrial();
    trial.change({
      kind: 'createRetentionPolicy',
      database: 'd',
      name: 'p',
      policy: { duration: 0n },
    });
    trial.write([
      { series: 'cpu,h=a,r=x', time: 0n, fields: { u: 1, s: 'x' } },
      { series: 'mem,h=a', time: 0n, fields: { free: i(1) } },
    ]);
    trial.write([point('cpu,h=b', week, 1, 'u')]);
    trial.write([point('disk,h=c', 0n, 1, 'u')], 'p');
    const { engine } = trial;
    const database = 'd';
    expect(inOneGo(engine.measurements({ database }))).toEqual(['cpu', 'disk', 'mem']);
    expect(inOneGo(engine.measurements({ database, retentionPolicy: 'p' }))).toEqual(['disk']);
    expect(inOneGo(engine.measurements({ database, from: week }))).toEqual(['cpu']);
    expect(inOneGo(engine.measurements({ database, filter: equal('h', 'a') }))).toEqual([
      'cpu',
      'mem',
    ]);
    const cpu = { database, measurement: 'cpu' };
    expect(engine.fieldKeys(cpu).map(({ name }) => name)).toEqual(['s', 'u']);
    expect(inOneGo(engine.tagKeys(cpu))).toEqual(['h', 'r']);
    expect(inOneGo(engine.tagKeys({ ...cpu, filter: equal('h', 'b') }))).toEqual(['h']);
    expect(inOneGo(engine.tagValues(cpu, 'h'))).toEqual(['a', 'b']);
    expect(inOneGo(engine.seriesKeys(cpu))).toEqual(['cpu,h=a,r=x', 'cpu,h=b']);
    expect(inOneGo(engine.seriesCardinality({ database }))).toBe(4);
    expect(inOneGo(engine.seriesCardinality({ database: 'x' }))).toBe(0);
    expect(inOneGo(engine.measurements({ database: 'x' }))).toEqual([]);
  });

  test('reading a database or policy that is not there', async () => {
    const trial = await openTrial();
    expect(() => trial.read(['v'], { database: 'x' })).toThrow('database not found: x');
    expect(() => trial.read(['v'], { retentionPolicy: 'x' })).toThrow(
      'retention policy not found: x',
    );
    expect(trial.read(['v'], { measurement: 'x' })).toEqual([]);
  });
});

describe('deleting', () => {
  async function filled(): Promise<EngineTrial> {
    const trial = await openTrial();
    for (const key of ['m,h=a', 'm,h=b', 'n']) {
      trial.write([1n, 2n, 3n, week, week + 1n].map((time) => point(key, time, 1)));
    }
    return trial;
  }
  const times = (trial: EngineTrial, measurement = 'm'): string[] =>
    trial.read(['v'], { measurement }).map(([key, time]) => `${key} ${time}`);
  const keysOf = (trial: EngineTrial): string[] =>
    inOneGo(trial.engine.seriesKeys({ database: 'd' }));

  test.each(['in heads', 'in files'])('points in a range, %s', async (where) => {
    const trial = await filled();
    if (where === 'in files') await trial.engine.checkpoint();
    const filter: SeriesFilter = { kind: 'equal', tag: 'h', value: 'a' };
    trial.delete('points', { measurement: 'm', filter, from: 2n, to: week });
    const b = [1n, 2n, 3n, week, week + 1n].map((time) => `m,h=b ${time}`);
    expect(times(trial)).toEqual(['m,h=a 1', `m,h=a ${week + 1n}`, ...b]);
    trial.write([point('m,h=a', 2n, 9)]);
    expect(times(trial)).toEqual(['m,h=a 1', 'm,h=a 2', `m,h=a ${week + 1n}`, ...b]);
    expect(keysOf(trial)).toEqual(['m,h=a', 'm,h=b', 'n']);
  });

  test('the last point of a series takes it off the lists', async () => {
    const trial = await filled();
    const filter: SeriesFilter = { kind: 'equal', tag: 'h', value: 'a' };
    trial.delete('points', { measurement: 'm', filter, from: 2n });
    expect(keysOf(trial)).toEqual(['m,h=a', 'm,h=b', 'n']);
    trial.delete('points', { measurement: 'm', filter, to: 1n });
    expect(keysOf(trial)).toEqual(['m,h=b', 'n']);
    trial.write([point('m,h=a', 3n, 7)]);
    expect(times(trial).slice(0, 2)).toEqual(['m,h=a 3', 'm,h=b 1']);
  });

  test('series, of all shards', async () => {
    const trial = await filled();
    trial.delete('series', { measurement: 'm' });
    expect(times(trial)).toEqual([]);
    expect(inOneGo(trial.engine.measurements({ database: 'd' }))).toEqual(['n']);
    expect(times(trial, 'n')).toHaveLength(5);
  });

  test('the last series of a shard makes room for fields of other types', async () => {
    const trial = await filled();
    trial.delete('series');
    expect(trial.engine.stats()).toMatchObject({ shards: 0, series: 0 });
    expect(trial.write([point('m,h=a', 1n, 'text')])).toMatchObject({ written: 1 });
  });

  test('in an unknown database', async () => {
    const trial = await filled();
    expect(() => trial.delete('points', { database: 'x' })).toThrow('database not found: x');
  });

  test('what is too old goes by shards', async () => {
    const trial = await filled();
    trial.change({
      kind: 'alterRetentionPolicy',
      database: 'd',
      name: 'autogen',
      policy: { duration: week },
    });
    const retain = (now: bigint): void =>
      trial.enter((into) => trial.engine.prepareRetention(Number(now / 1_000_000n), into));
    retain(2n * week - second);
    expect(times(trial)).toHaveLength(10);
    retain(2n * week);
    expect(times(trial)).toEqual([
      `m,h=a ${week}`,
      `m,h=a ${week + 1n}`,
      `m,h=b ${week}`,
      `m,h=b ${week + 1n}`,
    ]);
  });

  test('a database, with its files once a checkpoint does without them', async () => {
    const trial = await filled();
    await trial.engine.checkpoint();
    const files = () => [1, 2].flatMap((shard) => trial.disk.list(`${directory}/shard-0-${shard}`));
    expect(files().length).toBeGreaterThan(2);
    trial.change({ kind: 'dropDatabase', database: 'd' });
    expect(trial.engine.databases()).toEqual([]);
    expect(files().length).toBeGreaterThan(2);
    await trial.engine.checkpoint();
    expect(files()).toEqual([]);
    expect(await trial.reopen('close')).toBe(trial.log.length);
    expect(trial.engine.databases()).toEqual([]);
  });
});
