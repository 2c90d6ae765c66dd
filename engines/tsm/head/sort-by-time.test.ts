import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sortByTime } from './sort-by-time.ts';

function sorted(times: readonly number[]): [time: number, row: number][] {
  const rows = Uint32Array.from(times, (_, i) => i);
  const sortedTimes = Float64Array.from(times);
  sortByTime(rows, sortedTimes, times.length);
  return Array.from(rows, (row, i) => [sortedTimes[i]!, row]);
}

test('by time, and rows of one time in the order they came', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: -5, max: 5 }), { minLength: 1 }), (times) => {
      const expected = times
        .map((time, row): [number, number] => [time, row])
        .sort((a, b) => a[0] - b[0] || a[1] - b[1]);
      expect(sorted(times)).toEqual(expected);
    }),
    { numRuns: 1000 },
  );
});

test('no more than the rows that are asked for', () => {
  const rows = Uint32Array.from([4, 3, 2, 1]);
  const times = Float64Array.from([2, 1, 9, 0]);
  sortByTime(rows, times, 2);
  expect([[...rows], [...times]]).toEqual([
    [3, 4, 2, 1],
    [1, 2, 9, 0],
  ]);
});

test('one look at each time where they are in order', () => {
  let looks = 0;
  const times = new Proxy(new Float64Array(10_000).fill(7), {
    get: (target, key) => {
      looks++;
      return Reflect.get(target, key) as unknown;
    },
  });
  sortByTime(new Uint32Array(10_000), times, 10_000);
  expect(looks).toBeLessThanOrEqual(2 * 10_000);
});
