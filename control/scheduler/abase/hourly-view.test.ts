import { expect, test } from 'vitest';
import { ClusterBuilder } from '../cluster-builder.ts';
import type { ClusterModel } from '../cluster-model.ts';
import { resourcePool } from '../simulation/workloads/resource-pool.ts';
import { hourlyView } from './hourly-view.ts';
import { quotaScaling } from './quota-scaling.ts';

const environment = { now: 0, rng: { next: () => 0.5 } };
const hourSeconds = 3600;

/** One partition with a follower that bears a quarter, one value for each half hour. */
function halfHours(values: readonly number[], quota = 0, startAt = 0): ClusterModel {
  const shape = { dimensions: ['cpu', 'io'], points: values.length, pointSeconds: 1800, startAt };
  const builder = new ClusterBuilder(shape);
  const table = builder.table('t', 'shop', quota);
  for (const id of ['a', 'b']) {
    const node = builder.node({ id });
    builder.pod({ id, node, limits: [1000, 1000], diskBytes: 100 });
  }
  const row = builder.row([...values, ...values.map((value) => value / 10)]);
  const follower = { row, scale: 0.25 };
  const partition = builder.partition({ id: 'p', table, bytes: 7, leader: { row }, follower });
  builder.replica(partition, 0, true);
  builder.replica(partition, 1, false);
  return builder.build();
}

test('a replica is seen by the highest mean of each hour of day, and by its bytes', () => {
  // Two days; 2 and 4 in the first hour of the first, 10 and 0 in that of the second.
  const values = Array.from({ length: 96 }, (_, t) => ({ 0: 2, 1: 4, 48: 10 })[t] ?? 0);
  const view = hourlyView(halfHours(values));
  expect(view.dimensions).toEqual(['ru', 'storage']);
  expect([view.points, view.pointSeconds]).toEqual([24, hourSeconds]);
  const [leader, follower] = [view.rows.subarray(0, 48), view.rows.subarray(48, 96)];
  expect([...leader.subarray(0, 2)]).toEqual([5, 0]);
  expect([...follower.subarray(0, 2)]).toEqual([1.25, 0]);
  expect(new Set([...leader.subarray(24), ...follower.subarray(24)])).toEqual(new Set([7]));
  expect([...view.pods.limits]).toEqual([1000, 100, 1000, 100]);
});

test('hours are those of the day, whenever the recording began', () => {
  const at = 5 * hourSeconds + 1800;
  const [first] = [hourlyView(halfHours([8, 2, 4], 0, at)).rows.subarray(0, 24)];
  expect([...first]).toEqual(Array.from({ length: 24 }, (_, hour) => ({ 5: 8, 6: 3 })[hour] ?? 0));
});

test('a cluster of request units and storage by hour is its own view', () => {
  const size = { nodes: 4, replicasPerNode: 3, tenants: 2, usedShare: 0.5, copies: 1, noise: 0 };
  const model = resourcePool(1, size).model(1);
  expect(hourlyView(model)).toBe(model);
});

test.each([
  ['raised to what the forecast needs', 100, 100, 100 / 0.65],
  ['lowered where little of it is used', 100, 190, 100 / 0.65],
  ['raised by no more than a tenth of the cluster', 180, 150, 200],
  ['left alone between the two', 100, 140, undefined],
  ['left alone where there is none', 100, 0, undefined],
])('a quota is %s', (_, load, quota, wanted) => {
  const model = halfHours(Array<number>(96).fill(load), quota);
  const proposals = quotaScaling().plan(model, environment);
  const set = proposals.map(({ change }) => (change.kind === 'set-quota' ? change.to : undefined));
  expect(set).toEqual(wanted === undefined ? [] : [expect.closeTo(wanted, 0)]);
});

test('nothing is forecast from less than a day', () => {
  expect(quotaScaling().plan(halfHours([100, 100], 10), environment)).toEqual([]);
});

test('a quota that the last hour nearly used up is raised, though the forecast leaves out a peak seen once', () => {
  const values = Array<number>(96).fill(100);
  values.fill(138, 94);
  const [proposal] = quotaScaling().plan(halfHours(values, 140), environment);
  expect(proposal?.change).toMatchObject({ kind: 'set-quota', from: 140 });
  expect(proposal?.reason).toContain('98.6 % of the quota is in use: more than 95 %');
});

test('says why no quota is changed', () => {
  const told = (values: readonly number[], quota: number): string =>
    quotaScaling().whyIdle!(halfHours(values, quota));
  expect(told([100, 100], 140)).toContain(
    'a forecast needs 24 hours of load, and the recording has 1',
  );
  expect(told(Array<number>(96).fill(100), 0)).toContain('no tenant has a quota');
  expect(told(Array<number>(96).fill(100), 140)).toMatch(
    /forecast at 7\d\.\d % of the quota of shop, which needs no change/,
  );
});
