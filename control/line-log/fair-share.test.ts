import fc from 'fast-check';
import { expect, test } from 'vitest';
import { equalPart } from './fair-share.ts';

test.each([
  [[], 10, Infinity],
  [[5, 5], 10, Infinity],
  [[5, 6], 10, 5],
  [[1, 100, 100], 21, 10],
  [[100], 7, 7],
])('%j of %d', (wishes, space, part) => expect(equalPart(wishes, space)).toBe(part));

test('nobody who wants less than an equal part loses any, and the space is used up', () => {
  const wishes = fc.array(fc.integer({ min: 0, max: 1000 }), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(wishes, fc.integer({ min: 1, max: 5000 }), (all, space) => {
      const part = equalPart(all, space);
      const given = all.map((wish) => Math.min(wish, part));
      const sum = given.reduce((a, b) => a + b, 0);
      const wanted = all.reduce((a, b) => a + b, 0);
      expect(sum).toBeCloseTo(Math.min(wanted, space));
      for (const [i, wish] of all.entries()) {
        if (wish <= space / all.length) expect(given[i]).toBe(wish);
      }
    }),
  );
});
