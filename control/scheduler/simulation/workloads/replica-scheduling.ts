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
  /** Share of the tables that have one spike. */
  spikedShare?: number;
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
}

export function replicaScheduling(seed: number, size = paperSize): Workload {
  const chance = new Chance(seed);
  const dimensions = size.dimensions ?? ['cpu'];
  const profiles = Array.from({ length: size.tables }, () => profile(chance, size));
  const partitions = Array.from({ length: size.partitions }, () => partition(chance, size));
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
    partitions.forEach(({ table, scale, writeShare, bytes, pods }, number) => {
      builder.partition({
        id: `table${table}/${number}`,
        table,
        bytes,
        leader: { row: table, scale },
        follower: { row: table, scale: scale * writeShare },
      });
      pods.forEach((pod, place) => builder.replica(number, pod, place === 0));
    });
    return builder.build();
  };
  const limit = limitFor(build(0, 1), size.violations);
  return { name: 'W-REPL', model: (draw) => build(draw, limit) };
}

function profile(chance: Chance, { minutes, spikedShare = 0.1 }: ReplicaSchedulingSize): number[] {
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
