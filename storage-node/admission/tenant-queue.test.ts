import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FairQueue } from './fair-queue.ts';
import { type Placed, type QueuedWork, type QueueOrder, TenantQueue } from './tenant-queue.ts';

interface Piece extends QueuedWork {
  name: string;
  cost: number;
}

let started = 0;

function piece(tenant: number, more: Partial<Piece> = {}): Piece {
  const none: Placed | undefined = undefined;
  return {
    name: '',
    tenant,
    cost: 1,
    priority: 0,
    startedAt: started++,
    arrivedAt: 0,
    deadline: Infinity,
    ticket: none,
    ...more,
  };
}

function newQueue(order: QueueOrder, expired: Piece[] = []): TenantQueue<Piece> {
  const queue = new TenantQueue<Piece>(
    ({ cost }) => cost,
    (work) => expired.push(work),
    { order },
  );
  for (let tenant = 0; tenant < 5; tenant++) queue.setWeight(tenant, tenant + 1);
  return queue;
}

const orders = ['fair', 'least-granted', 'most-requested', 'fifo'] as const;

test('with pieces of one cost it is the order of virtual finish times, for any arrivals', () => {
  fc.assert(
    fc.property(fc.array(fc.option(fc.nat(4)), { maxLength: 300 }), (steps) => {
      const queue = newQueue('fair');
      const fair = new FairQueue<Piece>();
      // No two finish at one time: then it is a matter of taste who is first.
      [1, 1.37, 2.11, 3.3, 5.7].forEach((weight, tenant) => {
        queue.setWeight(tenant, weight);
        fair.setWeight(tenant, weight);
      });
      for (const tenant of steps) {
        if (tenant === null) expect(queue.pop(0)).toBe(fair.pop());
        else {
          const work = piece(tenant);
          queue.push(work, 0);
          fair.push(tenant, 1, work);
        }
      }
      expect(queue.length).toBe(fair.length);
    }),
  );
});

test.each(orders)('%s: each is given back once, those of a tenant in their order', (order) => {
  const one = fc.record({ tenant: fc.nat(4), cost: fc.integer({ min: 1, max: 50 }) });
  fc.assert(
    fc.property(fc.array(fc.option(one), { maxLength: 200 }), (steps) => {
      const queue = newQueue(order);
      const waiting = new Map<number, Piece[]>();
      steps.forEach((step, now) => {
        if (step !== null) {
          const work = piece(step.tenant, step);
          queue.push(work, now);
          waiting.set(step.tenant, [...(waiting.get(step.tenant) ?? []), work]);
          return;
        }
        const work = queue.pop(now);
        if (work === undefined) expect([...waiting.values()].flat()).toEqual([]);
        else {
          expect(waiting.get(work.tenant)!.shift()).toBe(work);
          expect(work.ticket).toBe(undefined);
        }
      });
      expect(queue.length).toBe([...waiting.values()].flat().length);
    }),
  );
});

describe('tenants that always have something waiting', () => {
  const serve = (order: QueueOrder, costOf: (tenant: number, n: number) => number): number[] => {
    const queue = newQueue(order);
    const served = [0, 0, 0, 0, 0];
    const push = (tenant: number, n: number): void =>
      queue.push(piece(tenant, { cost: costOf(tenant, n) }), n);
    for (let n = 0; n < 25; n++) push(n % 5, n);
    for (let n = 0; n < 20_000; n++) {
      const { tenant, cost } = queue.pop(n)!;
      served[tenant]! += cost;
      push(tenant, n);
    }
    const all = served.reduce((sum, cost) => sum + cost, 0);
    return served.map((cost) => (cost * 15) / all);
  };

  test.each(['fair', 'least-granted'] as const)('%s: are served by weight', (order) => {
    for (const costOf of [() => 1, (tenant: number, n: number) => 1 + ((n * 7 + tenant) % 23)]) {
      serve(order, costOf).forEach((share, tenant) => {
        expect(Math.abs(share / (tenant + 1) - 1)).toBeLessThan(0.03);
      });
    }
  });
});

test('priority goes before the start, and only within a tenant', () => {
  const queue = newQueue('fair');
  queue.push(piece(4, { name: 'late' }), 0);
  queue.push(piece(4, { name: 'urgent', priority: 5 }), 0);
  queue.push(piece(3, { name: 'other', priority: 9, cost: 10 }), 0);
  expect([0, 0, 0].map(() => queue.pop(0)!.name)).toEqual(['urgent', 'late', 'other']);
});

test('what is moved is given back once, and in its new place', () => {
  for (const order of orders) {
    const queue = newQueue(order);
    const all = ['a', 'b', 'c'].map((name) => piece(1, { name }));
    for (const work of all) queue.push(work, 0);
    all[2]!.priority = 1;
    all[2]!.ticket!.move();
    all[0]!.startedAt = started++;
    all[0]!.ticket!.move();
    expect(queue.length).toBe(3);
    expect([0, 0, 0].map(() => queue.pop(0)!.name)).toEqual(['c', 'b', 'a']);
    expect(queue.pop(0)).toBe(undefined);
  }
});

test('what is withdrawn, or has expired, takes nobody’s turn', () => {
  for (const order of orders) {
    const expired: Piece[] = [];
    const queue = newQueue(order, expired);
    const [gone, late, last] = [piece(1), piece(2, { deadline: 5 }), piece(2, { name: 'last' })];
    for (const work of [gone, late, last]) queue.push(work, 0);
    gone.ticket!.withdraw();
    expect(queue.length).toBe(2);
    expect(queue.pop(10)).toBe(last);
    expect(expired).toEqual([late]);
    expect(queue.length).toBe(0);
    expect(queue.pop(10)).toBe(undefined);
    queue.push(piece(1, { name: 'again' }), 10);
    expect(queue.pop(10)!.name).toBe('again');
  }
});

test('a tenant that may not have its turn is passed over, and keeps it', () => {
  for (const order of ['fair', 'least-granted'] as const) {
    const queue = newQueue(order);
    for (const name of ['a', 'b']) queue.push(piece(1, { name }), 0);
    queue.push(piece(0, { name: 'other' }), 0);
    const notOne = { mayTake: (tenant: number) => tenant !== 1 };
    expect(queue.pop(0, notOne)!.name).toBe('other');
    expect(queue.pop(0, notOne)).toBe(undefined);
    expect(queue.length).toBe(2);
    expect([0, 0].map(() => queue.pop(0)!.name)).toEqual(['a', 'b']);
  }
});

test('a tenant of which something waits is not forgotten', () => {
  const queue = newQueue('fair');
  queue.push(piece(1, { name: 'a' }), 0);
  queue.forget(1);
  queue.forget(2);
  expect(queue.pop(0)!.name).toBe('a');
  expect(() => queue.push(piece(2), 0)).toThrow('has no weight');
});
