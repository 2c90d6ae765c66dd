import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Windows } from '../plan/windows.ts';
import { SlotOrder } from './slot-order.ts';

const windows: Pick<Windows, 'startOf'> = { startOf: (key) => BigInt(key) * 1_000_000_007n };

/** Keys that are all different, in an order that `seed` makes. */
function keysOf(count: number, seed: number): number[] {
  const keys = Array.from({ length: count }, (_, i) => i - (count >> 1));
  let state = seed;
  for (let i = count - 1; i > 0 && seed !== 0; i--) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const j = state % (i + 1);
    [keys[i], keys[j]] = [keys[j]!, keys[i]!];
  }
  return keys;
}

test('slots come in the order of their keys, by steps that are bounded', () => {
  const count = fc.oneof(
    fc.nat(30),
    fc.constantFrom(4095, 4096, 4097, 8192, 8193, 12_288, 16_385),
    fc.nat(50_000),
  );
  fc.assert(
    fc.property(count, fc.nat(5), fc.boolean(), (n, seed, descending) => {
      const keys = keysOf(n, seed);
      let looks = 0;
      const counted = new Proxy(keys, {
        get: (target, name) => {
          looks++;
          return Reflect.get(target, name) as unknown;
        },
      });
      const order = new SlotOrder(counted, windows as Windows, descending);
      let most = 0;
      for (let steps = 0; ; steps++) {
        expect(steps).toBeLessThan(1000);
        looks = 0;
        const isDone = order.advance();
        most = Math.max(most, looks);
        if (isDone) break;
      }
      // Two runs of 4,096 are sorted in a step: comparisons look at two keys each.
      expect(most).toBeLessThan(8192 * 2 * 14);
      expect(order.advance()).toBe(true);
      const sorted = keys.toSorted((a, b) => (descending ? b - a : a - b));
      expect(Array.from(order.slots, (slot) => keys[slot])).toEqual(sorted);
      order.locate(n);
      const starts = Array.from(
        order.bases,
        (base, i) => BigInt(base) * 1_000_000_000n + BigInt(order.offsets[i]!),
      );
      expect(starts).toEqual(sorted.map((key) => windows.startOf(key)));
    }),
    { numRuns: 25 },
  );
});
