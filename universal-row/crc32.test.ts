import fc from 'fast-check';
import { expect, test } from 'vitest';
import { crc32 } from './crc32.ts';

/** The definition, bit by bit. */
function bitwise(bytes: Uint8Array): number {
  let c = ~0;
  for (const byte of bytes) {
    c ^= byte;
    for (let bit = 0; bit < 8; bit++) c = c & 1 ? (c >>> 1) ^ 0xedb88320 : c >>> 1;
  }
  return ~c >>> 0;
}

test('the published check values', () => {
  const check = (bytes: Uint8Array, sum: number) =>
    expect(crc32(0, bytes, 0, bytes.length)).toBe(sum);
  check(Buffer.from('123456789'), 0xcbf43926);
  check(Buffer.alloc(32, 0), 0x190a55ad);
  check(Buffer.alloc(32, 0xff), 0xff6cab0b);
  check(Buffer.from(Array.from({ length: 32 }, (_, i) => i)), 0x91267e8a);
});

test('any range, any length, any split', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 1000, size: 'max' }),
      fc.nat(1000),
      fc.nat(1000),
      (bytes, a, b) => {
        const start = Math.min(a, b, bytes.length);
        const end = Math.min(Math.max(a, b), bytes.length);
        const whole = crc32(0, bytes, 0, bytes.length);
        expect(whole).toBe(bitwise(bytes));
        expect(crc32(0, bytes, start, end)).toBe(bitwise(bytes.subarray(start, end)));
        expect(crc32(crc32(0, bytes, 0, start), bytes, start, bytes.length)).toBe(whole);
      },
    ),
  );
});

test('a seed changes the sum of the same bytes', () => {
  const bytes = Buffer.from('frame');
  expect(crc32(1, bytes, 0, 5)).not.toBe(crc32(2, bytes, 0, 5));
});
