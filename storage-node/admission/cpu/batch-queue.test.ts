import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BatchQueue } from './batch-queue.ts';

function drained(line: BatchQueue<number>): number[] {
  const all: number[] = [];
  for (let next = line.next(); next !== undefined; next = line.next()) all.push(next);
  return all;
}

test('batches of one class are first in, first out', () => {
  const line = new BatchQueue<number>();
  for (let i = 0; i < 200; i++) line.push(i, false);
  expect(drained(line)).toEqual(Array.from({ length: 200 }, (_, i) => i));
  expect(line.next()).toBeUndefined();
});

test('four small ones to a large one', () => {
  const line = new BatchQueue<number>();
  for (let i = 0; i < 10; i++) line.push(100 + i, true);
  for (let i = 0; i < 10; i++) line.push(i, false);
  expect(drained(line).slice(0, 12)).toEqual([0, 1, 2, 3, 100, 4, 5, 6, 7, 101, 8, 9]);
});

test('every batch is served once, and in order within its class', () => {
  const step = fc.record({ isLarge: fc.boolean(), takes: fc.nat(2) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const line = new BatchQueue<number>();
      const served: number[] = [];
      steps.forEach(({ isLarge, takes }, i) => {
        line.push(i, isLarge);
        for (let n = 0; n < takes && line.length > 0; n++) served.push(line.next()!);
      });
      served.push(...drained(line));
      for (const large of [true, false]) {
        const own = served.filter((i) => steps[i]!.isLarge === large);
        expect(own).toEqual([...own].sort((a, b) => a - b));
      }
      expect(served.sort((a, b) => a - b)).toEqual(steps.map((_, i) => i));
    }),
  );
});
