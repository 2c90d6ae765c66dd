import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TurnLine } from './turn-line.ts';

const both = { epochLifo: true, classes: true };
const plain = { epochLifo: false, classes: false };

function drained(line: TurnLine<number>, now: number): number[] {
  const all: number[] = [];
  for (let next = line.next(now); next !== undefined; next = line.next(now)) all.push(next);
  return all;
}

test('first in, first out, as long as nothing else is asked for', () => {
  const line = new TurnLine<number>(plain);
  for (let i = 0; i < 200; i++) line.push(i, i % 3 === 0, i);
  expect(drained(line, 10_000)).toEqual(Array.from({ length: 200 }, (_, i) => i));
  expect(line.next(10_000)).toBeUndefined();
});

test('four small ones to a large one', () => {
  const line = new TurnLine<number>({ ...plain, classes: true });
  for (let i = 0; i < 10; i++) line.push(100 + i, true, 0);
  for (let i = 0; i < 10; i++) line.push(i, false, 0);
  expect(drained(line, 1).slice(0, 12)).toEqual([0, 1, 2, 3, 100, 4, 5, 6, 7, 101, 8, 9]);
});

test('under overload the newest epoch goes first, in order, and the oldest now and then', () => {
  const line = new TurnLine<number>(both);
  for (let i = 0; i < 40; i++) line.push(i, false, i * 10);
  // Late, but not yet in three ticks.
  expect([line.next(400), line.next(410)]).toEqual([0, 1]);
  expect(line.isOverloaded).toBe(false);
  expect(line.next(420)).toBe(30);
  expect(line.isOverloaded).toBe(true);
  expect([1, 2, 3, 4, 5, 6].map(() => line.next(421))).toEqual([31, 32, 33, 34, 35, 36]);
  expect(line.next(421)).toBe(2);
  expect(line.next(421)).toBe(37);
  drained(line, 430);
  expect(line.isOverloaded).toBe(false);
  line.push(1, false, 440);
  line.push(2, false, 441);
  expect(drained(line, 442)).toEqual([1, 2]);
});

test('where the head does not wait for long the order is that of arrival', () => {
  const line = new TurnLine<number>(both);
  const order: number[] = [];
  for (let now = 0; now < 5000; now += 10) {
    line.push(now, false, now);
    line.push(now + 1, false, now);
    if (now >= 50) order.push(line.next(now)!, line.next(now)!);
  }
  expect(order).toEqual([...order].sort((a, b) => a - b));
});

test('everything has its turn once, whatever is switched on meanwhile', () => {
  const step = fc.record({
    after: fc.nat(60),
    isLarge: fc.boolean(),
    takes: fc.nat(2),
    epochLifo: fc.boolean(),
    classes: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const order = { ...plain };
      const line = new TurnLine<number>(order);
      const had: number[] = [];
      let now = 0;
      steps.forEach(({ after, isLarge, takes, epochLifo, classes }, i) => {
        now += after;
        Object.assign(order, { epochLifo, classes });
        line.push(i, isLarge, now);
        for (let n = 0; n < takes && line.length > 0; n++) had.push(line.next(now)!);
      });
      had.push(...drained(line, now));
      expect(had.sort((a, b) => a - b)).toEqual(steps.map((_, i) => i));
    }),
  );
});
