// W-REPL: the cluster of X-Stor's section 6.3. 12 subclusters of 9 pods on 9 nodes, 10,170 partitions of 300 tables with
// 3 replicas each inside one subcluster, 600 minutes, in each subcluster one pod that leads too many partitions.

import { ClusterBuilder } from '../../cluster-builder.ts';
import type { ClusterModel } from '../../cluster-model.ts';
import { Chance } from '../chance.ts';
import type { Workload } from '../workload.ts';
import { WorkingCluster } from '../../working-cluster.ts';

interface ReplicaSchedulingSize {
  subclusters: number;
  /** Nodes; each has one pod of every subcluster. */
  nodes: number;
  tables: number;
  partitions: number;
  minutes: number;
  /** Pod-minutes above the violation threshold (60 % of a pod's limit) before scheduling. */
  violations: number;
  /**
   * Probability that a partition is led by the hot pod of its subcluster, regardless of its
   * placement.
   */
  hotShare: number;
  /** Share of the pods on which some partitions that they lead have a short peak, all at once. */
  peakedPods?: number;
  dimensions?: readonly string[];
}

export const paperSize: ReplicaSchedulingSize = {
  subclusters: 12,
  nodes: 9,
  tables: 300,
  partitions: 10_170,
  minutes: 600,
  violations: 2113,
  hotShare: 0.15,
};

const periods = [600, 300, 200, 120];
const noise = 0.08;
const thresholdShare = 0.6;
const gigabyte = 2 ** 30;

interface Partition {
  table: number;
  scale: number;
  writeShare: number;
  bytes: number;
  /** Pods; the first leads. */
  pods: number[];
  peak?: Peak;
}

/** Load beyond the profile of the table, in terms of the partition's scale. */
interface Peak {
  from: number;
  to: number;
  height: number;
}

/** A peak is on so many partitions of a pod, and makes its load so many times what it is on average. */
const partitionsOfPeak = 5;
const peakOfPod = 2.2;

export function replicaScheduling(seed: number, size = paperSize): Workload {
  const chance = new Chance(seed);
  const dimensions = size.dimensions ?? ['cpu'];
  const profiles = Array.from({ length: size.tables }, () => profile(chance, size));
  const partitions = Array.from({ length: size.partitions }, () => partition(chance, size));
  if (size.peakedPods !== undefined) addPeaks(partitions, size, size.peakedPods, chance);
  const build = (draw: number, limit: number): ClusterModel => {
    const noises = new Chance(seed * 1_000_003 + draw);
    const builder = new ClusterBuilder(
      { dimensions, points: size.minutes, pointSeconds: 60 },
      size.tables,
    );
    for (let node = 0; node < size.nodes; node++) {
      builder.node({ id: `node${node}`, zone: `zone${node % 3}` });
    }
    for (let subcluster = 0; subcluster < size.subclusters; subcluster++) {
      for (let node = 0; node < size.nodes; node++) {
        const disk = builder.disk(`node${node}-disk${subcluster}`, node, 4096 * gigabyte);
        const id = `node${node}-pod${subcluster}`;
        const limits = dimensions.map(() => limit);
        builder.pod({ id, node, disk, subcluster, limits, diskBytes: 4096 * gigabyte });
      }
    }
    for (let table = 0; table < size.tables; table++) {
      builder.table(`table${table}`, `tenant${table % 100}`);
      const series = profiles[table]!.map((value) => Math.max(0, value + noises.normal(0, noise)));
      // The other dimensions follow the first, at a distance: it is the one that is used most.
      builder.row(dimensions.flatMap((_, d) => series.map((value) => value * (1 - 0.2 * d))));
    }
    // The rows of tables come first; a partition with a peak has one of its own.
    const peaked = partitions.filter(({ peak }) => peak !== undefined);
    const rowOf = new Map(
      peaked.map((one) => {
        const series = profiles[one.table]!.map((value, t) => {
          const extra = t >= one.peak!.from && t < one.peak!.to ? one.peak!.height : 0;
          return Math.max(0, value + extra + noises.normal(0, noise));
        });
        return [
          one,
          builder.row(dimensions.flatMap((_, d) => series.map((value) => value * (1 - 0.2 * d)))),
        ];
      }),
    );
    partitions.forEach((one, number) => {
      const { table, scale, writeShare, bytes, pods } = one;
      const row = rowOf.get(one) ?? table;
      builder.partition({
        id: `table${table}/${number}`,
        table,
        bytes,
        leader: { row, scale },
        follower: { row, scale: scale * writeShare },
      });
      pods.forEach((pod, place) => builder.replica(number, pod, place === 0));
    });
    return builder.build();
  };
  const limit = limitFor(build(0, 1), size.violations);
  return { name: 'W-REPL', model: (draw) => build(draw, limit) };
}

/** Share of the tables that have one spike. */
const spikedShare = 0.1;

function profile(chance: Chance, { minutes }: ReplicaSchedulingSize): number[] {
  const [amplitude, period] = [chance.uniform(0, 0.5), chance.pick(periods)];
  const phase = chance.uniform(0, 2 * Math.PI);
  const spiked = chance.happens(spikedShare);
  const [length, height] = [chance.uniform(20, 80), chance.uniform(1, 4)];
  const start = chance.uniform(0, Math.max(0, minutes - length));
  return Array.from({ length: minutes }, (_, t) => {
    const value = 1 + amplitude * Math.sin((2 * Math.PI * t) / period + phase);
    return spiked && t >= start && t < start + length ? value * height : value;
  });
}

function partition(chance: Chance, size: ReplicaSchedulingSize): Partition {
  const subcluster = chance.below(size.subclusters);
  const nodes = Array.from({ length: size.nodes }, (_, node) => node);
  for (let i = 0; i < 3; i++) {
    const j = i + chance.below(size.nodes - i);
    [nodes[i], nodes[j]] = [nodes[j]!, nodes[i]!];
  }
  const hot = subcluster % size.nodes;
  if (chance.happens(size.hotShare) && nodes[0] !== hot) {
    const at = nodes.indexOf(hot);
    [nodes[0], nodes[at]] = [hot, nodes[0]!];
  }
  return {
    table: chance.below(size.tables),
    scale: chance.lognormal(0, 1.3),
    writeShare: chance.uniform(0.1, 0.6),
    bytes: chance.lognormal(0, 1) * gigabyte,
    pods: nodes.slice(0, 3).map((node) => subcluster * size.nodes + node),
  };
}

/** On pods drawn at random, 20 to 80 minutes each at a time of its own. */
function addPeaks(
  partitions: readonly Partition[],
  { subclusters, nodes, minutes }: ReplicaSchedulingSize,
  share: number,
  chance: Chance,
): void {
  for (let pod = 0; pod < subclusters * nodes; pod++) {
    if (!chance.happens(share)) continue;
    const led = partitions.filter(({ pods }) => pods[0] === pod);
    const load = partitions.reduce((sum, { pods, scale, writeShare }) => {
      if (!pods.includes(pod)) return sum;
      return sum + (pods[0] === pod ? scale : scale * writeShare);
    }, 0);
    const [from, length] = [chance.uniform(0, minutes - 80), chance.uniform(20, 80)];
    for (let i = 0; i < partitionsOfPeak && led.length > 0; i++) {
      const [one] = led.splice(chance.below(led.length), 1);
      const height = ((peakOfPod - 1) * load) / partitionsOfPeak / one!.scale;
      one!.peak = { from, to: from + length, height };
    }
  }
}

/** The limit of a pod at which so many pod-minutes are above the threshold. */
function limitFor(model: ClusterModel, violations: number): number {
  const cluster = new WorkingCluster(model);
  const loads = model.pods.ids.flatMap((_, pod) => {
    const from = cluster.podSeries(pod, 0);
    return Array.from(cluster.podLoad.subarray(from, from + cluster.points));
  });
  loads.sort((a, b) => b - a);
  return loads[Math.min(violations, loads.length - 1)]! / thresholdShare;
}
