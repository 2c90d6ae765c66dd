import { expect, test } from 'vitest';
import { HeapOrder, type HeapRule } from './tenant-heaps.ts';

/** Cost served of each tenant while all of them are always in line. */
function serve(order: HeapOrder, weights: readonly number[], rounds: number, msEach = 1): number[] {
  weights.forEach((weight, tenant) => {
    order.setWeight(tenant, weight);
    order.requested(tenant, 1e9);
    order.enqueue(tenant);
  });
  const served = weights.map(() => 0);
  for (let n = 0; n < rounds; n++) {
    const tenant = order.dequeue();
    const cost = 1 + (n % 5);
    served[tenant]! += cost;
    order.served(tenant, cost, n * msEach);
    order.enqueue(tenant);
  }
  return served;
}

test('who is always in line is served by weight, also across the seconds', () => {
  const served = serve(new HeapOrder('least-granted'), [1, 2, 4], 30_000);
  const all = served.reduce((sum, cost) => sum + cost, 0);
  [1 / 7, 2 / 7, 4 / 7].forEach((share, tenant) => {
    expect(Math.abs(served[tenant]! / all / share - 1)).toBeLessThan(0.03);
  });
});

/** The order of two tenants of which one asks for a hundred times as much. */
function firstOf(rule: HeapRule): number[] {
  const order = new HeapOrder(rule);
  for (const [tenant, cost] of [
    [1, 100],
    [2, 1],
  ] as const) {
    order.setWeight(tenant, 1);
    order.requested(tenant, cost);
    order.enqueue(tenant);
  }
  const first = order.dequeue();
  order.served(first, 1, 0);
  order.enqueue(first);
  return [first, order.dequeue()];
}

test('by the letter the one that asks for most has all turns, by default they take turns', () => {
  expect(firstOf('most-requested')).toEqual([1, 1]);
  expect(firstOf('least-granted')).toEqual([1, 2]);
});

test('what was granted is half forgotten a second later, and counts where nobody waited', () => {
  const order = new HeapOrder('least-granted');
  for (const tenant of [1, 2]) order.setWeight(tenant, 1);
  order.passed(1, 100, 0);
  order.passed(2, 30, 1999);
  // 50 against 30, then 12.5 against 37.5.
  const next = (): number => {
    for (const tenant of [1, 2]) order.enqueue(tenant);
    const first = order.dequeue();
    order.dequeue();
    return first;
  };
  expect(next()).toBe(2);
  order.passed(2, 15, 2500);
  order.passed(1, 0, 2500);
  expect(next()).toBe(1);
});

test('those in line move up and down as they are granted, put back and reweighed', () => {
  const order = new HeapOrder('least-granted');
  for (let tenant = 0; tenant < 8; tenant++) {
    order.setWeight(tenant, 1);
    order.enqueue(tenant);
  }
  for (let tenant = 0; tenant < 8; tenant++) order.passed(tenant, (tenant * 3) % 8, 0);
  order.setWeight(5, 1000);
  const first = order.dequeue();
  order.putBack(first);
  const all = Array.from({ length: 8 }, () => order.dequeue());
  // 0 has had nothing, 5 next to nothing for its weight; the others by what they have had.
  expect(all).toEqual([0, 5, 3, 6, 1, 4, 7, 2]);
  expect(order.dequeue()).toBe(-1);
});
