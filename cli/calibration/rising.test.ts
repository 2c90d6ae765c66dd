import fc from 'fast-check';
import { expect, test } from 'vitest';
import { rising } from './rising.ts';

test('leaves alone what rises', () => {
  expect(rising([1, 2, 2, 5], [1, 2, 4, 8])).toEqual([1, 2, 2, 5]);
});

test('pools what falls, the smaller size counting for more', () => {
  expect(rising([1, 4, 1, 9], [1, 2, 4, 8])).toEqual([1, 3, 3, 9]);
  expect(rising([-3, 1], [1, 2])).toEqual([0, 1]);
});

test('never falls, and stays within what was measured', () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 1e-3, max: 1e6, noNaN: true }), { minLength: 1 }),
      (column) => {
        const sizes = column.map((_, i) => 64 * 2 ** i);
        const result = rising(column, sizes);
        expect(result).toHaveLength(column.length);
        result.forEach((cost, i) => {
          if (i > 0) expect(cost).toBeGreaterThanOrEqual(result[i - 1]! * (1 - 1e-9));
          expect(cost).toBeLessThanOrEqual(Math.max(...column) * (1 + 1e-9));
          expect(cost).toBeGreaterThanOrEqual(Math.min(...column) * (1 - 1e-9));
        });
      },
    ),
  );
});
