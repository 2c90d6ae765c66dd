import { expect, test } from 'vitest';
import { countBits } from './bits.ts';

function countedOneByOne(b: Buffer): number {
  let sum = 0;
  for (const byte of b) for (let rest = byte; rest > 0; rest >>= 1) sum += rest & 1;
  return sum;
}

test('set bits are counted wherever the bytes begin and end', () => {
  // More than a page of the counter, and bytes of every kind around each range.
  const b = Buffer.from(Array.from({ length: 200_000 }, (_, i) => (i * 167 + (i >> 7)) & 255));
  const lengths = [0, 1, 31, 32, 63, 64, 65, 95, 96, 1000, 65_535, 65_536, 65_567, 65_568, 190_000];
  for (const n of lengths) {
    for (const s of [0, 1, 3, 4, 9, 4096]) {
      expect(countBits(b, s, n), `${n} from ${s}`).toBe(countedOneByOne(b.subarray(s, s + n)));
    }
  }
  expect(countBits(Buffer.alloc(100_000, 255), 0, 100_000)).toBe(800_000);
});
