import fc from 'fast-check';
import { expect, test } from 'vitest';
import { NormalEquations } from './least-squares.ts';

const row = (...factors: number[]): Map<number, number> => new Map(factors.entries());

test('finds what equations say', () => {
  const equations = new NormalEquations(2);
  equations.add(row(1, 2), 5, 1);
  equations.add(row(3, 1), 5, 1);
  const [x, y] = equations.solve();
  expect(x).toBeCloseTo(1, 6);
  expect(y).toBeCloseTo(2, 6);
});

test('nothing is below 0, and the others make the best of it', () => {
  const equations = new NormalEquations(2);
  // Without the bound x would be -1 and y 2.
  equations.add(row(1, 1), 1, 1);
  equations.add(row(1, 2), 3, 1);
  const [x, y] = equations.solve();
  expect(x).toBe(0);
  expect(y).toBeCloseTo(7 / 5, 6);
});

test('an equation counts by its weight', () => {
  const equations = new NormalEquations(1);
  equations.add(row(1), 1, 3);
  equations.add(row(1), 2, 1);
  expect(equations.solve()[0]).toBeCloseTo(1.1, 6);
});

test('no other solution that is allowed comes nearer', () => {
  const factor = fc.integer({ min: 0, max: 9 });
  const equation = fc.tuple(factor, factor, factor, fc.integer({ min: -5, max: 20 }));
  fc.assert(
    fc.property(fc.array(equation, { minLength: 1, maxLength: 8 }), (rows) => {
      const equations = new NormalEquations(3);
      for (const [a, b, c, value] of rows) equations.add(row(a, b, c), value, 1);
      // Values without equations stay small.
      for (let i = 0; i < 3; i++) equations.add(new Map([[i, 1]]), 0, 0.1);
      const found = [...equations.solve()];
      const distance = (x: readonly number[]): number => {
        let sum = 0;
        for (const [a, b, c, value] of rows)
          sum += (a * x[0]! + b * x[1]! + c * x[2]! - value) ** 2;
        return sum + 0.01 * x.reduce((squares, each) => squares + each * each, 0);
      };
      const least = distance(found);
      for (let i = 0; i < 3; i++) {
        expect(found[i]).toBeGreaterThanOrEqual(0);
        for (const step of [-0.01, 0.01]) {
          const other = found.map((x, j) => (i === j ? Math.max(0, x + step) : x));
          expect(distance(other)).toBeGreaterThanOrEqual(least - 1e-6);
        }
      }
    }),
  );
});
