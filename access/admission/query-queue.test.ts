import fc from 'fast-check';
import { expect, test } from 'vitest';
import { AccumulatedUnits } from './accumulated-units.ts';
import { QueryQueue, type WaitingQuery } from './query-queue.ts';

const query = (cost: number, arrivedAt = 0, deadline = Infinity): WaitingQuery => ({
  cost,
  arrivedAt,
  deadline,
});

test('what was left over counts for a minute, and the oldest is spent first', () => {
  const units = new AccumulatedUnits(3);
  for (const unspent of [10, 20, 30]) units.endSecond(unspent);
  expect(units.balance).toBe(60);
  expect(units.limit(30)).toBe(90);
  expect(units.spend(61)).toBe(false);
  expect(units.spend(15)).toBe(true);
  // The first second and a quarter of the next were spent: only what is left of it is lost now.
  units.endSecond(5);
  expect(units.balance).toBe(50);
  units.endSecond(0);
  expect(units.balance).toBe(35);
});

test('a debt is paid by what is left over, before any query', () => {
  const units = new AccumulatedUnits(10);
  units.endSecond(10);
  expect(units.spend(10)).toBe(true);
  units.settle(25);
  expect(units.balance).toBe(-25);
  units.endSecond(20);
  expect(units.balance).toBe(-5);
  expect(units.giveUp(1)).toBe(0);
  units.endSecond(20);
  expect(units.balance).toBe(15);
  units.settle(-4);
  expect(units.balance).toBe(19);
});

test('the balance is what came in, less what was spent or grew old', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('second' as const), units: fc.nat(100) }),
    fc.record({ kind: fc.constant('spend' as const), units: fc.nat(200) }),
    fc.record({ kind: fc.constant('settle' as const), units: fc.integer({ min: -50, max: 50 }) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
      const units = new AccumulatedUnits(5);
      // No second can be told from the others in the model: only bounds are.
      let most = 0;
      for (const { kind, units: amount } of steps) {
        const before = units.balance;
        if (kind === 'second') {
          units.endSecond(amount);
          expect(units.balance).toBeLessThanOrEqual(before + amount);
          most += amount;
        } else if (kind === 'spend') {
          const done = units.spend(amount);
          expect(done).toBe(before >= amount);
          expect(units.balance).toBeCloseTo(done ? before - amount : before, 6);
        } else {
          units.settle(amount);
          expect(units.balance).toBeCloseTo(before - amount, 6);
          most += Math.max(0, -amount);
        }
        expect(units.balance).toBeLessThanOrEqual(most);
      }
    }),
  );
});

test('queries run in the order they came, as soon as there is enough for the first', () => {
  const queue = new QueryQueue({ length: 2 });
  const [expensive, cheap] = [query(30), query(1)];
  queue.units.endSecond(10);
  expect(queue.arrive(expensive, 1000)).toBe('wait');
  expect(queue.arrive(cheap, 1000)).toBe('wait');
  expect(queue.arrive(query(1), 1000)).toBe('full');
  expect(queue.next(1000)).toBeUndefined();
  queue.units.endSecond(25);
  expect(queue.next(1000)).toBe(expensive);
  expect(queue.next(1000)).toBe(cheap);
  expect(queue.units.balance).toBe(4);
  expect(queue.arrive(query(4), 1000)).toBe('run');
});

test('one that is too expensive for ever runs on all there can be and leaves a debt', () => {
  const queue = new QueryQueue();
  queue.units.endSecond(9);
  expect(queue.arrive(query(25), 10)).toBe('wait');
  expect(queue.next(10)).toBeUndefined();
  queue.units.endSecond(1);
  expect(queue.next(10)).toBeDefined();
  expect(queue.units.balance).toBe(-15);
});

test('who gave up or went waits no more', () => {
  const queue = new QueryQueue();
  const [a, b, c] = [query(1, 0, 100), query(1, 0, 200), query(1, 0, 300)];
  for (const one of [a, b, c]) queue.arrive(one, 10);
  expect(queue.expire(200)).toEqual([a, b]);
  expect(queue.remove(c)).toBe(true);
  expect(queue.remove(c)).toBe(false);
  expect(queue.length).toBe(0);
});
