import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Buckets } from './buckets.ts';

const shardNanos = 13 * 7 * 86_400 * 1e9;
const time = fc.integer({ min: 0, max: shardNanos });

test('two times are in one bucket when both lie between the same two edges', () => {
  const width = fc.oneof(
    fc.bigInt({ min: 1n, max: 1000n }),
    fc.bigInt({ min: 1n, max: BigInt(shardNanos) }),
    fc.bigInt({ min: 1n, max: 2n ** 63n }),
  );
  const offset = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n });
  const distance = fc.oneof(fc.integer({ min: 0, max: 2000 }), time);
  const start = fc.integer({ min: -9_000_000_000, max: 9_000_000_000 });
  fc.assert(
    fc.property(width, offset, start, time, distance, (w, o, s, from, after) => {
      const to = Math.min(from + after, shardNanos);
      const bucket = (t: number): bigint => {
        const shifted = BigInt(s) * 1_000_000_000n + BigInt(t) - o;
        return (shifted - (((shifted % w) + w) % w)) / w;
      };
      expect(new Buckets(w, o, s).isOne(from, to)).toBe(bucket(from) === bucket(to));
    }),
    { numRuns: 3000 },
  );
});

test('a width of 0 is one bucket', () => {
  expect(new Buckets(0n, 5n, 0).isOne(0, shardNanos)).toBe(true);
});
