import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  defaultPoolRules,
  mostQuota,
  nodesNeeded,
  poolFor,
  type PoolUse,
  refusalOf,
} from './pool-rules.ts';
import { defaultScalingRules, planScaling, type ResourceState } from './predictive-scaling.ts';

const tenant: ResourceState = {
  quota: 1000,
  partitions: 4,
  used: 500,
  hoursSinceChange: Infinity,
  isFixed: false,
};

describe('Algorithm 1', () => {
  test.each([
    ['inside the band', 800, {}, { kind: 'keep' }],
    ['on its edges', 850, {}, { kind: 'keep' }],
    ['above it', 910, {}, { kind: 'scale', quota: 1400, partitions: 4, partitionQuota: 350 }],
    ['below it', 520, {}, { kind: 'scale', quota: 800, partitions: 4, partitionQuota: 200 }],
    ['below it, soon after a change', 520, { hoursSinceChange: 167 }, { kind: 'keep' }],
    ['a little below it', 600, {}, { kind: 'keep' }],
    ['below it, with a fixed quota', 520, { isFixed: true }, { kind: 'keep' }],
    ['above it, with a fixed quota', 910, { isFixed: true }, { kind: 'warn', wanted: 1400 }],
    ['below what is stored', 100, { used: 700 }, { kind: 'scale', quota: 700 / 0.85 }],
    [
      'inside the band, nearly all in use',
      800,
      { used: 960 },
      { kind: 'scale', quota: 960 / 0.65 },
    ],
    ['below it, nearly all in use', 100, { used: 960 }, { kind: 'scale', quota: 960 / 0.65 }],
    ['inside the band, less in use', 800, { used: 950 }, { kind: 'keep' }],
    ['a fixed quota, nearly all in use', 800, { used: 960, isFixed: true }, { kind: 'warn' }],
  ])('%s', (_, highest, change, expected) => {
    expect(planScaling({ ...tenant, ...change }, highest, defaultScalingRules)).toMatchObject(
      expected,
    );
  });

  test('splits partitions until each has a quota below the bound', () => {
    const rules = { ...defaultScalingRules, mostPartitionQuota: 400 };
    expect(planScaling(tenant, 3900, rules)).toMatchObject({ partitions: 16, partitionQuota: 375 });
  });

  test('does not lower the quota of a partition below its bound', () => {
    const rules = { ...defaultScalingRules, leastPartitionQuota: 230 };
    expect(planScaling(tenant, 520, rules)).toMatchObject({ quota: 800, partitionQuota: 230 });
  });

  test('takes what room the pool has, and says what is missing', () => {
    const rules = { ...defaultScalingRules, mostQuota: 1200, mostPartitionQuota: 275 };
    expect(planScaling(tenant, 910, rules)).toMatchObject({
      kind: 'short of room',
      wanted: 1400,
      quota: 1200,
      partitions: 8,
    });
  });

  test('after a change the forecast is within the band', () => {
    const amount = fc.double({ min: 1, max: 1e9, noNaN: true });
    fc.assert(
      fc.property(amount, amount, amount, (quota, used, highest) => {
        const decision = planScaling({ ...tenant, quota, used }, highest, defaultScalingRules);
        if (decision.kind !== 'scale') return;
        expect(decision.quota).toBeGreaterThanOrEqual(used);
        const again = { ...tenant, quota: decision.quota, used, hoursSinceChange: 0 };
        expect(planScaling(again, highest, defaultScalingRules).kind).toBe('keep');
      }),
    );
  });

  test('refuses a forecast that is no number', () => {
    expect(() => planScaling(tenant, NaN, defaultScalingRules)).toThrow(RangeError);
  });
});

const pool: PoolUse = {
  nodeCapacity: new Float64Array(20).fill(1000),
  nodeLoad: new Float64Array(20).fill(700),
  quotas: new Map([['a', 1500]]),
};

describe('rules of a pool', () => {
  test.each([
    ['a quota within all of them', pool, 2000, 0, undefined],
    ['more than a tenth of the pool', pool, 2001, 0, 'quota'],
    ['load for which there is no room', pool, 1000, 2001, 'idle'],
    [
      'one node that is full',
      { ...pool, nodeLoad: pool.nodeLoad.with(3, 801) },
      1000,
      0,
      'idle node',
    ],
    [
      'idle capacity below a quota',
      { ...pool, nodeLoad: new Float64Array(20).fill(790), quotas: new Map([['a', 1500]]) },
      4500,
      0,
      'idle',
    ],
  ])('%s', (name, use, quota, load, rule) => {
    const rules = { ...defaultPoolRules, capacityPerQuota: name.startsWith('idle') ? 1 : 10 };
    expect(refusalOf(use, 'b', quota, load, rules)?.rule).toBe(rule);
  });

  test('an admitted change breaks none of them', () => {
    const setting = fc.record({
      capacities: fc.array(fc.double({ min: 1, max: 1000, noNaN: true }), {
        minLength: 1,
        maxLength: 30,
      }),
      use: fc.double({ min: 0, max: 1, noNaN: true }),
      quotas: fc.array(fc.double({ min: 0, max: 500, noNaN: true }), { maxLength: 12 }),
      quota: fc.double({ min: 0, max: 3000, noNaN: true }),
      load: fc.double({ min: 0, max: 3000, noNaN: true }),
      mostTenants: fc.integer({ min: 1, max: 12 }),
      mostNodes: fc.integer({ min: 1, max: 40 }),
    });
    fc.assert(
      fc.property(setting, ({ capacities, use, quotas, quota, load, mostTenants, mostNodes }) => {
        const rules = { ...defaultPoolRules, mostTenants, mostNodes };
        const nodeCapacity = Float64Array.from(capacities);
        const nodeLoad = nodeCapacity.map((capacity) => capacity * use);
        const known = new Map(quotas.map((of, i) => [`t${i}`, of]));
        const made = { nodeCapacity, nodeLoad, quotas: known };
        if (refusalOf(made, 't0', quota, load, rules) !== undefined) return;
        const after = new Map(known).set('t0', quota);
        const capacity = nodeCapacity.reduce((sum, one) => sum + one, 0);
        const used = nodeLoad.reduce((sum, one) => sum + one, 0) + load;
        expect(after.size).toBeLessThanOrEqual(mostTenants);
        expect(capacities.length).toBeLessThanOrEqual(mostNodes);
        const largest = Math.max(...after.values());
        expect(capacity).toBeGreaterThanOrEqual(10 * largest);
        expect(capacity - used).toBeGreaterThanOrEqual(Math.max(0.2 * capacity, largest) - 1e-6);
      }),
    );
  });

  test('the most that can be promised is not refused, and a pool of the size needed keeps them', () => {
    const most = mostQuota(pool, defaultPoolRules);
    expect(refusalOf(pool, 'b', most, 0, defaultPoolRules)).toBeUndefined();
    expect(nodesNeeded(16_000, 1500, 1000, defaultPoolRules)).toBe(20);
    expect(nodesNeeded(1000, 1500, 1000, defaultPoolRules)).toBe(15);
  });
});

describe('the pool of a new tenant', () => {
  const poolOf = (tenants: number, use: number): PoolUse => ({
    nodeCapacity: new Float64Array(10).fill(1000),
    nodeLoad: new Float64Array(10).fill(1000 * use),
    quotas: new Map(Array.from({ length: tenants }, (_, i) => [`t${i}`, 10])),
  });
  const chosen = (...pools: PoolUse[]): number | undefined =>
    poolFor(pools, 'new', 100, 50, defaultPoolRules);

  test('is one with room that has fewest tenants, and of these most idle', () => {
    expect(chosen(poolOf(3, 0.1), poolOf(1, 0.5), poolOf(2, 0))).toBe(1);
    expect(chosen(poolOf(1, 0.5), poolOf(1, 0.4), poolOf(1, 0.6))).toBe(1);
    expect(chosen(poolOf(0, 0.8), poolOf(9, 0.1))).toBe(1);
  });

  test('is a further one where all would break a rule', () => {
    expect(chosen(poolOf(0, 0.8), poolOf(0, 0.9))).toBeUndefined();
    expect(chosen()).toBeUndefined();
  });
});
