import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { BlockSummary, Column, ColumnSummary, SeriesRows } from '../series/column.ts';
import { type FieldType, fieldTypes } from '../series/field-type.ts';
import { endOfPiece, readRows, readSummary, writeRows, writeSummary } from './series-rows.ts';
import { WireError, WireReader, WireWriter } from './wire.ts';

const anyValue = fc.record({
  number: fc.double(),
  whole: fc.maxSafeInteger(),
  wide: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  text: fc.string({ unit: 'grapheme', maxLength: 12 }),
  isPresent: fc.boolean(),
});
const anyRows = fc.record({
  base: fc.integer(),
  times: fc.array(fc.maxSafeInteger(), { maxLength: 40 }),
  columns: fc.array(
    fc.option(
      fc.record({
        type: fc.constantFrom(...fieldTypes),
        isWide: fc.boolean(),
        isSparse: fc.boolean(),
        values: fc.array(anyValue, { minLength: 40, maxLength: 40 }),
      }),
      { nil: undefined },
    ),
    { maxLength: 4 },
  ),
});

type Shape = typeof anyRows extends fc.Arbitrary<infer T> ? T : never;

function rowsOf({ base, times, columns }: Shape): SeriesRows {
  const made = columns.map((column): Column | undefined => {
    if (column === undefined) return undefined;
    const { type, values } = column;
    const isWide = column.isWide && (type === 'integer' || type === 'unsigned');
    const wides = values.map(({ wide }) => wide);
    const isWhole = type !== 'float';
    return {
      type,
      numbers: Float64Array.from(values, ({ number, whole }) => (isWhole ? whole : number)),
      wide: !isWide
        ? undefined
        : type === 'integer'
          ? BigInt64Array.from(wides)
          : BigUint64Array.from(wides),
      texts: type === 'string' ? values.map(({ text }) => text) : undefined,
      present: column.isSparse
        ? Uint8Array.from(values, ({ isPresent }) => Number(isPresent))
        : undefined,
    };
  });
  return {
    kind: 'rows',
    base,
    times: Float64Array.from(times),
    count: times.length,
    columns: made,
  };
}

/** Values by row. */
function meaning({ base, times, count, columns }: SeriesRows): unknown[] {
  return Array.from({ length: count }, (_, row) => [
    base,
    times[row],
    columns.map((column) => {
      if (column === undefined) return undefined;
      if (column.present !== undefined && column.present[row] !== 1) return undefined;
      return [column.type, column.texts?.[row] ?? column.wide?.[row] ?? column.numbers[row]];
    }),
  ]);
}

test('rows arrive as they were sent, in pieces of any size', () => {
  fc.assert(
    fc.property(anyRows, fc.constantFrom(1, 50, 500, 1e6), (shape, maxBytes) => {
      const rows = rowsOf(shape);
      const found: unknown[] = [];
      for (let from = 0; from < rows.count; ) {
        const to = endOfPiece(rows, from, maxBytes);
        expect(to).toBeGreaterThan(from);
        const writer = new WireWriter();
        writeRows(writer, rows, from, to);
        const reader = new WireReader(writer.view());
        found.push(...meaning(readRows(reader, rows.columns.length)));
        reader.done();
        from = to;
      }
      expect(found).toEqual(meaning(rows));
    }),
  );
});

const anyScalar = fc.oneof(
  fc.double(),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }),
  fc.string({ unit: 'grapheme' }),
);
const anySum = fc.oneof(fc.double(), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }));
const anyColumnSummary: fc.Arbitrary<ColumnSummary> = fc.record({
  type: fc.constantFrom<FieldType>(...fieldTypes),
  count: fc.maxSafeNat(),
  first: anyScalar,
  firstTime: fc.maxSafeInteger(),
  last: anyScalar,
  lastTime: fc.maxSafeInteger(),
  min: fc.option(anyScalar, { nil: undefined }),
  max: fc.option(anyScalar, { nil: undefined }),
  sum: fc.option(anySum, { nil: undefined }),
});
const anySummary: fc.Arbitrary<BlockSummary> = fc.record({
  kind: fc.constant('summary' as const),
  base: fc.integer(),
  minTime: fc.maxSafeInteger(),
  maxTime: fc.maxSafeInteger(),
  count: fc.maxSafeNat(),
  columns: fc.array(fc.option(anyColumnSummary, { nil: undefined }), { maxLength: 4 }),
});

test('summaries arrive as they were sent', () => {
  fc.assert(
    fc.property(anySummary, (summary) => {
      const writer = new WireWriter();
      writeSummary(writer, summary);
      const reader = new WireReader(writer.view());
      expect(readSummary(reader, summary.columns.length)).toEqual(summary);
      reader.done();
    }),
  );
});

test('damaged rows and summaries are refused, or are some', () => {
  const anyChanges = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 4 });
  fc.assert(
    fc.property(anyRows, anySummary, anyChanges, fc.nat(), (shape, summary, changes, cut) => {
      const rows = rowsOf(shape);
      const ofRows = new WireWriter();
      writeRows(ofRows, rows, 0, rows.count);
      const ofSummary = new WireWriter();
      writeSummary(ofSummary, summary);
      for (const [writer, read] of [
        [ofRows, (reader: WireReader) => meaning(readRows(reader, rows.columns.length))],
        [ofSummary, (reader: WireReader) => readSummary(reader, summary.columns.length)],
      ] as const) {
        const bytes = writer.view();
        for (const [at, by] of changes) bytes[at % bytes.length]! ^= by;
        const end = changes.length === 0 ? cut % bytes.length : bytes.length;
        try {
          read(new WireReader(bytes.subarray(0, end)));
        } catch (error) {
          expect(error).toBeInstanceOf(WireError);
        }
      }
    }),
  );
});
