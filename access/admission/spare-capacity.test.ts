import { expect, test } from 'vitest';
import { SpareCapacity } from './spare-capacity.ts';

/** Units a second that were lent to a borrower that asks for as many as it can get, 1 at a time. */
function lent(spare: SpareCapacity, usedPerMs: number, from: number, to: number): number {
  let units = 0;
  for (let now = from; now < to; now++) {
    spare.use(usedPerMs, now);
    while (spare.borrow(1, now)) units++;
  }
  return (units * 1000) / (to - from);
}

test('what quotas leave is lent, and gone within a second when it is claimed', () => {
  const spare = new SpareCapacity(3000);
  expect(lent(spare, 1, 0, 5000)).toBeGreaterThan(1900);
  expect(lent(spare, 1, 5000, 10_000)).toBeCloseTo(2000, -2);
  lent(spare, 3, 10_000, 11_000);
  expect(lent(spare, 3, 11_000, 15_000)).toBe(0);
  lent(spare, 0, 15_000, 16_500);
  expect(lent(spare, 0, 16_500, 20_500)).toBeCloseTo(3000, -2);
});

test('units that were not lent are kept for one second at most', () => {
  const spare = new SpareCapacity(1000);
  spare.use(1000, 0);
  expect(spare.borrow(60, 150)).toBe(false);
  expect(spare.borrow(900, 60_000)).toBe(true);
  expect(spare.borrow(200, 60_001)).toBe(false);
});
