// X-Stor: the rules of new tables and daily runs, and the measures of a run.

import { randomMoves } from '../../control/scheduler/baselines.ts';
import { ClusterBuilder } from '../../control/scheduler/cluster-builder.ts';
import type { ClusterModel } from '../../control/scheduler/cluster-model.ts';
import { type HardLimits, usualLimits } from '../../control/scheduler/hard-limits.ts';
import { imbalance, mostUsedDimension, violations } from '../../control/scheduler/load-measures.ts';
import type { Policy, Proposal } from '../../control/scheduler/proposal.ts';
import { Chance } from '../../control/scheduler/simulation/chance.ts';
import {
  paperSize,
  replicaScheduling,
} from '../../control/scheduler/simulation/workloads/replica-scheduling.ts';
import { WorkingCluster } from '../../control/scheduler/working-cluster.ts';
import { dailyCycle, migration } from '../../control/scheduler/xstor/daily-cycle.ts';
import { usualParameters } from '../../control/scheduler/xstor/parameters.ts';
import {
  partitionCount,
  partitionLimits,
  type PlacementPod,
  placeTable,
} from '../../control/scheduler/xstor/place.ts';
import type { Experiment, Line } from './experiment.ts';
import { overSeeds } from './over-seeds.ts';

const podLru = 100_000;
const gibibyte = 2 ** 30;
const copies = 3;

interface Created {
  /** Replicas on the fullest pod beyond those on the emptiest. */
  spread: number;
  /** Partitions with replicas in two subclusters or twice on a node, or above a limit. */
  wrong: number;
}

function emptyPods(nodes: number, subclusters: number): PlacementPod[] {
  return Array.from({ length: nodes * subclusters }, (_, i) => ({
    node: i % nodes,
    zone: (i % nodes) % 3,
    subcluster: Math.floor(i / nodes),
    lru: podLru,
    diskBytes: 4096 * gibibyte,
    usedBytes: 0,
    allocatedLru: 0,
    allocatedBytes: 0,
  }));
}

/** One table in an empty cluster of random size; `place` gives the pods of each partition. */
function createTable(
  chance: Chance,
  place: (
    pods: PlacementPod[],
    partitions: number,
    of: { lru: number; bytes: number },
  ) => number[][],
): Created {
  const pods = emptyPods(chance.pick([9, 27]), 1 + chance.below(4));
  // At most three fifths of the cluster's promised capacity.
  const share = (): number => Math.min(3, chance.lognormal(0, 1)) * pods.length;
  const estimate = { lru: podLru * 0.1 * share(), bytes: 20 * gibibyte * share() };
  const limit = partitionLimits(podLru);
  const partitions = partitionCount(estimate, limit);
  const each = { lru: estimate.lru / partitions, bytes: estimate.bytes / partitions };
  const placed = place(pods, partitions, each);
  const held = new Uint32Array(pods.length);
  for (const pod of placed.flat()) held[pod]!++;
  const isWrong = (of: readonly number[]): boolean =>
    new Set(of.map((pod) => pods[pod]!.node)).size < copies ||
    new Set(of.map((pod) => pods[pod]!.subcluster)).size > 1;
  const above = each.lru > limit.lru || each.bytes > limit.bytes ? placed.length : 0;
  return {
    spread: Math.max(...held) - Math.min(...held),
    wrong: placed.filter(isWrong).length + above,
  };
}

/** Three nodes of a subcluster, at random. */
function atRandom(pods: readonly PlacementPod[], partitions: number, chance: Chance): number[][] {
  const subclusters = Math.max(...pods.map(({ subcluster }) => subcluster)) + 1;
  const nodes = pods.length / subclusters;
  return Array.from({ length: partitions }, () => {
    const chosen = new Set<number>();
    while (chosen.size < copies) chosen.add(chance.below(nodes));
    const first = chance.below(subclusters) * nodes;
    return [...chosen].map((node) => first + node);
  });
}

export const tablePartitions: Experiment = {
  id: 'XS-5.3-partitions',
  title: 'As many partitions as load and bytes ask for, spread over all pods',
  kind: 'SIM',
  source: 'X-Stor, section 5.3.1; the paper has no figure',
  setup:
    '10,000 tables with lognormal estimates of load and bytes, each alone in a cluster of 9 or 27 nodes and one to four ' +
    'subclusters. Without: each partition on three nodes of a subcluster, drawn at random.',
  run({ seeds, quick, progress }) {
    const tables = quick ? 100 : 1000;
    const runs = seeds.map((seed) => {
      progress(`seed ${seed}`);
      const of = (isRandom: boolean): Created[] => {
        const chance = new Chance(seed);
        const ties = new Chance(seed + 1000);
        return Array.from({ length: tables }, () =>
          createTable(chance, (pods, partitions, { lru, bytes }) =>
            isRandom
              ? atRandom(pods, partitions, ties)
              : placeTable(pods, { partitions, allocatedLru: lru, allocatedBytes: bytes }, ties),
          ),
        );
      };
      return { even: of(false), random: of(true) };
    });
    const most = (all: readonly Created[]): number => Math.max(...all.map(({ spread }) => spread));
    const line = (of: 'even' | 'random'): Line => ({
      label: 'difference',
      points: runs[0]![of]
        .map(({ spread }) => spread)
        .sort((a, b) => a - b)
        .map((spread, rank) => [rank, spread]),
    });
    return {
      measures: [
        overSeeds(
          runs.map(({ even }) => most(even)),
          {
            metric: 'replicas of a table on its fullest pod beyond those on its emptiest, most',
            threshold: 1,
            better: 'lower',
          },
          runs.map(({ random }) => most(random)),
        ),
        overSeeds(
          runs.map(({ even }) => even.reduce((sum, { wrong }) => sum + wrong, 0)),
          {
            metric: 'partitions above a limit, in two subclusters, or twice on a node',
            threshold: 0,
            better: 'lower',
          },
        ),
      ],
      xLabel: 'table',
      yLabel: 'fullest less emptiest pod, replicas',
      before: { title: 'at random', lines: [line('random')] },
      after: { title: 'evenly', lines: [line('even')] },
    };
  },
};

const guardedSize = {
  subclusters: 2,
  nodes: 9,
  tables: 2,
  partitions: 120,
  minutes: 20,
  violations: 60,
  hotShare: 0.4,
};

/** The most replicas of a table on a pod beyond the table's mean after any move, over all steps; -Infinity: no move. */
function mostBeyondMean(model: ClusterModel, proposals: readonly Proposal[]): number {
  const cluster = new WorkingCluster(model);
  let most = -Infinity;
  for (const { change } of proposals) {
    cluster.apply(change);
    if (change.kind !== 'move-replica') continue;
    const table = cluster.tableOf[cluster.partitionOf[change.replica]!]!;
    const mean = cluster.replicasOfTable[table]! / cluster.podCount;
    most = Math.max(most, cluster.tableOnPod(table, change.toPod) - mean);
  }
  return most;
}

export const tableCountGuard: Experiment = {
  id: 'XS-5.3-spread',
  title: 'No pod gets many replicas of one table',
  kind: 'SIM',
  source: 'X-Stor, section 5.3.2; the paper has no figure',
  setup:
    '10,000 runs on clusters of 18 pods with 360 replicas of two tables, of which hot pods lead two fifths: half are daily ' +
    'runs without a bound on moves, half are 60 random moves. Counts are looked at after every move. Without: the same with ' +
    'no guard.',
  run({ seeds, quick, progress }) {
    const runs = quick ? 50 : 1000;
    const policyOf = (run: number, limits: HardLimits): Policy =>
      run % 2 === 0
        ? migration({ ...usualParameters, limits, movedShare: 1, warning: 0 })
        : randomMoves(60, limits);
    const unguarded = { ...usualLimits, tableSlack: Infinity };
    const outcomes = seeds.map((seed) => {
      progress(`seed ${seed}`);
      let [moves, over] = [0, 0];
      const [guarded, free]: number[][] = [[], []];
      for (let run = 0; run < runs; run++) {
        const number = seed * 10_000 + run;
        const model = replicaScheduling(number, guardedSize).model(1);
        const plan = (limits: HardLimits): Proposal[] =>
          policyOf(run, limits).plan(model, { now: 0, rng: new Chance(number) });
        const ours = plan({ ...usualLimits, crossSubcluster: run % 4 === 0 });
        moves += ours.filter(({ change }) => change.kind === 'move-replica').length;
        guarded!.push(mostBeyondMean(model, ours));
        const without = mostBeyondMean(model, plan(unguarded));
        free!.push(without);
        if (without > usualLimits.tableSlack) over++;
      }
      return { moves, over, guarded: guarded!, free: free! };
    });
    const highest = (values: readonly number[]): number => Math.max(...values);
    const line = (of: 'guarded' | 'free'): Line => ({
      label: 'beyond the mean',
      points: outcomes[0]![of]
        .filter(Number.isFinite)
        .sort((a, b) => a - b)
        .map((beyond, rank) => [rank, beyond]),
    });
    return {
      measures: [
        overSeeds(
          outcomes.map(({ guarded }) => highest(guarded)),
          {
            metric: 'most replicas of a table on a pod beyond its mean, after any move',
            threshold: usualLimits.tableSlack,
            better: 'lower',
          },
          outcomes.map(({ free }) => highest(free)),
        ),
        overSeeds(
          outcomes.map(({ over }) => over),
          { metric: 'runs that pass it without the guard', threshold: 1, better: 'higher' },
        ),
        overSeeds(
          outcomes.map(({ moves }) => moves / runs),
          { metric: 'moves looked at, a run', threshold: 1, better: 'higher' },
        ),
      ],
      xLabel: 'run',
      yLabel: 'replicas beyond the mean',
      before: { title: 'no guard', lines: [line('free')] },
      after: { title: 'guarded', lines: [line('guarded')] },
    };
  },
};

/** Pods with one partition each; `above` minutes of each are at 70 % of the limit, the others at 50 %. */
function clusterWithViolations(count: number): WorkingCluster {
  const [pods, minutes] = [108, 600];
  const shape = { dimensions: ['cpu', 'io'], points: minutes, pointSeconds: 60 };
  const builder = new ClusterBuilder(shape);
  const table = builder.table('t');
  let left = count;
  for (let pod = 0; pod < pods; pod++) {
    const node = builder.node({ id: `n${pod}` });
    builder.pod({ id: `p${pod}`, node, limits: [100, 1000] });
    const above = Math.min(left, minutes);
    left -= above;
    const cpu = Array.from({ length: minutes }, (_, t) => (t < above ? 70 : 50));
    const row = builder.row([...cpu, ...cpu]);
    const partition = builder.partition({ id: `${pod}`, table, leader: { row } });
    builder.replica(partition, pod, true);
  }
  return new WorkingCluster(builder.build());
}

/** Pods of which half have the deviation more than the mean, and half as much less. */
function clusterWithDeviation(deviation: number): WorkingCluster {
  const builder = new ClusterBuilder({ dimensions: ['cpu'], points: 4, pointSeconds: 60 });
  const table = builder.table('t');
  for (let pod = 0; pod < 108; pod++) {
    const node = builder.node({ id: `n${pod}` });
    builder.pod({ id: `p${pod}`, node, limits: [1e6] });
    const row = builder.row(Array(4).fill(100_000 + (pod % 2 === 0 ? 1 : -1) * deviation));
    builder.replica(builder.partition({ id: `${pod}`, table, leader: { row } }), pod, true);
  }
  return new WorkingCluster(builder.build());
}

/** Eqs. 7 and 8 straight from the replicas of the model, without the sums that a working cluster keeps. */
function measuredNaively(cluster: WorkingCluster): { violations: number; deviation: number } {
  const { model, points, podCount } = cluster;
  const dimension = mostUsedDimension(cluster);
  let [count, total] = [0, 0];
  for (let t = 0; t < points; t++) {
    const loads = new Float64Array(podCount);
    cluster.podOf.forEach((pod, replica) => {
      loads[pod]! += cluster.replicaLoad(replica, dimension, t);
    });
    const mean = loads.reduce((sum, load) => sum + load, 0) / podCount;
    total += Math.sqrt(loads.reduce((sum, load) => sum + (load - mean) ** 2, 0) / podCount);
    loads.forEach((load, pod) => {
      const limit = model.pods.limits[pod * cluster.dimensionCount + dimension]!;
      if (load > 0.6 * limit) count++;
    });
  }
  return { violations: count, deviation: total / points };
}

export const schedulingMeasures: Experiment = {
  id: 'XS-5.3-metrics',
  title: 'What a daily run is measured by',
  kind: 'SIM',
  source: 'X-Stor, section 5.3.2, eqs. 7 to 9, and table 6',
  setup:
    'Clusters that are made to have the violations and deviations of table 6, before and after. And W-REPL of the size of the ' +
    'paper: violations, deviation and replicas moved by a daily run, as it reports them and counted from the replicas.',
  run({ seeds, quick, progress }) {
    const fallOf = (of: (figure: number) => number, before: number, after: number): number =>
      100 * (1 - of(after) / of(before));
    const violated = (count: number): number => {
      const cluster = clusterWithViolations(count);
      return violations(cluster, mostUsedDimension(cluster));
    };
    const deviates = (deviation: number): number => imbalance(clusterWithDeviation(deviation), 0);
    const size = quick ? { ...paperSize, minutes: 60, violations: 211 } : paperSize;
    const off = seeds.slice(0, quick ? 1 : seeds.length).map((seed) => {
      progress(`seed ${seed}`);
      const model = replicaScheduling(seed, size).model(1);
      const proposals = dailyCycle().plan(model, { now: 0, rng: new Chance(seed) });
      const cluster = new WorkingCluster(model);
      for (const { change } of proposals) cluster.apply(change);
      const [naive, dimension] = [measuredNaively(cluster), mostUsedDimension(cluster)];
      const moved = cluster.podOf.filter((pod, replica) => pod !== model.replicas.pod[replica]);
      const cost = proposals.reduce((sum, one) => sum + one.cost.replicas, 0);
      return {
        violations: Math.abs(violations(cluster, dimension) - naive.violations),
        deviation:
          (100 * Math.abs(imbalance(cluster, dimension) - naive.deviation)) / naive.deviation,
        cost: Math.abs(cost - moved.length),
      };
    });
    const paper = (metric: string, value: number, want: number, text: string) =>
      ({
        metric,
        value: Math.abs(value - want),
        threshold: 0.005,
        better: 'lower',
        paper: text,
      }) as const;
    return {
      measures: [
        paper(
          'violations of table 6: fall, points off',
          fallOf(violated, 2113, 265),
          87.46,
          '87.46 %',
        ),
        paper(
          'deviation of table 6: fall, points off',
          fallOf(deviates, 28576, 21860),
          23.5,
          '23.50 %',
        ),
        overSeeds(
          off.map((one) => one.violations),
          {
            metric: 'W-REPL: violations reported off those counted',
            threshold: 0,
            better: 'lower',
          },
        ),
        overSeeds(
          off.map((one) => one.deviation),
          {
            metric: 'W-REPL: deviation reported off that counted, %',
            threshold: 0.001,
            better: 'lower',
          },
        ),
        overSeeds(
          off.map((one) => one.cost),
          {
            metric: 'W-REPL: replicas reported as moved off those moved',
            threshold: 0,
            better: 'lower',
          },
        ),
      ],
      xLabel: 'violations made',
      yLabel: 'violations measured',
      before: {
        title: 'made',
        lines: [
          {
            label: 'violations',
            points: [
              [265, 265],
              [2113, 2113],
            ],
          },
        ],
      },
      after: {
        title: 'measured',
        lines: [
          {
            label: 'violations',
            points: [
              [265, violated(265)],
              [2113, violated(2113)],
            ],
          },
        ],
      },
    };
  },
};
