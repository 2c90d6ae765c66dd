import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CorruptFileError } from '../parts.ts';
import { ByteReader } from './byte-reader.ts';
import { ByteWriter } from './byte-writer.ts';
import { bitLength, decodeWholes, encodeWholes } from './whole-numbers.ts';

const most = Number.MAX_SAFE_INTEGER;
const many = (n: number, value: number) => Array.from({ length: n }, () => value);

function encoded(values: readonly number[]): Buffer {
  const out = new ByteWriter();
  encodeWholes(out, Float64Array.from(values), values.length);
  return Buffer.from(out.view());
}

function decoded(bytes: Buffer, n: number): number[] {
  const from = new ByteReader(bytes);
  const to = new Float64Array(n + 2);
  decodeWholes(from, to, 1, n);
  from.finish();
  expect(to[0]).toBe(0);
  expect(to[n + 1]).toBe(0);
  return [...to.subarray(1, n + 1)];
}

function roundTrip(values: readonly number[]): number {
  const bytes = encoded(values);
  expect(decoded(bytes, values.length)).toEqual(values);
  return bytes.length;
}

const anyWhole = fc.oneof(
  fc.nat({ max: 40 }),
  fc.nat(),
  fc.maxSafeNat(),
  fc.nat({ max: 52 }).map((bits) => 2 ** bits),
  fc.nat({ max: 53 }).map((bits) => 2 ** bits - 1),
);

test('any list reads back', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.array(anyWhole, { maxLength: 200 }),
        fc.array(fc.nat({ max: 5 }), { maxLength: 300, size: 'max' }),
        // One number nearly everywhere.
        fc.array(fc.oneof({ weight: 20, arbitrary: fc.constant(7) }, anyWhole), {
          size: 'max',
          maxLength: 300,
        }),
      ),
      (values) => {
        roundTrip(values);
      },
    ),
    { numRuns: 1000 },
  );
});

test('every width, at every place of a word', () => {
  for (let width = 1; width <= 53; width++) {
    const top = 2 ** width - 1;
    // Few enough for plain bits, and of equal width.
    for (const n of [2, 3, 22]) {
      const values = Array.from(
        { length: n },
        (_, i) => top - (i % 2 === 0 ? 0 : Math.floor(top / 3)),
      );
      const bytes = roundTrip(values);
      expect(bytes).toBeLessThanOrEqual(1 + Math.ceil((n * width) / 8));
    }
  }
});

test('numbers of very different size share a code', () => {
  const values: number[] = [];
  for (let i = 0; i < 2000; i++) values.push(i % 50 === 0 ? 2 ** (i % 53) : i % 7);
  expect(roundTrip(values)).toBeLessThan(2000 * 0.7);
});

test('skewed counts need codes as long as are allowed', () => {
  const values: number[] = [];
  for (let t = 0; t < 20; t++) for (let i = 0; i < Math.min(3000, 2 ** t); i++) values.push(t);
  for (let k = 5; k < 53; k++) values.push(2 ** k);
  roundTrip(values);
});

test('sizes', () => {
  const check = (values: number[], bytes: number) => expect(encoded(values)).toHaveLength(bytes);
  check([], 0);
  check([5], 2);
  check(many(60_000, 127), 2);
  check(many(1000, most), 9);
  // An exception: place and value.
  check([...many(1000, 3), 9], 6);
  check([0, 1, 1, 0, 1, 0, 0, 1], 2);
});

test('bit lengths', () => {
  for (let bits = 1; bits <= 53; bits++) expect(bitLength(2 ** bits - 1)).toBe(bits);
  expect(bitLength(0)).toBe(0);
});

test('cut off bytes are noticed', () => {
  fc.assert(
    fc.property(
      fc.array(anyWhole, { minLength: 1, maxLength: 100, size: 'max' }),
      fc.nat(),
      (values, at) => {
        const bytes = encoded(values);
        const cut = bytes.subarray(0, at % bytes.length);
        expect(() => decoded(cut, values.length)).toThrow(CorruptFileError);
      },
    ),
  );
});
