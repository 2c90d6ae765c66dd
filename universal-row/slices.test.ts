import fc from 'fast-check';
import { expect, test } from 'vitest';
import { inOneGo, sliceElements, sortedInSlices } from './slices.ts';

test('sorts as sort does, equal items as they were', () => {
  const item = fc.record({ key: fc.nat(5), other: fc.nat() });
  const compare = (a: { key: number }, b: { key: number }): number => a.key - b.key;
  fc.assert(
    fc.property(fc.array(item, { maxLength: 50 }), fc.integer({ min: 0, max: 3 }), (few, runs) => {
      const items = Array.from({ length: few.length * runs * 300 }, (_, n) => few[n % few.length]!);
      expect(inOneGo(sortedInSlices(items, compare))).toEqual([...items].sort(compare));
    }),
    { numRuns: 30 },
  );
});

test('compares no more than a slice needs between two yields', () => {
  const count = 20 * sliceElements;
  const items = Array.from({ length: count }, (_, n) => (n * 7919) % count);
  let compared = 0;
  let most = 0;
  const sorting = sortedInSlices(items, (a, b) => {
    compared++;
    return a - b;
  });
  for (;;) {
    compared = 0;
    const step = sorting.next();
    most = Math.max(most, compared);
    if (step.done === true) break;
  }
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThan(sliceElements * Math.log2(sliceElements) * 1.1);
});
