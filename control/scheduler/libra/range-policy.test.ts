import { describe, expect, test } from 'vitest';
import { RangeState } from '../../ranges/range-state.ts';
import { ClusterBuilder } from '../cluster-builder.ts';
import { brokenLimits } from '../hard-limits.ts';
import { mixedRegions } from '../simulation/workloads/mixed-regions.ts';
import { replicaScheduling } from '../simulation/workloads/replica-scheduling.ts';
import { carriedOut, type WorkingCluster } from '../working-cluster.ts';
import { rangePolicy } from './range-policy.ts';

const environment = { now: 0, rng: { next: () => 0.5 } };
const small = { subclusters: 2, nodes: 9, tables: 20, partitions: 400, minutes: 30 };

function dimensionLoads(cluster: WorkingCluster, dimension: number): number[] {
  return cluster.replicasOfPod.map((_, pod) => cluster.podLoad[cluster.podSeries(pod, dimension)]!);
}

describe("Libra's planners on a cluster", () => {
  test('bring both dimensions of W-MIX within λ of the mean, by moves and splits', () => {
    const model = mixedRegions(1).model(1);
    const proposals = rangePolicy().plan(model, environment);
    const cluster = carriedOut(model, proposals);
    for (const dimension of [0, 1]) {
      const loads = dimensionLoads(cluster, dimension);
      const mean = loads.reduce((sum, load) => sum + load, 0) / loads.length;
      expect(Math.max(...loads) / mean).toBeLessThanOrEqual(1.05 + 1e-6);
    }
    const kinds = new Set(proposals.map(({ change }) => change.kind));
    expect(kinds).toEqual(new Set(['move-replica', 'split']));
  });

  test('break no hard limit of replicated partitions, and let followers lead where that does', () => {
    const model = replicaScheduling(1, { ...small, violations: 20, hotShare: 0.4 }).model(1);
    const proposals = rangePolicy().plan(model, environment);
    expect(proposals.some(({ change }) => change.kind === 'transfer-leader')).toBe(true);
    expect(proposals.some(({ change }) => change.kind === 'move-replica')).toBe(true);
    expect(brokenLimits(carriedOut(model, proposals))).toEqual([]);
    for (const { change, cost } of proposals) {
      expect(cost.replicas).toBe(change.kind === 'move-replica' ? 1 : 0);
    }
  });

  test('take pods of more capacity for as much more load', () => {
    const builder = new ClusterBuilder({ dimensions: ['cpu', 'io'], points: 1, pointSeconds: 10 });
    const table = builder.table('t');
    for (const [pod, limit] of [2, 1].entries()) {
      builder.node({ id: `n${pod}` });
      builder.pod({ id: `p${pod}`, node: pod, limits: [limit, limit] });
    }
    // Halves of the regions weigh more in either dimension; all begin on the smaller pod.
    for (let region = 0; region < 120; region++) {
      const row = builder.row(region % 2 === 0 ? [1, 0.5] : [0.5, 1]);
      const partition = builder.partition({ id: `r${region}`, table, leader: { row } });
      builder.replica(partition, 1, true);
    }
    const model = builder.build();
    const cluster = carriedOut(model, rangePolicy().plan(model, environment));
    const [large, less] = dimensionLoads(cluster, 0);
    expect(large! / less!).toBeGreaterThan(1.8);
    expect(large! / less!).toBeLessThan(2.2);
  });
});

test('a node that may not take a region is passed over for the next lowest', () => {
  const state = new RangeState({
    capacity: Float64Array.of(1, 1, 1),
    node: Uint32Array.of(0, 0, 2),
    cpu: Float64Array.of(2, 1, 1),
    io: Float64Array.of(1, 1, 1),
    bytes: new Float64Array(3),
    order: Uint32Array.of(0, 1, 2),
    allows: (region, node) => node !== 1 || region === 1,
  });
  expect(state.lowestFor(0, state.total.cpu)).toBe(2);
  expect(state.lowestFor(1, state.total.cpu)).toBe(1);
  expect(state.lowestFor(2, state.total.cpu)).toBe(2);
});
