// The head against a plain model: every row by itself, in a list.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Column } from '../../../universal-row/series/column.ts';
import type { FieldType } from '../../../universal-row/series/field-type.ts';
import { valueAt } from '../testing/read-points.ts';
import { MemoryHead } from './memory-head.ts';
import { PagePool } from './page-pool.ts';

const types: readonly FieldType[] = ['float', 'integer', 'unsigned', 'string', 'boolean', 'float'];
const fields = types.map((_, number) => number);

/** By field: a value, or undefined. */
type Values = readonly (number | bigint | string | boolean | undefined)[];

interface Row {
  series: number;
  time: number;
  values: Values;
}

const integer = fc.oneof(
  fc.integer({ min: -100, max: 100 }),
  fc.integer({ min: -30_000, max: 30_000 }),
  fc.integer(),
  fc.maxSafeInteger(),
);
const bigInteger = fc.oneof(
  { weight: 20, arbitrary: integer },
  { weight: 1, arbitrary: fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n) },
);
const bigUnsigned = fc.oneof(
  { weight: 20, arbitrary: fc.nat() },
  { weight: 1, arbitrary: fc.bigInt(0n, 2n ** 64n - 1n) },
);
const sometimes = <T>(arbitrary: fc.Arbitrary<T>, freq: number) =>
  fc.option(arbitrary, { nil: undefined, freq });

const row: fc.Arbitrary<Row> = fc.record({
  series: fc.nat(5),
  time: fc.nat(40),
  values: fc.tuple(
    sometimes(fc.double(), 20),
    sometimes(bigInteger, 4),
    sometimes(bigUnsigned, 2),
    sometimes(fc.string({ unit: 'binary', maxLength: 5 }), 2),
    sometimes(fc.boolean(), 3),
    // A field that few rows have.
    fc.oneof(
      { weight: 30, arbitrary: fc.constant(undefined) },
      { weight: 1, arbitrary: fc.double() },
    ),
  ),
});

/** Series 0 and 1 are of measurement 0, 2 and 3 of 1, and so on. */
const measurementOf = (series: number): number => series >> 1;

function append(head: MemoryHead, measurement: number, rows: readonly Row[]): void {
  const texts: Buffer[] = [];
  const ends: number[] = [];
  const columns = types.map((type, field): Column | undefined => {
    const values = rows.map((one) => one.values[field]);
    if (values.every((value) => value === undefined)) return undefined;
    const isWide = values.some((value) => typeof value === 'bigint');
    const numbers = values.map((value) => {
      if (typeof value !== 'string') return Number(value);
      texts.push(Buffer.from(value));
      ends.push((ends.at(-1) ?? 0) + texts.at(-1)!.length);
      return ends.length - 1;
    });
    const bits = BigInt64Array.from(isWide ? values : [], (value) => BigInt(value ?? 0));
    return {
      type,
      numbers: Float64Array.from(numbers),
      wide: isWide ? (type === 'unsigned' ? new BigUint64Array(bits.buffer) : bits) : undefined,
      texts: undefined,
      present: values.includes(undefined)
        ? Uint8Array.from(values, (value) => (value === undefined ? 0 : 1))
        : undefined,
    };
  });
  const series = Uint32Array.from(rows, (one) => one.series);
  const times = Float64Array.from(rows, (one) => one.time);
  const text = { text: Buffer.concat(texts), textEnds: Uint32Array.from(ends) };
  head.append(measurement, rows.length, series, times, columns, text);
}

/** Rows as texts: time and values, field by field those of the last row that has one. */
function expected(rows: readonly Row[], series: number, from: number, to: number): string[] {
  const byTime = new Map<number, (string | undefined)[]>();
  for (const one of rows) {
    if (one.series !== series || one.time < from || one.time > to) continue;
    const merged = byTime.get(one.time) ?? types.map(() => undefined);
    byTime.set(one.time, merged);
    for (const [field, value] of one.values.entries()) {
      if (value !== undefined) merged[field] = shown(value, types[field]!);
    }
  }
  return [...byTime].sort(([a], [b]) => a - b).map(([time, values]) => `${time}: ${values.join()}`);
}

function shown(value: number | bigint | string | boolean, type: FieldType): string {
  if (type === 'string') return JSON.stringify(Buffer.from(value as string).toString());
  return type === 'integer' || type === 'unsigned' ? `${BigInt(value)}i` : String(value);
}

function read(head: MemoryHead, series: number, from = 0, to = 100, mark?: object): string[] {
  const rows = head.read(series, fields, from, to, mark);
  return Array.from({ length: rows.count }, (_, i) => {
    const values = rows.columns.map((column) => column && valueAt(column, i));
    return `${rows.times[i]}: ${values.join()}`;
  });
}

function appendAll(head: MemoryHead, rows: readonly Row[]): void {
  for (const measurement of [0, 1, 2]) {
    const some = rows.filter(({ series }) => measurementOf(series) === measurement);
    if (some.length > 0) append(head, measurement, some);
  }
}

test('reads what was appended, in any order, merged where times meet', () => {
  const batches = fc.array(fc.array(row, { maxLength: 40 }), { maxLength: 6 });
  fc.assert(
    fc.property(batches, fc.nat(40), fc.nat(40), (appended, from, to) => {
      const head = new MemoryHead(new PagePool(0));
      const all: Row[] = [];
      for (const rows of appended) {
        appendAll(head, rows);
        all.push(...rows);
        for (let series = 0; series < 6; series++) {
          expect(read(head, series)).toEqual(expected(all, series, 0, 100));
          expect(read(head, series, from, to)).toEqual(expected(all, series, from, to));
        }
      }
      expect(head.rows).toBe(all.length);
      const present = [...new Set(all.map(({ series }) => series))].sort((a, b) => a - b);
      expect([...head.series()]).toEqual(present);
    }),
    { numRuns: 150 },
  );
});

test('a mark keeps what was there, whatever is appended and deleted later', () => {
  const step = fc.oneof(
    fc.array(row, { minLength: 1, maxLength: 10 }),
    fc.record({ series: fc.nat(5), from: fc.nat(40), to: fc.nat(40) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      const head = new MemoryHead(new PagePool(0));
      let rows: Row[] = [];
      const views: { mark: object; rows: Row[] }[] = [];
      for (const one of steps) {
        if (Array.isArray(one)) {
          appendAll(head, one);
          rows.push(...one);
        } else {
          const { series, from, to } = one;
          head.delete(series, from, to);
          rows = rows.filter(
            (each) => each.series !== series || each.time < from || each.time > to,
          );
        }
        views.push({ mark: head.mark(), rows: [...rows] });
      }
      for (const view of views) {
        for (let series = 0; series < 6; series++) {
          expect(read(head, series, 0, 100, view.mark)).toEqual(
            expected(view.rows, series, 0, 100),
          );
        }
      }
    }),
    { numRuns: 150 },
  );
});

describe('over many pages', () => {
  const count = 20_000;
  const pool = new PagePool(1 << 26);

  function filled(): MemoryHead {
    const head = new MemoryHead(pool);
    for (let from = 0; from < count; from += 1234) {
      const rows = Array.from({ length: Math.min(1234, count - from) }, (_, i): Row => {
        const n = from + i;
        return {
          series: n % 3,
          time: n,
          values: [
            n / 2,
            n,
            undefined,
            n % 7 === 0 ? `t${n % 5}` : undefined,
            n % 2 === 0,
            n % 5000 === 0 ? n : undefined,
          ],
        };
      });
      append(head, 0, rows);
    }
    return head;
  }

  test('each series has its rows, and pages are used again', () => {
    for (let round = 0; round < 2; round++) {
      const head = filled();
      for (const series of [0, 1, 2]) {
        const rows = read(head, series, 0, count);
        const numbers = Array.from({ length: count }, (_, n) => n).filter((n) => n % 3 === series);
        expect(rows).toEqual(
          numbers.map((n) => {
            const text = n % 7 === 0 ? `"t${n % 5}"` : '';
            return `${n}: ${n / 2},${n}i,,${text},${n % 2 === 0},${n % 5000 === 0 ? n : ''}`;
          }),
        );
        expect([head.minTimeOf(series), head.maxTimeOf(series)]).toEqual([series, numbers.at(-1)]);
        expect(read(head, series, numbers.at(-1), numbers.at(-1))).toHaveLength(1);
      }
      const { bytes } = head;
      // 12 bytes for time and predecessor, 8, 4 and 1 for values, and little for what is rare.
      expect(bytes).toBeGreaterThan(count * 25);
      expect(bytes).toBeLessThan(count * 40);
      head.release();
      expect(pool.idleBytes).toBeGreaterThan(0);
    }
  });

  test('a field in few rows takes little memory', () => {
    const head = filled();
    const before = head.bytes;
    const wanted = new Map<number, string>();
    for (let field = 6; field < 500; field++) {
      const columns: (Column | undefined)[] = Array(field).fill(undefined);
      const numbers = Float64Array.of(field);
      columns.push({
        type: 'float',
        numbers,
        wide: undefined,
        texts: undefined,
        present: undefined,
      });
      const time = count + field;
      const none = { text: Buffer.alloc(0), textEnds: new Uint32Array(0) };
      head.append(0, 1, Uint32Array.of(0), Float64Array.of(time), columns, none);
      wanted.set(time, String(field));
    }
    expect(head.bytes - before).toBeLessThan(500 * 300);
    const all = Array.from({ length: 500 }, (_, field) => field);
    const rows = head.read(0, all, count + 6, count + 500);
    expect(rows.count).toBe(494);
    for (let i = 0; i < rows.count; i++) {
      const present = rows.columns.flatMap((column) => (column && valueAt(column, i)) ?? []);
      expect(present).toEqual([wanted.get(rows.times[i]!)]);
    }
  });
});

test('an empty head has nothing', () => {
  const head = new MemoryHead(new PagePool(0));
  expect(head.has(3)).toBe(false);
  expect([...head.series()]).toEqual([]);
  expect([head.minTimeOf(3), head.maxTimeOf(3)]).toEqual([Infinity, -Infinity]);
  expect(read(head, 3)).toEqual([]);
});
