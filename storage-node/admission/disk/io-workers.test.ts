import fc from 'fast-check';
import { expect, test } from 'vitest';
import { IoWorkers } from './io-workers.ts';

function begin(workers: IoWorkers, tenant: number): boolean {
  if (!workers.hasRoom() || !workers.mayTake(tenant)) return false;
  workers.began(tenant);
  return true;
}

test('when one tenant has all workers there are two more for others, which go with their work', () => {
  const workers = new IoWorkers();
  expect([1, 1, 1, 1, 1].map((tenant) => begin(workers, tenant))).toEqual([
    true,
    true,
    true,
    true,
    false,
  ]);
  expect([2, 3, 3].map((tenant) => begin(workers, tenant))).toEqual([true, true, false]);
  expect(workers.extra).toBe(2);
  workers.ended(3);
  expect(workers.extra).toBe(1);
  expect(begin(workers, 1)).toBe(false);
  workers.ended(2);
  expect(workers.extra).toBe(0);
  workers.ended(1);
  expect(begin(workers, 2)).toBe(true);
  // Not all of one tenant any more.
  expect(begin(workers, 3)).toBe(false);
});

test('never more than there are, more than the basic ones only beside a tenant that has them all', () => {
  const step = fc.record({ tenant: fc.nat(2), ends: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), fc.nat(2), (steps, extra) => {
      const workers = new IoWorkers({ basic: 3, extra });
      const held = [0, 0, 0];
      for (const { tenant, ends } of steps) {
        const used = held.reduce((sum, count) => sum + count, 0);
        if (ends) {
          if (held[tenant] === 0) continue;
          held[tenant]!--;
          workers.ended(tenant);
        } else {
          // Whichever workers are busy, a free one takes any tenant's read.
          const isFree = begin(workers, tenant);
          if (used < 3) expect(isFree).toBe(true);
          if (isFree && used >= 3) {
            expect(extra).toBeGreaterThan(0);
            expect(held[tenant]).toBeLessThan(3);
          }
          if (isFree) held[tenant]!++;
        }
        const heldNow = held.reduce((sum, count) => sum + count, 0);
        expect(held.map((_, i) => workers.heldBy(i))).toEqual(held);
        expect(heldNow).toBeLessThanOrEqual(3 + extra);
        for (const count of held) expect(count).toBeLessThanOrEqual(3);
      }
    }),
  );
});
