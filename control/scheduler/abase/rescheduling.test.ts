import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ClusterBuilder } from '../cluster-builder.ts';
import type { ClusterModel } from '../cluster-model.ts';
import { brokenLimits } from '../hard-limits.ts';
import type { Proposal } from '../proposal.ts';
import { Chance } from '../simulation/chance.ts';
import { carriedOut, WorkingCluster } from '../working-cluster.ts';
import { countBalance } from './count-balance.ts';
import { hourOfDayMaxima, PoolLoad, podsOfPools } from './load.ts';
import { rescheduling } from './rescheduling.ts';

const environment = { now: 0, rng: new Chance(1) };
const shape = { dimensions: ['ru', 'storage'], points: 24, pointSeconds: 3600 };
const flat = (ru: number, storage: number): number[] =>
  Array.from({ length: 48 }, (_, i) => (i < 24 ? ru : storage));

interface Setting {
  seed: number;
  nodes: number;
  zones: number;
  tenants: number;
  partitions: number;
  copies: number;
}

const anySetting: fc.Arbitrary<Setting> = fc.record({
  seed: fc.nat(1e6),
  nodes: fc.integer({ min: 3, max: 12 }),
  zones: fc.integer({ min: 1, max: 3 }),
  tenants: fc.integer({ min: 1, max: 4 }),
  partitions: fc.integer({ min: 0, max: 40 }),
  copies: fc.integer({ min: 1, max: 3 }),
});

/** Replicas on distinct nodes, in distinct zones where there are enough of them, with loads far from even. */
function anyCluster({ seed, nodes, zones, tenants, partitions, copies }: Setting): ClusterModel {
  const chance = new Chance(seed);
  const builder = new ClusterBuilder(shape);
  for (let node = 0; node < nodes; node++) {
    builder.node({ id: `n${node}`, zone: `z${node % zones}`, pool: 'p' });
    builder.pod({ id: `n${node}`, node, limits: [100, 100], diskBytes: 1000 });
  }
  for (let tenant = 0; tenant < tenants; tenant++) builder.table(`t${tenant}`, `t${tenant}`);
  const bytes = Array.from({ length: nodes }, () => 0);
  for (let partition = 0; partition < partitions; partition++) {
    const peak = chance.below(24);
    const size = chance.lognormal(0, 1);
    const row = builder.row(
      Float32Array.from({ length: 48 }, (_, i) =>
        i < 24 ? size * (1 + 0.5 * Math.cos(((i - peak) * Math.PI) / 12)) : chance.lognormal(0, 1),
      ),
    );
    const number = builder.partition({
      id: `${partition}`,
      table: partition % tenants,
      bytes: chance.uniform(0, 60),
      leader: { row },
      follower: { row, scale: 0.5 },
    });
    const first = chance.below(chance.below(nodes) + 1);
    for (let copy = 0; copy < copies; copy++) {
      const node = (first + copy) % nodes;
      bytes[node]! += 60;
      builder.replica(number, node, copy === 0);
    }
  }
  return builder.build();
}

function poolOf(cluster: WorkingCluster): PoolLoad {
  return new PoolLoad(cluster, podsOfPools(cluster.model)[0]!);
}

/** Replicas of a partition in the same zone, over all partitions. */
function zoneConflicts(cluster: WorkingCluster): number {
  const { model, podOf, nodeOfPod } = cluster;
  return cluster.replicasOfPartition.reduce((sum, replicas) => {
    const zones = new Set(replicas.map((of) => model.nodes.zone[nodeOfPod[podOf[of]!]!]));
    return sum + replicas.length - zones.size;
  }, 0);
}

function overfull(cluster: WorkingCluster): number[] {
  return podsOfPools(cluster.model)[0]!.filter(
    (pod) => cluster.podBytes[pod]! > 0.85 * cluster.model.pods.diskBytes[pod]!,
  );
}

/** Carries the plan out one by one, and hands each step to `check`. */
function follow(
  model: ClusterModel,
  proposals: readonly Proposal[],
  check: (cluster: WorkingCluster, carryOut: () => void, proposal: Proposal) => void,
): WorkingCluster {
  const cluster = new WorkingCluster(model);
  for (const proposal of proposals) {
    check(cluster, () => cluster.apply(proposal.change), proposal);
  }
  return cluster;
}

describe('load', () => {
  test('of a replica is the highest of each hour of day', () => {
    const week = Float64Array.from({ length: 168 }, (_, hour) => (hour === 100 ? 9 : hour % 24));
    const load = hourOfDayMaxima(week);
    expect([...load]).toEqual(Array.from({ length: 24 }, (_, hour) => (hour === 4 ? 9 : hour)));
    expect(() => hourOfDayMaxima([1, 2])).toThrow(RangeError);
  });

  test('of a node with replicas of opposite phase is below the sum of their highest hours', () => {
    const builder = new ClusterBuilder(shape);
    builder.node({ id: 'n', pool: 'p' });
    builder.pod({ id: 'n', node: 0, limits: [100, 100] });
    builder.table('t', 't');
    for (const peak of [0, 12]) {
      const values = flat(0, 1).map((of, i) =>
        i < 24 ? 10 + 5 * Math.cos(((i - peak) * Math.PI) / 12) : of,
      );
      const row = builder.row(values);
      builder.partition({ id: `${peak}`, table: 0, leader: { row } });
      builder.replica(peak / 12, 0, true);
    }
    const load = poolOf(new WorkingCluster(builder.build()));
    expect(load.utilization(0, 0)).toBeCloseTo(0.2, 5);
    expect(load.optimum).toEqual({ ru: load.utilization(0, 0), storage: 0.02 });
  });

  test('gain is by how much the larger deviation of the two nodes falls', () => {
    const builder = new ClusterBuilder(shape);
    for (let node = 0; node < 2; node++) {
      builder.node({ id: `n${node}`, pool: 'p' });
      builder.pod({ id: `n${node}`, node, limits: [100, 100] });
    }
    builder.table('t', 't');
    for (const [number, ru] of [40, 20].entries()) {
      const row = builder.row(flat(ru, 0));
      builder.partition({ id: `${number}`, table: 0, leader: { row } });
      builder.replica(number, 0, true);
    }
    const load = poolOf(new WorkingCluster(builder.build()));
    expect(load.optimum).toEqual({ ru: 0.3, storage: 0 });
    expect(load.gain(0, 1)).toBeCloseTo(0.3 - 0.1, 6);
    expect(load.gain(1, 1)).toBeCloseTo(0.3 - 0.1, 6);
  });
});

describe('Algorithm 2', () => {
  test('never raises the largest deviation, breaks no limit, and ends', () => {
    fc.assert(
      fc.property(anySetting, (setting) => {
        const model = anyCluster(setting);
        const proposals = rescheduling({ rounds: 1000 }).plan(model, environment);
        const start = new WorkingCluster(model);
        const broken = brokenLimits(start).length;
        const full = new Set(overfull(start));
        let conflicts = zoneConflicts(start);
        const cluster = follow(model, proposals, (now, carryOut, { change }) => {
          if (change.kind !== 'move-replica') throw new Error(change.kind);
          const load = poolOf(now);
          const pair = [change.fromPod, change.toPod];
          const before = Math.max(...pair.map((pod) => load.deviation(pod)));
          expect(load.gain(change.replica, change.toPod)).toBeGreaterThan(0);
          carryOut();
          expect(Math.max(...pair.map((pod) => load.deviation(pod)))).toBeLessThan(before);
          expect(zoneConflicts(now)).toBeLessThanOrEqual(conflicts);
          conflicts = zoneConflicts(now);
        });
        expect(brokenLimits(cluster).length).toBeLessThanOrEqual(broken);
        for (const pod of overfull(cluster)) expect(full.has(pod)).toBe(true);
        // With the same thresholds nothing is left to do.
        expect(proposals.length).toBeLessThan(1000);
      }),
      { numRuns: 150 },
    );
  });

  test('a node takes part in one move a round, and in none while it is migrating', () => {
    const model = anyCluster({
      seed: 5,
      nodes: 12,
      zones: 1,
      tenants: 4,
      partitions: 40,
      copies: 1,
    });
    const pods = (proposals: readonly Proposal[]): number[] =>
      proposals.flatMap(({ change }) =>
        change.kind === 'move-replica' ? [change.fromPod, change.toPod] : [],
      );
    const moved = pods(rescheduling().plan(model, environment));
    expect(moved.length).toBeGreaterThan(0);
    expect(new Set(moved).size).toBe(moved.length);
    const isMigrating = (pod: number): boolean => pod === moved[0];
    expect(pods(rescheduling({ isMigrating }).plan(model, environment))).not.toContain(moved[0]);
  });

  test('leaves a pool alone that is even', () => {
    const builder = new ClusterBuilder(shape);
    builder.table('t', 't');
    for (let node = 0; node < 4; node++) {
      builder.node({ id: `n${node}`, pool: 'p' });
      builder.pod({ id: `n${node}`, node, limits: [100, 100] });
      const row = builder.row(flat(50, 50));
      builder.partition({ id: `${node}`, table: 0, leader: { row } });
      builder.replica(node, node, true);
    }
    expect(rescheduling({ rounds: 10 }).plan(builder.build(), environment)).toEqual([]);
  });
});

/** The largest difference between nodes in the number of a tenant's replicas. */
function countSpread(cluster: WorkingCluster): number {
  const { model } = cluster;
  const pods = podsOfPools(model)[0]!;
  return Math.max(
    ...model.tables.ids.map((_, table) => {
      const counts = pods.map((pod) => cluster.tableOnPod(table, pod));
      return Math.max(...counts) - Math.min(...counts);
    }),
  );
}

describe('replica counts', () => {
  test('differ by at most one, and the load phase keeps it', () => {
    fc.assert(
      fc.property(anySetting, (setting) => {
        // One zone, and room on every disk: limits may otherwise stand against it.
        const model = anyCluster({
          ...setting,
          zones: 1,
          copies: 1,
          partitions: setting.nodes * 3,
        });
        const first = countBalance().plan(model, environment);
        const counted = carriedOut(model, first);
        if (overfull(counted).length > 0) return;
        expect(countSpread(counted)).toBeLessThanOrEqual(1);
        const second = rescheduling({ rounds: 100 }).plan(
          { ...model, replicas: { ...model.replicas, pod: Uint32Array.from(counted.podOf) } },
          environment,
        );
        for (const { change } of second) counted.apply(change);
        expect(countSpread(counted)).toBeLessThanOrEqual(1);
      }),
      { numRuns: 60 },
    );
  });

  test('never break a limit, whatever stands against it', () => {
    fc.assert(
      fc.property(anySetting, (setting) => {
        const model = anyCluster(setting);
        const start = new WorkingCluster(model);
        const after = carriedOut(model, countBalance().plan(model, environment));
        expect(brokenLimits(after).length).toBeLessThanOrEqual(brokenLimits(start).length);
        expect(zoneConflicts(after)).toBeLessThanOrEqual(zoneConflicts(start));
        expect(countSpread(after)).toBeLessThanOrEqual(countSpread(start));
      }),
      { numRuns: 100 },
    );
  });
});
