import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ClusterBuilder } from '../cluster-builder.ts';
import type { ClusterModel } from '../cluster-model.ts';
import { brokenLimits } from '../hard-limits.ts';
import { Chance } from '../simulation/chance.ts';
import { carriedOut, WorkingCluster } from '../working-cluster.ts';
import { defaultRebuildLimits, rebuild, type RebuildJob, startRebuilds } from './recovery.ts';
import { placeInZones } from './zone-placement.ts';

function emptyPool(nodes: number, zones: number): ClusterBuilder {
  const builder = new ClusterBuilder({
    dimensions: ['ru', 'storage'],
    points: 1,
    pointSeconds: 3600,
  });
  for (let node = 0; node < nodes; node++) {
    builder.node({ id: `n${node}`, zone: `z${node % zones}`, pool: 'p' });
    builder.pod({ id: `n${node}`, node, limits: [100, 100] });
  }
  builder.table('t', 't');
  return builder;
}

const podsOf = (nodes: number): number[] => Array.from({ length: nodes }, (_, pod) => pod);

describe('placement in zones', () => {
  test('gives each replica a zone of its own, and nodes numbers that differ by at most one', () => {
    const sizes = fc.record({
      zones: fc.integer({ min: 3, max: 6 }),
      perZone: fc.integer({ min: 1, max: 8 }),
      count: fc.integer({ min: 1, max: 60 }),
    });
    fc.assert(
      fc.property(sizes, ({ zones, perZone, count }) => {
        const nodes = zones * perZone;
        const cluster = new WorkingCluster(emptyPool(nodes, zones).build());
        const placed = placeInZones(cluster, podsOf(nodes), { count, copies: 3 });
        const counts = podsOf(nodes).map(() => 0);
        for (const pods of placed) {
          expect(new Set(pods.map((pod) => pod % zones)).size).toBe(3);
          for (const pod of pods) counts[pod]!++;
        }
        expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
      }),
    );
  });

  test('is refused where there are too few zones', () => {
    const cluster = new WorkingCluster(emptyPool(6, 2).build());
    expect(() => placeInZones(cluster, podsOf(6), { count: 1, copies: 3 })).toThrow('3 replicas');
  });
});

function filledPool(nodes: number, partitions: number, seed: number): ClusterModel {
  const builder = emptyPool(nodes, 1);
  const chance = new Chance(seed);
  for (let partition = 0; partition < partitions; partition++) {
    const row = builder.row([chance.uniform(0, 4), chance.uniform(0, 4)]);
    const use = { leader: { row }, follower: { row, scale: 0.5 } };
    builder.partition({ id: `${partition}`, table: 0, bytes: 10, ...use });
    const first = chance.below(nodes);
    const step = 1 + chance.below(Math.floor(nodes / 3));
    for (let copy = 0; copy < 3; copy++) {
      builder.replica(partition, (first + copy * step) % nodes, copy === 0);
    }
  }
  return builder.build();
}

describe('rebuilding', () => {
  test('restores each partition on other nodes, and leaves the failed ones empty', () => {
    fc.assert(
      fc.property(fc.integer({ min: 6, max: 20 }), fc.nat(1e6), (nodes, seed) => {
        const model = filledPool(nodes, 40, seed);
        const failed = new Set([seed % nodes, (seed + 1) % nodes]);
        const plan = rebuild(failed).plan(model, { now: 0, rng: new Chance(1) });
        const cluster = carriedOut(model, plan);
        expect(brokenLimits(cluster)).toEqual([]);
        for (const replicas of cluster.replicasOfPartition) expect(replicas).toHaveLength(3);
        for (const pod of failed) expect(cluster.replicasOfPod[pod]).toEqual([]);
      }),
      { numRuns: 50 },
    );
  });

  test('starts as many copies as the limits of the disks allow, and no more', () => {
    const job = fc.record({
      partition: fc.nat(1000),
      sources: fc.uniqueArray(fc.nat(5), { minLength: 1, maxLength: 3 }),
      toPod: fc.integer({ min: 6, max: 9 }),
    });
    const limits = fc.constantFrom(defaultRebuildLimits, { inbound: 1, outbound: 2 });
    fc.assert(
      fc.property(fc.array(job), limits, (jobs, { inbound, outbound }) => {
        const starts = startRebuilds(jobs, [], { inbound, outbound });
        const count = (pods: number[], pod: number): number =>
          pods.filter((other) => other === pod).length;
        const into = starts.map(({ job: { toPod } }) => toPod);
        const out = starts.map(({ fromPod }) => fromPod);
        for (const pod of into) expect(count(into, pod)).toBeLessThanOrEqual(inbound);
        for (const pod of out) expect(count(out, pod)).toBeLessThanOrEqual(outbound);
        const started = new Set(starts.map((start) => start.job));
        const isFree = ({ toPod, sources }: RebuildJob): boolean =>
          count(into, toPod) < inbound && sources.some((pod) => count(out, pod) < outbound);
        for (const left of jobs) if (!started.has(left)) expect(isFree(left)).toBe(false);
      }),
    );
  });
});
