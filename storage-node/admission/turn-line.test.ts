import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TurnLine } from './turn-line.ts';

const arrivalOrder = { classes: false };

function drained(line: TurnLine<number>): number[] {
  const all: number[] = [];
  for (let next = line.next(); next !== undefined; next = line.next()) all.push(next);
  return all;
}

test('first in, first out, as long as nothing else is asked for', () => {
  const line = new TurnLine<number>(arrivalOrder);
  for (let i = 0; i < 200; i++) line.push(i, i % 3 === 0);
  expect(drained(line)).toEqual(Array.from({ length: 200 }, (_, i) => i));
  expect(line.next()).toBeUndefined();
});

test('four small ones to a large one', () => {
  const line = new TurnLine<number>({ classes: true });
  for (let i = 0; i < 10; i++) line.push(100 + i, true);
  for (let i = 0; i < 10; i++) line.push(i, false);
  expect(drained(line).slice(0, 12)).toEqual([0, 1, 2, 3, 100, 4, 5, 6, 7, 101, 8, 9]);
});

test('everything has its turn once, whatever is switched on meanwhile', () => {
  const step = fc.record({
    isLarge: fc.boolean(),
    takes: fc.nat(2),
    classes: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const order = { ...arrivalOrder };
      const line = new TurnLine<number>(order);
      const had: number[] = [];
      steps.forEach(({ isLarge, takes, classes }, i) => {
        order.classes = classes;
        line.push(i, isLarge);
        for (let n = 0; n < takes && line.length > 0; n++) had.push(line.next()!);
      });
      had.push(...drained(line));
      expect(had.sort((a, b) => a - b)).toEqual(steps.map((_, i) => i));
    }),
  );
});
