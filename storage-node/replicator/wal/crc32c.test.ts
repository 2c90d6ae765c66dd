import fc from 'fast-check';
import { expect, test } from 'vitest';
import { crc32c } from './crc32c.ts';

/** The definition, bit by bit. */
function bitwise(bytes: Uint8Array): number {
  let c = ~0;
  for (const byte of bytes) {
    c ^= byte;
    for (let bit = 0; bit < 8; bit++) c = c & 1 ? (c >>> 1) ^ 0x82f63b78 : c >>> 1;
  }
  return ~c >>> 0;
}

test('the published check values', () => {
  const check = (bytes: Uint8Array, sum: number) =>
    expect(crc32c(0, bytes, 0, bytes.length)).toBe(sum);
  check(Buffer.from('123456789'), 0xe3069283);
  // RFC 3720, B.4
  check(Buffer.alloc(32, 0), 0x8a9136aa);
  check(Buffer.alloc(32, 0xff), 0x62a8ab43);
  check(Buffer.from(Array.from({ length: 32 }, (_, i) => i)), 0x46dd794e);
});

test('any range, any length, any split', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat(200), fc.nat(200), (bytes, a, b) => {
      const start = Math.min(a, b, bytes.length);
      const end = Math.min(Math.max(a, b), bytes.length);
      const whole = crc32c(0, bytes, 0, bytes.length);
      expect(whole).toBe(bitwise(bytes));
      expect(crc32c(0, bytes, start, end)).toBe(bitwise(bytes.subarray(start, end)));
      expect(crc32c(crc32c(0, bytes, 0, start), bytes, start, bytes.length)).toBe(whole);
    }),
  );
});

test('a seed changes the sum of the same bytes', () => {
  const bytes = Buffer.from('frame');
  expect(crc32c(1, bytes, 0, 5)).not.toBe(crc32c(2, bytes, 0, 5));
});
