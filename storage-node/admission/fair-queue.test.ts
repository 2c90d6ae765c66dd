import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FairQueue } from './fair-queue.ts';

/** Cost served of each tenant while all of them always have something waiting. */
function serveBacklogged(weights: readonly number[], costOf: (n: number) => number): number[] {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const queue = new FairQueue<{ tenant: number; cost: number }>();
  const push = (tenant: number, n: number): void => {
    const cost = costOf(n);
    queue.push(tenant, cost, { tenant, cost });
  };
  weights.forEach((weight, tenant) => {
    queue.setWeight(tenant, weight / total);
    for (let n = 0; n < 3; n++) push(tenant, n);
  });
  const served = weights.map(() => 0);
  for (let n = 0; n < 30_000; n++) {
    const { tenant, cost } = queue.pop()!;
    served[tenant] = served[tenant]! + cost;
    push(tenant, n);
  }
  return served;
}

test('tenants that always have something waiting are served by their weights, whatever requests cost', () => {
  for (const costOf of [() => 1, (n: number) => 1 + (n % 17)]) {
    const served = serveBacklogged([1, 2, 4], costOf);
    const all = served.reduce((sum, cost) => sum + cost, 0);
    [1 / 7, 2 / 7, 4 / 7].forEach((share, tenant) => {
      expect(Math.abs(served[tenant]! / all / share - 1)).toBeLessThan(0.03);
    });
  }
});

test('32 equal tenants are served alike', () => {
  const served = serveBacklogged(
    Array.from({ length: 32 }, () => 1),
    (n) => 1 + (n % 5),
  );
  const sum = served.reduce((total, cost) => total + cost, 0);
  const squares = served.reduce((total, cost) => total + cost * cost, 0);
  expect((sum * sum) / (32 * squares)).toBeGreaterThan(0.99);
});

test('a tenant within its share waits for one request at most, however many of others wait', () => {
  const queue = new FairQueue<string>();
  queue.setWeight(1, 0.5);
  queue.setWeight(2, 0.5);
  for (let n = 0; n < 1000; n++) queue.push(1, 1, 'flood');
  for (let n = 0; n < 100; n++) {
    queue.push(2, 1, 'mine');
    const next = [queue.pop(), queue.pop()];
    expect(next).toContain('mine');
  }
});

test('each is given back once, those of a tenant in their order', () => {
  const request = fc.record({ tenant: fc.nat(4), cost: fc.integer({ min: 1, max: 100 }) });
  fc.assert(
    fc.property(fc.array(fc.option(request), { maxLength: 300 }), (steps) => {
      const queue = new FairQueue<[tenant: number, n: number]>();
      for (let tenant = 0; tenant <= 4; tenant++) queue.setWeight(tenant, (tenant + 1) / 15);
      const waiting = new Map<number, number[]>();
      steps.forEach((step, n) => {
        if (step !== null) {
          queue.push(step.tenant, step.cost, [step.tenant, n]);
          waiting.set(step.tenant, [...(waiting.get(step.tenant) ?? []), n]);
          return;
        }
        const popped = queue.pop();
        if (popped === undefined) {
          expect([...waiting.values()].flat()).toEqual([]);
        } else {
          const [tenant, which] = popped;
          expect(waiting.get(tenant)!.shift()).toBe(which);
        }
      });
      expect(queue.length).toBe([...waiting.values()].flat().length);
      for (const [tenant, list] of waiting) expect(queue.queuedOf(tenant)).toBe(list.length);
    }),
  );
});
