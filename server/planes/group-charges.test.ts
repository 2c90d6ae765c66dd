import { expect, test } from 'vitest';
import { GroupCharges } from './group-charges.ts';

test('the groups of a tenant share its units, and each is given them once', () => {
  let charged = 12;
  const charges = new GroupCharges((tenant) => (tenant === 1 ? charged : 0));
  const all = [20, 21, 22];
  const take = (group: number): number => charges.take(1, group, all);
  expect([take(20), take(21)]).toEqual([4, 4]);
  charged += 6;
  expect([take(20), take(21), take(22)]).toEqual([2, 2, 6]);
  expect(all.map(take)).toEqual([0, 0, 0]);
  // The account was forgotten.
  charged = 3;
  expect(all.map(take)).toEqual([1, 1, 1]);
  expect(charges.take(0, 19, [19])).toBe(0);
});

test('one group has all units of its tenant', () => {
  let charged = 0.1;
  const charges = new GroupCharges(() => charged);
  expect(charges.take(1, 20, [20])).toBe(0.1);
  charged = 0.4;
  expect(charges.take(1, 20, [20])).toBeCloseTo(0.3);
});
