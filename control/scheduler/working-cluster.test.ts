import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { doNothing, randomMoves } from './baselines.ts';
import { ClusterBuilder } from './cluster-builder.ts';
import { brokenLimits, refusalOf } from './hard-limits.ts';
import type { Change } from './proposal.ts';
import { Chance } from './simulation/chance.ts';
import { runTrials } from './simulation/trial.ts';
import { replicaScheduling } from './simulation/workloads/replica-scheduling.ts';
import { carriedOut, WorkingCluster } from './working-cluster.ts';

const small = {
  subclusters: 2,
  nodes: 5,
  tables: 6,
  partitions: 40,
  minutes: 20,
  violations: 20,
  hotShare: 0.3,
  dimensions: ['cpu', 'io'],
};

/** Sums of each pod from nothing, in the form of `podLoad`. */
function summedAgain(cluster: WorkingCluster): number[] {
  const sums = Array.from(cluster.podLoad, () => 0);
  cluster.podOf.forEach((pod, replica) => {
    if (pod < 0) return;
    for (let dimension = 0; dimension < cluster.dimensionCount; dimension++) {
      for (let t = 0; t < cluster.points; t++) {
        sums[cluster.podSeries(pod, dimension) + t]! += cluster.replicaLoad(replica, dimension, t);
      }
    }
  });
  return sums;
}

function randomChange(cluster: WorkingCluster, chance: Chance): Change | undefined {
  const partition = chance.below(cluster.partitionCount);
  const replicas = cluster.replicasOfPartition[partition]!;
  if (replicas.length === 0) return undefined;
  const replica = chance.pick(replicas);
  const pod = chance.below(cluster.podCount);
  const leader = cluster.leaderOf(partition)!;
  const isFree = !cluster.holdsPartition(pod, partition);
  switch (chance.below(6)) {
    case 0:
      if (replica === leader) return undefined;
      return { kind: 'transfer-leader', partition, from: leader, to: replica };
    case 1:
      if (!isFree) return undefined;
      return { kind: 'move-replica', replica, fromPod: cluster.podOf[replica]!, toPod: pod };
    case 2:
      return isFree ? { kind: 'add-replica', partition, pod } : undefined;
    case 3:
      return replica === leader ? undefined : { kind: 'remove-replica', replica };
    case 4:
      return { kind: 'split', partition, leftShare: [chance.next(), chance.next()] };
    default: {
      // Halves of an earlier split that have stayed together.
      const pods = (of: number): string =>
        cluster.replicasOfPartition[of]!.map((one) => cluster.podOf[one]!)
          .sort((a, b) => a - b)
          .join();
      const right = cluster.partitionCount - 1;
      const isPair = right !== partition && pods(right) === pods(partition);
      return isPair ? { kind: 'merge', left: partition, right } : undefined;
    }
  }
}

describe('a working cluster', () => {
  test('has the sums that its replicas add up to, whatever has been applied', () => {
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        const chance = new Chance(seed);
        const cluster = new WorkingCluster(replicaScheduling(seed, small).model(0));
        const whole = cluster.podLoad.reduce((sum, value) => sum + value, 0);
        const bytes = cluster.podBytes.reduce((sum, value) => sum + value, 0);
        let kept = true;
        for (let i = 0; i < 60; i++) {
          const change = randomChange(cluster, chance);
          if (change === undefined) continue;
          cluster.apply(change);
          kept &&= ['move-replica', 'split', 'merge'].includes(change.kind);
        }
        summedAgain(cluster).forEach((sum, i) => expect(cluster.podLoad[i]).toBeCloseTo(sum, 3));
        cluster.replicasOfPod.forEach((replicas, pod) => {
          for (const replica of replicas) expect(cluster.podOf[replica]).toBe(pod);
        });
        if (kept) {
          expect(cluster.podLoad.reduce((sum, value) => sum + value, 0) / whole).toBeCloseTo(1, 4);
          expect(cluster.podBytes.reduce((sum, value) => sum + value, 0) / bytes).toBeCloseTo(1, 6);
        }
      }),
      { numRuns: 60 },
    );
  });

  test('refuses what makes no sense', () => {
    const cluster = new WorkingCluster(replicaScheduling(1, small).model(0));
    const [first, second] = cluster.replicasOfPartition[0]!;
    const move = (replica: number, toPod: number): Change => ({
      kind: 'move-replica',
      replica,
      fromPod: 0,
      toPod,
    });
    expect(() => cluster.apply(move(first!, cluster.podOf[second!]!))).toThrow(RangeError);
    expect(() =>
      cluster.apply({ kind: 'transfer-leader', partition: 0, from: second!, to: first! }),
    ).toThrow(RangeError);
    expect(() => cluster.apply({ kind: 'merge', left: 0, right: 1 })).toThrow(RangeError);
  });
});

test('hard limits: random moves that they allow never break them', () => {
  fc.assert(
    fc.property(fc.nat(), (seed) => {
      const model = replicaScheduling(seed, small).model(0);
      const proposals = randomMoves(30).plan(model, { now: 0, rng: new Chance(seed) });
      expect(proposals.length).toBeGreaterThan(0);
      expect(brokenLimits(carriedOut(model, proposals))).toEqual([]);
    }),
    { numRuns: 20 },
  );
});

test('hard limits: each has its words', () => {
  const builder = new ClusterBuilder({ dimensions: ['cpu'], points: 1, pointSeconds: 60 });
  const pod = (id: string, zone: string, more: object = {}, node: object = {}): number =>
    builder.pod({ id, node: builder.node({ id, zone, ...node }), limits: [1], ...more });
  const [a, b] = [pod('a', 'x'), pod('b', 'y')];
  const targets: [number, string | undefined][] = [
    [a, 'the pod has a replica of the partition'],
    [b, 'the pod has a replica of the partition'],
    [pod('same zone', 'x'), undefined],
    [pod('other zone', 'z'), undefined],
    [pod('taken zone', 'y'), 'the zone has a replica of the partition'],
    [pod('full', 'x', { diskBytes: 100 }), 'the disk would be too full'],
    [pod('memory', 'x', { model: 'memory' }), 'the pod is of another model'],
    [pod('half added', 'x', {}, { state: 'adding' }), 'the node takes no replicas'],
    [pod('other pool', 'x', {}, { pool: 'p' }), 'the pod is in another pool'],
    [pod('subcluster', 'x', { subcluster: 3 }), 'the pod is in another subcluster'],
    [builder.pod({ id: 'b2', node: b, limits: [1] }), 'the node has a replica of the partition'],
  ];
  const row = builder.row([1]);
  builder.partition({ id: 'p', table: builder.table('t'), bytes: 90, leader: { row } });
  builder.replica(0, a, true);
  builder.replica(0, b, false);
  const cluster = new WorkingCluster(builder.build());
  for (const [target, words] of targets) expect(refusalOf(cluster, 0, target)).toBe(words);
  const strict = { tableSlack: 0, diskShare: 1, crossSubcluster: true };
  expect(refusalOf(cluster, 0, 2, strict)).toBe('the pod has enough of the table');
});

test('trials judge a plan on a draw of noise that it was not made on', () => {
  const seen: number[] = [];
  const trials = runTrials({
    workload: (seed) => {
      const made = replicaScheduling(seed, small);
      return {
        name: made.name,
        model: (draw) => {
          seen.push(draw);
          return made.model(draw);
        },
      };
    },
    policies: [doNothing, randomMoves(5)],
    seeds: [1, 2],
    measure: (cluster) => ({ load: cluster.podLoad[0]! }),
  });
  expect(new Set(seen).size).toBe(2);
  expect(trials.map(({ policy, seed }) => [policy, seed])).toEqual([
    ['nothing', 1],
    ['random', 1],
    ['nothing', 2],
    ['random', 2],
  ]);
  expect(trials[0]!.after).toEqual(trials[0]!.before);
});
