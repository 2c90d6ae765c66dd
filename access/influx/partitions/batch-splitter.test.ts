import { expect, test } from 'vitest';
import {
  batchOf,
  type FieldValue,
  type TestPoint,
  TestSeriesCache,
} from '../../../engines/tsm/testing/point-batches.ts';
import { Random } from '../../../test/support/random.ts';
import type { PointBatch, PointColumn } from '../../../universal-row/series/point-batch.ts';
import { seriesPartition } from '../../../universal-row/series/series-partition.ts';
import { BatchSplitter, SeriesPlaces } from './batch-splitter.ts';

function valueOf({ text, textEnds }: PointBatch, column: PointColumn, row: number): unknown {
  const number = column.numbers[row]!;
  switch (column.type) {
    case 'string':
      return text.toString('utf8', number === 0 ? 0 : textEnds[number - 1]!, textEnds[number]!);
    case 'integer':
      return String(column.wide === undefined ? number : column.wide[row]!);
    default:
      return number;
  }
}

/** The points of a batch as texts, in their order. */
function pointsOf(batch: PointBatch): string[] {
  const points: string[] = [];
  let rows = 0;
  for (const group of batch.groups) {
    rows += group.rows;
    for (const column of group.columns) {
      const { present, count } = column;
      const there = present === undefined ? group.rows : present.slice(0, group.rows);
      expect(typeof there === 'number' ? there : there.reduce((sum, n) => sum + n, 0)).toBe(count);
    }
    for (let row = 0; row < group.rows; row++) {
      const handle = group.series[row]!;
      const key = batch.cache
        .keys(handle)
        .toString('utf8', batch.cache.keyStart(handle), batch.cache.keyEnd(handle));
      const fields = group.columns
        .filter(({ present }) => present === undefined || present[row] === 1)
        .map((column) => `${column.field} ${column.type} ${String(valueOf(batch, column, row))}`);
      const time = BigInt(batch.baseSeconds) * 1_000_000_000n + BigInt(group.times[row]!);
      points.push(`${group.measurement} ${key} ${time} ${fields.join(', ')}`);
    }
  }
  expect(batch.rows).toBe(rows);
  return points;
}

function randomPoints(random: Random): TestPoint[] {
  return Array.from({ length: random.below(80) }, () => {
    const fields: Record<string, FieldValue> = {};
    if (random.chance(0.6)) fields['f'] = random.below(100) / 4;
    if (random.chance(0.4)) fields['i'] = { integer: random.below(100) };
    if (random.chance(0.1)) fields['wide'] = { integer: 2n ** 60n + BigInt(random.below(9)) };
    if (random.chance(0.3)) fields['s'] = `text ${random.below(1000)}`;
    if (random.chance(0.3) || Object.keys(fields).length === 0) fields['b'] = random.chance(0.5);
    // The same field with two types.
    if (random.chance(0.1)) fields['f'] = 'text';
    const series = `${random.pick(['m', 'n'])},host=${random.below(40)}`;
    return { series, fields, time: BigInt(random.below(1e9)) * 1000n };
  });
}

test('each point goes to the partition of its series, in order and whole', () => {
  for (let seed = 0; seed < 300; seed++) {
    const random = new Random(seed);
    const partitions = 2 + random.below(5);
    const cache = new TestSeriesCache();
    const splitter = new BatchSplitter(new SeriesPlaces(partitions));
    // The same arrays are used for all of them.
    for (let batches = 0; batches < 4; batches++) {
      if (random.chance(0.3)) cache.empty();
      const batch = batchOf(cache, randomPoints(random));
      const parts = splitter.split(batch).map(pointsOf);
      const wanted: string[][] = Array.from({ length: partitions }, () => []);
      for (const point of pointsOf(batch)) {
        const key = Buffer.from(point.split(' ')[1]!);
        wanted[seriesPartition(key, 0, key.length, partitions)]!.push(point);
      }
      expect(parts, `seed ${seed}`).toEqual(wanted);
    }
  }
});

test('a batch of one partition is not copied', () => {
  const cache = new TestSeriesCache();
  const batch = batchOf(cache, [{ series: 'm,host=a', fields: { f: 1 }, time: 1n }]);
  const parts = new BatchSplitter(new SeriesPlaces(4)).split(batch);
  const filled = parts.filter(({ rows }) => rows > 0);
  expect(filled).toHaveLength(1);
  expect(filled[0]!.groups[0]).toBe(batch.groups[0]);
});

test('the partition of a series never changes', () => {
  const of = (key: string, partitions: number): number => {
    const bytes = Buffer.from(key);
    return seriesPartition(bytes, 0, bytes.length, partitions);
  };
  const keys = ['cpu,host=a', 'cpu,host=b', 'cpu,host=c', 'mem', 'disk,path=/,host=x'];
  expect(keys.map((key) => of(key, 4))).toEqual([1, 0, 1, 3, 2]);
  expect(keys.map((key) => of(key, 64))).toEqual([29, 4, 27, 49, 37]);
});

test('series are spread evenly', () => {
  const counts = Array.from({ length: 8 }, () => 0);
  for (let n = 0; n < 8000; n++) {
    const key = Buffer.from(`cpu,hostname=host_${n},region=eu-west-1`);
    counts[seriesPartition(key, 0, key.length, 8)]!++;
  }
  expect(Math.min(...counts)).toBeGreaterThan(900);
  expect(Math.max(...counts)).toBeLessThan(1100);
});
