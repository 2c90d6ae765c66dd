import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PartitionCeilings, type PartitionRules } from './partition-ceilings.ts';

const quota = 1600;
const tenant = { tenant: 1, ruPerSecond: 0, burstRu: 0 };
const always: PartitionRules = { cap: 'always', factor: 3, podRate: 0 };

/** Table 7 of tenant 1, of 16 partitions; and table 8, which is not counted by any. */
function open(rules: Partial<PartitionRules> = {}, partitions = 16): PartitionCeilings {
  const ceilings = new PartitionCeilings(0);
  ceilings.setRules({ ...always, ...rules }, 0);
  ceilings.setQuotas([{ ...tenant, ruPerSecond: quota }], 0);
  ceilings.setTables([{ table: 7, tenant: 1, partitions }], 0);
  return ceilings;
}

/** A request of so many units at these slots of the table; the milliseconds that it would have to wait. */
function ask(
  ceilings: PartitionCeilings,
  slots: readonly number[],
  units: number,
  now: number,
  table = 7,
): number {
  if (!ceilings.isWatched) return 0;
  const request = ceilings.request();
  request.begin();
  for (const slot of slots) request.touch(table, slot, now);
  const ms = request.waitMs(now);
  if (ms === 0) request.charge(units, now);
  return ms;
}

/** Units served in these seconds to a client that asks every millisecond. */
function served(
  ceilings: PartitionCeilings,
  slots: readonly number[],
  units: number,
  [from, to]: readonly [number, number],
): number {
  let sum = 0;
  for (let now = from * 1000; now < to * 1000; now++) {
    if (ask(ceilings, slots, units, now) === 0) sum += units;
  }
  return sum;
}

describe('a partition', () => {
  test('gets three times its part of the quota, whatever requests cost', () => {
    for (const units of [0.5, 1, 7, 130]) {
      const ceilings = open();
      served(ceilings, [5], units, [0, 5]);
      const perSecond = served(ceilings, [5], units, [5, 105]) / 100;
      expect(Math.abs(perSecond - (3 * quota) / 16)).toBeLessThan(1.5 + units / 100);
    }
  });

  test('says when there is room again', () => {
    const ceilings = open();
    expect(ask(ceilings, [0], 600, 0)).toBe(0);
    // It had a second's worth, 300 units, and owes as much.
    expect(ask(ceilings, [0], 1, 0)).toBeCloseTo(1000, 6);
    expect(ask(ceilings, [0], 1, 999)).toBeGreaterThan(0);
    expect(ask(ceilings, [0], 1, 1001)).toBe(0);
  });

  test('owes no more than ten seconds', () => {
    const ceilings = open();
    ask(ceilings, [0], 1e9, 0);
    expect(ask(ceilings, [0], 1, 0)).toBeCloseTo(10_000, 6);
  });

  test('takes nothing from the others, and is a range of slots of equal length', () => {
    const ceilings = open();
    ask(ceilings, [1023], 1000, 0);
    const full = Array.from({ length: 16_384 }, (_, slot) => slot).filter(
      (slot) => ask(ceilings, [slot], 0, 0) > 0,
    );
    expect([full[0], full.at(-1), full.length]).toEqual([0, 1023, 1024]);
    expect(ask(ceilings, [1023], 1, 0, 8)).toBe(0);
  });
});

test('a load that is spread over all partitions may take at once what its tenant may', () => {
  const ceilings = open();
  ceilings.setQuotas([{ ...tenant, ruPerSecond: quota, burstRu: 5 * quota }], 0);
  let left = 6 * quota;
  // Not quite even: the slots of names are as hashes fall.
  for (let n = 0; left > 0; n++, left--) {
    expect(ask(ceilings, [(n * 7919) % 16_384], 1, 0)).toBe(0);
  }
});

describe('a request of several keys', () => {
  test('needs room in every partition, and is charged to each in equal parts', () => {
    const ceilings = open();
    // Twice the same partition is once.
    ask(ceilings, [0, 1, 2000], 1200, 0);
    expect(ask(ceilings, [0], 1, 0)).toBeCloseTo(1000, 6);
    expect(ask(ceilings, [2000], 1, 0)).toBeCloseTo(1000, 6);
    expect(ask(ceilings, [5000, 2000], 1, 0)).toBeGreaterThan(0);
    expect(ask(ceilings, [5000], 1, 0)).toBe(0);
  });
});

describe('no ceiling', () => {
  test.each([
    ['with as many partitions as the factor', open({}, 3)],
    ['switched off', open({ cap: 'none' })],
    ['of a table without a quota', new PartitionCeilings(0)],
  ])('%s', (_, ceilings) => {
    expect(ceilings.isWatched).toBe(false);
    expect(ceilings.areNeeded).toBe(false);
  });

  test('switched off, and nothing is kept for when it is on again', () => {
    const ceilings = open();
    ask(ceilings, [0], 1000, 0);
    ceilings.setRules({ ...always, cap: 'none' }, 0);
    expect([ceilings.isWatched, ceilings.size]).toEqual([false, 0]);
    ceilings.setRules(always, 0);
    expect(ask(ceilings, [0], 1, 0)).toBe(0);
  });

  test('of a table or tenant that is gone', () => {
    const ceilings = open();
    ask(ceilings, [0], 1000, 0);
    ceilings.setTables([], 0);
    expect([ceilings.areNeeded, ceilings.size]).toEqual([false, 0]);
    const other = open();
    ask(other, [0], 1000, 0);
    other.setQuotas([tenant], 0);
    expect([other.areNeeded, other.size]).toEqual([false, 0]);
  });
});

describe('only while the pod is busy', () => {
  const busy: Partial<PartitionRules> = { cap: 'busy', podRate: 2000 };

  test('more than nine tenths of what it can do, over a second', () => {
    const ceilings = open(busy);
    let now = 0;
    const spend = (perSecond: number, seconds: number): void => {
      for (const end = now + seconds * 1000; now < end; now += 50)
        ceilings.tick(perSecond / 20, now);
    };
    spend(1600, 20);
    expect(ceilings.isWatched).toBe(false);
    spend(2500, 0.1);
    expect(ceilings.isWatched).toBe(false);
    spend(2500, 1);
    expect(ceilings.isWatched).toBe(true);
    spend(1500, 2);
    expect(ceilings.isWatched).toBe(false);
  });

  test('what was served while it was idle is not held against the partition', () => {
    const ceilings = open(busy);
    expect(served(ceilings, [0], 10, [0, 1])).toBe(10_000);
    ceilings.tick(10_000, 1000);
    expect(ask(ceilings, [0], 10, 1000)).toBe(0);
  });

  test('where nobody knows what the pod can do it is never busy', () => {
    const ceilings = open({ cap: 'busy', podRate: 0 });
    ceilings.tick(1e9, 1);
    expect([ceilings.isWatched, ceilings.areNeeded]).toEqual([false, false]);
  });
});

describe('a change while requests come', () => {
  test.each([
    [
      'the quota is raised',
      2,
      (c: PartitionCeilings, now: number) =>
        c.setQuotas([{ ...tenant, ruPerSecond: 2 * quota }], now),
    ],
    [
      'the quota is cut',
      0.5,
      (c: PartitionCeilings, now: number) =>
        c.setQuotas([{ ...tenant, ruPerSecond: quota / 2 }], now),
    ],
    [
      'the factor',
      2,
      (c: PartitionCeilings, now: number) => c.setRules({ ...always, factor: 6 }, now),
    ],
    [
      'the partitions',
      2,
      (c: PartitionCeilings, now: number) =>
        c.setTables([{ table: 7, tenant: 1, partitions: 8 }], now),
    ],
  ])('%s', (_, times, change) => {
    const ceilings = open();
    served(ceilings, [0], 1, [0, 5]);
    change(ceilings, 5000);
    // The initial units of a larger or new bucket are spent first.
    served(ceilings, [0], 1, [5, 10]);
    const perSecond = served(ceilings, [0], 1, [10, 30]) / 20;
    expect(perSecond / ((3 * quota) / 16)).toBeCloseTo(times, 1);
  });

  test('what is owed stays, where the table is as before', () => {
    const ceilings = open();
    ask(ceilings, [0], 1000, 0);
    const before = ask(ceilings, [0], 1, 0);
    ceilings.setTables(
      [
        { table: 7, tenant: 1, partitions: 16 },
        { table: 9, tenant: 1, partitions: 4 },
      ],
      0,
    );
    expect(ask(ceilings, [0], 1, 0)).toBe(before);
  });
});

describe('memory', () => {
  test('a partition that nobody has touched of late is not kept', () => {
    const ceilings = open({}, 16_384);
    for (let slot = 0; slot < 16_384; slot++) ask(ceilings, [slot], 1e-3, 0);
    expect(ceilings.size).toBe(16_384);
    ask(ceilings, [0], 1, 900);
    ceilings.tick(0, 1000);
    expect(ceilings.size).toBe(1);
    ceilings.tick(0, 30_000);
    expect(ceilings.size).toBe(0);
  });

  test('a request that was long under way is charged all the same', () => {
    const ceilings = open();
    const request = ceilings.request();
    request.begin();
    request.touch(7, 0, 0);
    expect(request.waitMs(0)).toBe(0);
    ceilings.tick(0, 5000);
    expect(ceilings.size).toBe(0);
    request.charge(600, 5000);
    expect(ask(ceilings, [0], 1, 5000)).toBeCloseTo(1000, 6);
  });
});

test('in the long run no partition gets more than its ceiling, and one that asks for less is never refused', () => {
  const step = fc.record({
    slots: fc.array(fc.nat(16_383), { minLength: 1, maxLength: 4 }),
    units: fc.double({ min: 0.1, max: 50, noNaN: true }),
    gap: fc.nat(40),
  });
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 300 }), (steps) => {
      const ceilings = open();
      const ceiling = (3 * quota) / 16;
      const served = Array.from({ length: 16 }, () => 0);
      let now = 0;
      for (const { slots, units, gap } of steps) {
        now += gap;
        const partitions = new Set(slots.map((slot) => slot >> 10));
        const isIn = ask(ceilings, slots, units, now) === 0;
        // A tenant below the refill rate is within the ceiling.
        if ([...partitions].every((p) => served[p] === 0)) expect(isIn).toBe(true);
        if (isIn) for (const p of partitions) served[p]! += units / partitions.size;
      }
      for (const units of served) expect(units).toBeLessThan(ceiling * (1 + now / 1000) + 50);
    }),
  );
});
