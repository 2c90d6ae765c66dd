import { expect, test } from 'vitest';
import { Allocation } from './allocation.ts';

/** What a client gets that asks evenly for so much a second. */
function served(allocation: Allocation, rates: Record<string, number>, from: number, to: number) {
  const got: Record<string, number> = {};
  const asked: Record<string, number> = {};
  for (let now = from; now < to; now++) {
    for (const [client, rate] of Object.entries(rates)) {
      const due = Math.floor(((now + 1 - from) * rate) / 1000);
      for (let n = asked[client] ?? 0; n < due; n++) {
        if (allocation.admit(client, 1, now) !== 'no') got[client] = (got[client] ?? 0) + 1;
      }
      asked[client] = due;
    }
  }
  return got;
}

test('with a hard quota nobody gets more, however idle the server is', () => {
  const allocation = new Allocation(10_000, 'hard');
  allocation.setQuota('a', 1000);
  const { a } = served(allocation, { a: 3000 }, 0, 10_000);
  expect(a! / 10).toBeLessThanOrEqual(1100);
  expect(a! / 10).toBeGreaterThanOrEqual(990);
});

test('stacked, one client gets what the others leave, and they get theirs', () => {
  const allocation = new Allocation(3000);
  for (const client of ['a', 'b', 'c']) allocation.setQuota(client, 1000);
  expect(served(allocation, { a: 2900 }, 0, 5000)['a']).toBe(14_500);
  const both = served(allocation, { a: 3000, b: 900 }, 5000, 15_000);
  expect(both['b']).toBe(9000);
  expect(both['a']! / 10).toBeGreaterThan(1900);
});

test('whoever has no quota lives on what is left', () => {
  const allocation = new Allocation(1000);
  allocation.setQuota('a', 1000);
  expect(allocation.admit('stranger', 60, 0)).toBe('spare');
  expect(allocation.admit('stranger', 60, 1)).toBe('no');
  expect(allocation.admit('a', 1000, 2)).toBe('own');
  expect(allocation.admit('stranger', 60, 150)).toBe('no');
  expect(allocation.admit('stranger', 900, 2500)).toBe('spare');
});
