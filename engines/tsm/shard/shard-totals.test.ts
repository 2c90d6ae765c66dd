// Totals by group, held against what a scan gives of the same series row by row.

import { inOneGo } from '../../../universal-row/slices.ts';
import { expect, test } from 'vitest';
import { FaultyDisk } from '../../../storage-node/disk/faulty-disk.ts';
import type { Scalar } from '../../../universal-row/series/column.ts';
import type { SeriesFilter } from '../../../contracts/series-store.ts';
import { openShard } from './open-shard.ts';
import type { Shard } from './shard.ts';
import type { ShardTotals, TotalsRequest } from './shard-totals.ts';
import { appendPoints, findSeries, type ModelPoint } from './testing/point-columns.ts';
import { seeded } from './testing/seeded.ts';
import { type ModelField, type ModelRow, readInterleaved } from './testing/shard-model.ts';
import { directory, smallParts, startSeconds } from './testing/shard-trial.ts';

const fields: readonly ModelField[] = [
  { name: 'float', type: 'float' },
  { name: 'integer', type: 'integer' },
  { name: 'string', type: 'string' },
  { name: 'boolean', type: 'boolean' },
];
const names = [...fields.map(({ name }) => name), 'nobody'];
const seriesCount = 600;

interface Total {
  rows: number;
  counts: number[];
  min: (bigint | number | undefined)[];
  max: (bigint | number | undefined)[];
  integers: bigint;
}

function filled(seed: number): Shard {
  const rng = seeded(seed);
  const below = (limit: number): number => Math.floor(rng.next() * limit);
  const clock = { now: () => 0, monotonic: () => 0 };
  const shard = openShard({
    disk: new FaultyDisk({ rng }),
    clock,
    directory,
    startSeconds,
    parts: smallParts(),
  });
  const value = (field: string): Scalar => {
    if (field === 'float') return below(1000) / 8 - 60;
    if (field === 'string') return `t${below(5)}`;
    if (field === 'boolean') return below(2);
    // Sums go beyond 2^53, and some values are there already.
    const wide = below(40) === 0;
    return wide ? 2n ** 60n + BigInt(below(9)) : below(2) * (Number.MAX_SAFE_INTEGER - below(9));
  };
  for (let round = 0; round < 3; round++) {
    const points: ModelPoint[] = [];
    for (let s = 0; s < seriesCount; s++) {
      if (below(3) > 0) continue;
      const key = `m,a=${s % 7}${s % 5 === 0 ? '' : `,b=x${s % 3}`},host=${s}`;
      // Few have many rows, and blocks of their own.
      const rows = s % 50 === 0 ? 30 : 1 + below(3);
      const start = below(800);
      for (let row = 0; row < rows; row++) {
        const present = fields.filter(() => below(4) > 0);
        const kept = present.length > 0 ? present : fields.slice(0, 1);
        const values = new Map(kept.map(({ name }) => [name, value(name)]));
        points.push({ key, time: start + row * 7, values });
      }
    }
    const isWide = points.some(({ values }) => typeof values.get('integer') === 'bigint');
    for (const { values } of points) {
      const integer = values.get('integer');
      if (isWide && integer !== undefined)
        (values as Map<string, Scalar>).set('integer', BigInt(integer));
    }
    appendPoints(shard, 'm', fields, points);
    if (round === 2) break;
    shard.sealHead();
    while (shard.flushSlice(0));
  }
  return shard;
}

const nothing = (wanted: readonly string[]): Total => ({
  rows: 0,
  counts: wanted.map(() => 0),
  min: wanted.map(() => undefined),
  max: wanted.map(() => undefined),
  integers: 0n,
});

function addRow(total: Total, { values }: ModelRow, wanted: readonly string[]): void {
  total.rows++;
  values.forEach((value, f) => {
    if (value === undefined) return;
    total.counts[f]!++;
    if (typeof value === 'string') return;
    if (total.min[f] === undefined || value < total.min[f]) total.min[f] = value;
    if (total.max[f] === undefined || value > total.max[f]) total.max[f] = value;
    if (wanted[f] === 'integer') total.integers = BigInt.asIntN(64, total.integers + BigInt(value));
  });
}

/** By tags and bucket. */
function fromScan(shard: Shard, request: TotalsRequest): Map<string, Total> {
  const totals = new Map<string, Total>();
  const scan = inOneGo(shard.scan({ ...request, summaries: undefined, descending: false }).slices);
  const width = Number(request.summaries!.width);
  const pieces = readInterleaved(Array.from(scan.series, (series) => scan.cursor(series)));
  pieces.forEach((all, i) => {
    const tags = request.tags.map((tag) => shard.index.tagValue(scan.series[i]!, tag)).join();
    for (const row of all.flat() as ModelRow[]) {
      // Buckets are told by 1970, as the shard's start is a whole number of them.
      const key = `${tags} ${width === 0 ? 0 : Math.floor(row.time / width)}`;
      const total = totals.get(key) ?? nothing(request.fields);
      totals.set(key, total);
      addRow(total, row, request.fields);
    }
  });
  scan.close();
  return totals;
}

function totalsOf(shard: Shard, request: TotalsRequest): ShardTotals | undefined {
  const opening = shard.totals(request);
  const totals = inOneGo(opening.slices);
  if (totals === undefined) opening.close();
  return totals;
}

function fromTotals(shard: Shard, request: TotalsRequest): Map<string, Total> | undefined {
  const opened = totalsOf(shard, request);
  if (opened === undefined) return undefined;
  while (opened.work());
  const totals = new Map<string, Total>();
  const width = Number(request.summaries!.width);
  opened.groups.forEach((values, group) => {
    for (const { base, minTime, count, columns } of opened.summaries(group)) {
      expect(base).toBe(startSeconds);
      const sum = columns[request.fields.indexOf('integer')]?.sum;
      totals.set(`${values.join()} ${width === 0 ? 0 : Math.floor(minTime / width)}`, {
        rows: count,
        counts: columns.map((column) => column?.count ?? 0),
        min: columns.map((column) => column?.min as number | undefined),
        max: columns.map((column) => column?.max as number | undefined),
        integers: BigInt(sum ?? 0),
      });
    }
  });
  opened.close();
  return totals;
}

const filter: SeriesFilter = { kind: 'notEqual', tag: 'a', value: '3' };

test.each([1, 2, 3])('are those of the rows, seed %i', (seed) => {
  const shard = filled(seed);
  const all = { measurement: 0, fields: names, from: 0, to: 1e6, filter: undefined };
  const check = (more: Partial<TotalsRequest>, width = 0): void => {
    const summaries = { width: BigInt(width), offset: 0n };
    const request = { ...all, tags: ['a', 'b'], ...more, summaries };
    const found = fromTotals(shard, request);
    expect(found).toBeDefined();
    const expected = fromScan(shard, request);
    expect(expected.size).toBeGreaterThan(0);
    const comparable = (totals: Map<string, Total>): unknown =>
      [...totals]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([key, total]) => [
          key,
          { ...total, min: total.min.map(String), max: total.max.map(String) },
        ]);
    expect(comparable(found!)).toEqual(comparable(expected));
  };
  check({});
  check({ tags: [] });
  check({ tags: ['b', 'none'] }, 100);
  check({ filter, from: 200, to: 511 }, 64);
  check({ filter, from: 201, to: 900, fields: ['string', 'integer'] }, 1);
  shard.close();
});

test('are not told where they are nothing gained, or something is deleted', () => {
  const shard = filled(4);
  const request = { measurement: 0, fields: names, from: 0, to: 1e6, tags: ['host'] };
  expect(totalsOf(shard, request)).toBeUndefined();
  const grouped = { ...request, tags: ['a'] };
  expect(totalsOf(shard, { ...grouped, summaries: { width: 1n, offset: 0n } })).toBeUndefined();
  const opened = totalsOf(shard, grouped);
  expect(opened?.groups.length).toBe(7);
  opened?.close();
  shard.deleteRange(Uint32Array.of(findSeries(shard, 'm,a=1,b=x1,host=1')), 0, 1e6);
  let gone = 0;
  while (totalsOf(shard, grouped) !== undefined && gone < seriesCount) {
    shard.deleteRange(Uint32Array.of(gone++), 0, 1e6);
  }
  expect(totalsOf(shard, grouped)).toBeUndefined();
  shard.close();
});
