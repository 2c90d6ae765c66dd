import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CorruptFileError } from '../parts.ts';
import { ByteReader } from './byte-reader.ts';
import { ByteWriter } from './byte-writer.ts';
import { decodeXor, encodeXor } from './xor-floats.ts';

function wordsOf(values: readonly number[]): Int32Array {
  return new Int32Array(Float64Array.from(values).buffer);
}

function encoded(values: readonly number[], limit = Infinity): Buffer | undefined {
  const out = new ByteWriter();
  const fits = encodeXor(out, wordsOf(values), values.length, limit);
  return fits ? Buffer.from(out.view()) : undefined;
}

function decoded(bytes: Buffer, n: number): number[] {
  const values = new Float64Array(n);
  const from = new ByteReader(bytes);
  decodeXor(from, new Int32Array(values.buffer), n);
  from.finish();
  return [...values];
}

const anyFloat = fc.oneof(
  fc.double(),
  fc.float(),
  fc.constantFrom(0, -0, NaN, Infinity, 1, -1, 5e-324, Number.MAX_VALUE, 71.3),
);
// Any difference of two of them has its own place and length.
const anyBits = fc
  .nat({ max: 2 ** 26 - 1 })
  .chain((top) => fc.nat({ max: 52 }).map((shift) => (1 + top / 2 ** 26) * 2 ** (shift - 26)));

test('reads back, bit by bit', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(anyFloat, anyBits), { minLength: 1, maxLength: 200, size: 'max' }),
      (values) => {
        expect(decoded(encoded(values)!, values.length)).toEqual(values);
      },
    ),
    { numRuns: 500 },
  );
});

test('every single bit that can differ', () => {
  const view = new DataView(new ArrayBuffer(8));
  const values = [1.5];
  for (let bit = 0; bit < 64; bit++) {
    view.setFloat64(0, values.at(-1)!);
    view.setBigUint64(0, view.getBigUint64(0) ^ (1n << BigInt(bit)));
    // Not-a-number has many faces, which a list of numbers need not keep.
    if (Number.isFinite(view.getFloat64(0))) values.push(view.getFloat64(0));
  }
  expect(values.length).toBeGreaterThan(50);
  expect(decoded(encoded(values)!, values.length)).toEqual(values);
});

test('what stays the same takes a bit', () => {
  expect(encoded(Array.from({ length: 801 }, () => Math.PI))).toHaveLength(8 + 100);
});

test('gives up when it would take more than it may', () => {
  const noise = Array.from({ length: 500 }, (_, i) => Math.sin(i * i));
  expect(encoded(noise, 3000)).toBeUndefined();
  expect(encoded(noise, 5000)).toBeDefined();
});

test('cut off bytes are noticed', () => {
  const values = Array.from({ length: 100 }, (_, i) => Math.sqrt(i >> 2));
  const bytes = encoded(values)!;
  for (let length = 0; length < bytes.length; length++) {
    expect(() => decoded(bytes.subarray(0, length), values.length)).toThrow(CorruptFileError);
  }
});
