// Maps a trace without pods onto a synthetic cluster: a pod on each node, each recorded partition
// cut into several, three replicas of each, placed by X-Stor's even spread and score. So the
// recording of one server can be viewed as the load of a cluster.

import type { Rng } from '../../../universal-row/environment.ts';
import { type PlacementPod, placeTable } from '../xstor/place.ts';
import type { Trace, TracePartition } from './trace.ts';

interface Layout {
  /** At least 3. */
  nodes: number;
  /** Into how many each recorded partition is cut. */
  partitions: number;
  /** The parts have loads by 1 / rank ** skew; 0: all alike. */
  skew: number;
  /** Units a second of a pod, in each dimension; so that pods use 40 % on average when absent. */
  podLimit?: number;
}

export const usualLayout: Layout = { nodes: 9, partitions: 16, skew: 0.6 };

const usedOnAverage = 0.4;
const zones = 3;
const copies = 3;

export function laidOut(trace: Trace, layout: Layout, rng: Rng): Trace {
  const parts = trace.partitions.flatMap((partition) => cut(partition, layout));
  const limits = limitsOf(trace, layout);
  const ids = Array.from({ length: layout.nodes }, (_, node) => `node${node}`);
  const pods = ids.map(
    (_, node): PlacementPod => ({
      node,
      zone: node % zones,
      subcluster: 0,
      lru: Infinity,
      diskBytes: Infinity,
      usedBytes: 0,
      allocatedLru: 0,
      allocatedBytes: 0,
    }),
  );
  const placed = new Map<string, number[][]>();
  const tenants = new Map(trace.tables.map(({ tenant }) => [tenant, new Uint32Array(pods.length)]));
  for (const { id, tenant } of trace.tables) {
    const partitions = parts.filter(({ table }) => table === id).length;
    const ofTenant = tenants.get(tenant)!;
    const request = { partitions, allocatedLru: 0, allocatedBytes: 0, ofTenant };
    placed.set(id, placeTable(pods, request, rng));
  }
  return {
    ...trace,
    nodes: ids.map((id, node) => ({ id, zone: `zone${node % zones}` })),
    pods: ids.map((id) => ({ id: `${id}-pod`, node: id, limits })),
    partitions: parts.map((partition) => {
      const replicas = placed.get(partition.table)!.shift()!;
      return {
        ...partition,
        replicas: replicas.map((pod, i) => ({ pod: `${ids[pod]}-pod`, leads: i === 0 })),
      };
    }),
  };
}

function cut(partition: TracePartition, { partitions, skew }: Layout): TracePartition[] {
  const weights = Array.from({ length: partitions }, (_, rank) => (rank + 1) ** -skew);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const { id, leader, follower = { series: leader.series, scale: 0 } } = partition;
  return weights.map((weight, rank) => {
    const share = weight / total;
    return {
      ...partition,
      id: `${id}.${rank}`,
      bytes: (partition.bytes ?? 0) * share,
      leader: { ...leader, scale: (leader.scale ?? 1) * share },
      follower: { ...follower, scale: (follower.scale ?? 1) * share },
    };
  });
}

/** One for each dimension. */
function limitsOf(trace: Trace, { nodes, podLimit }: Layout): number[] {
  const { dimensions, points } = trace.header;
  if (podLimit !== undefined) return dimensions.map(() => podLimit);
  const sums = new Map(
    trace.series.map(({ id, values }) => [
      id,
      dimensions.map((name) => Array.from(values[name]!).reduce((sum, value) => sum + value, 0)),
    ]),
  );
  return dimensions.map((_, dimension) => {
    let total = 0;
    for (const { leader, follower } of trace.partitions) {
      total += sums.get(leader.series)![dimension]! * (leader.scale ?? 1);
      if (follower === undefined) continue;
      const one = sums.get(follower.series)![dimension]! * (follower.scale ?? 1);
      total += one * (copies - 1);
    }
    return total / points / nodes / usedOnAverage || 1;
  });
}
