// Encoded rows decode to the same rows, wherever the encoded bytes lie in memory.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { RecordBatchWriter } from '../../../universal-row/record-batch.ts';
import type { PointColumn } from '../../../universal-row/series/point-batch.ts';
import { batchOf, type FieldValue, TestSeriesCache } from '../testing/point-batches.ts';
import {
  putColumn,
  putSeriesNumbers,
  putStrings,
  putTimes,
  readRows,
  type EncodedRows,
} from './row-codec.ts';
import { Scratch } from './scratch.ts';
import { putU32, OpReader } from './op-codec.ts';

const integer = fc.oneof(
  fc.integer({ min: -128, max: 127 }),
  fc.integer({ min: -40_000, max: 40_000 }),
  fc.integer(),
  fc.maxSafeInteger(),
  fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n),
);
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 6 }),
  fc.constant('x'.repeat(300)),
  fc.constant('y'.repeat(70_000)),
);
const rarely = <T>(arbitrary: fc.Arbitrary<T>, freq: number) =>
  fc.option(arbitrary, { nil: undefined, freq });

const row = fc.record({
  f: rarely(fc.double(), 30),
  i: rarely(
    integer.map((value) => ({ integer: value })),
    3,
  ),
  s: rarely(text, 2),
  b: rarely(fc.boolean(), 1),
  rare: fc.oneof(
    { weight: 60, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.double() },
  ),
});
const rows = fc.array(
  fc.tuple(row, fc.nat({ max: 200_000 }), fc.oneof(fc.constant(5), fc.maxSafeInteger())),
  { minLength: 1, maxLength: 120 },
);

function wordsOf(
  columns: readonly PointColumn[],
  batch: { text: Buffer; textEnds: Uint32Array },
  series: Uint32Array,
  times: Float64Array,
  selected: Uint32Array | undefined,
  seriesCount: number,
  shift: number,
): { into: RecordBatchWriter; start: number } {
  const into = new RecordBatchWriter();
  const scratch = new Scratch();
  into.pos = shift;
  const count = series.length;
  putU32(into, count);
  putSeriesNumbers(into, scratch, series, count, seriesCount);
  putTimes(into, scratch, times, count);
  const at = into.pos;
  putU32(into, 0);
  const put = columns.filter(
    (column, field) => putColumn(into, scratch, field, column, count, selected, batch) > 0,
  );
  into.buf.writeUInt32LE(put.length, at);
  const textAt = into.pos;
  putU32(into, 0);
  for (const column of put) {
    if (column.type === 'string') putStrings(into, column, count, selected, batch);
  }
  into.buf.writeUInt32LE(into.pos - textAt - 4, textAt);
  return { into, start: shift };
}

function read(into: RecordBatchWriter, start: number, end: number, fields: number): EncodedRows {
  const reader = new OpReader();
  reader.begin(into.buf, start, end);
  const rows = readRows(reader, fields);
  expect(reader.pos).toBe(end);
  return rows;
}

/** By row and field. */
function valuesOf({ rows: count, columns, texts }: EncodedRows): (FieldValue | undefined)[][] {
  return Array.from({ length: count }, (_, i) =>
    columns.map((column): FieldValue | undefined => {
      if (column === undefined || column.present?.[i] === 0) return undefined;
      const number = column.numbers[i]!;
      if (column.type === 'float') return number;
      if (column.type === 'boolean') return number === 1;
      if (column.type === 'integer') return { integer: BigInt(column.wide?.[i] ?? number) };
      const start = number === 0 ? 0 : texts.textEnds[number - 1]!;
      return texts.text.toString('utf8', start, texts.textEnds[number]);
    }),
  );
}

function expectedOf(value: FieldValue | undefined): FieldValue | undefined {
  if (typeof value === 'string') return Buffer.from(value).toString();
  return typeof value === 'object' ? { integer: BigInt(value.integer) } : value;
}

test('rows, all or some of them, come out as they went in', () => {
  fc.assert(
    fc.property(
      rows,
      fc.boolean(),
      fc.nat(15),
      fc.constantFrom(3, 200_001),
      (points, some, shift, seriesCount) => {
        const fields = (one: (typeof points)[number][0]) =>
          Object.fromEntries(
            Object.entries(one).filter(([, value]) => value !== undefined),
          ) as Record<string, FieldValue>;
        const batch = batchOf(
          new TestSeriesCache(),
          points.map(([one]) => ({ series: 'm', fields: fields(one), time: 0n })),
        );
        const columns = batch.groups[0]!.columns;
        const picked = points.map((_, i) => i).filter((i) => !some || i % 3 !== 1);
        const selected = some ? Uint32Array.from(picked) : undefined;
        const series = Uint32Array.from(picked, (i) => points[i]![1] % seriesCount);
        const times = Float64Array.from(picked, (i) => points[i]![2]);
        const { into, start } = wordsOf(
          columns,
          batch,
          series,
          times,
          selected,
          seriesCount,
          shift,
        );
        const rows = read(into, start, into.pos, columns.length);
        expect(rows.series).toEqual(series);
        expect(rows.times).toEqual(times);
        const names = columns.map(({ field }) => field);
        expect(valuesOf(rows)).toEqual(
          picked.map((i) => {
            const one = points[i]![0] as Record<string, FieldValue | undefined>;
            return names.map((name) => expectedOf(one[name]));
          }),
        );
      },
    ),
    { numRuns: 200 },
  );
});

test('rows that are cut short or changed are refused, or are other rows', () => {
  fc.assert(
    fc.property(rows, fc.nat(), fc.nat(255), fc.boolean(), (points, at, byte, cut) => {
      const fields = points.map(([one], i) => ({ ...one, f: i }));
      const batch = batchOf(
        new TestSeriesCache(),
        fields.map((one) => ({
          series: 'm',
          fields: Object.fromEntries(
            Object.entries(one).filter(([, value]) => value !== undefined),
          ) as Record<string, FieldValue>,
          time: 0n,
        })),
      );
      const columns = batch.groups[0]!.columns;
      const series = new Uint32Array(points.length);
      const times = new Float64Array(points.length);
      const { into } = wordsOf(columns, batch, series, times, undefined, 3, 0);
      let end = into.pos;
      if (cut) end = at % end;
      else into.buf[at % end] = byte;
      const reader = new OpReader();
      reader.begin(into.buf, 0, end);
      try {
        readRows(reader, columns.length);
      } catch (error) {
        expect(error).toBeInstanceOf(RangeError);
      }
      expect(reader.pos).toBeLessThanOrEqual(end);
      if (cut) expect(() => read(into, 0, end, columns.length)).toThrow();
    }),
    { numRuns: 200 },
  );
});

test('small values take few bytes', () => {
  const count = 1000;
  const points = Array.from({ length: count }, (_, i) => ({
    series: 'm',
    fields: { i: { integer: i % 100 }, b: i % 2 === 0 },
    time: 0n,
  }));
  const batch = batchOf(new TestSeriesCache(), points);
  const columns = batch.groups[0]!.columns;
  const times = new Float64Array(count).fill(7);
  const { into } = wordsOf(columns, batch, new Uint32Array(count), times, undefined, 1, 0);
  // Two for the series, one for each value.
  expect(into.pos).toBeLessThan(count * 4 + 100);
});
