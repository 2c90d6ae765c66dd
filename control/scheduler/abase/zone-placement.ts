// Where the replicas of a tenant's new partitions go in a pool (ABase, section 3): each in a zone of its own, and
// spread over the nodes of the zones in numbers that differ by at most one.

import type { WorkingCluster } from '../working-cluster.ts';
import { PoolLoad } from './load.ts';

interface NewPartitions {
  /** Partitions are contiguous parts of the hash space, all alike. */
  count: number;
  /** Replicas of each, in as many zones. */
  copies: number;
}

/**
 * The pods of each partition's replicas, the leader first. `pods` belong to the pool. Zones of
 * equal size get equal numbers. Throws a RangeError when the pool has fewer zones than a partition
 * has replicas.
 */
export function placeInZones(
  cluster: WorkingCluster,
  pods: readonly number[],
  { count, copies }: NewPartitions,
): number[][] {
  const load = new PoolLoad(cluster, pods);
  const zones = zonesOf(cluster, load);
  if (zones.length < copies) {
    throw new RangeError(`${copies} replicas need as many zones, and there are ${zones.length}`);
  }
  return Array.from({ length: count }, (_, partition) => {
    const emptiest = zones
      .toSorted((a, b) => a.placed / a.slots.length - b.placed / b.slots.length)
      .slice(0, copies);
    const chosen = emptiest.map((zone) => takeSlot(zone));
    // Leadership goes round, so that no zone has all leaders.
    const first = partition % copies;
    return [...chosen.slice(first), ...chosen.slice(0, first)];
  });
}

interface Zone {
  /** Pods by use, lowest first. */
  slots: number[];
  placed: number;
}

function zonesOf(cluster: WorkingCluster, load: PoolLoad): Zone[] {
  const { model, nodeOfPod } = cluster;
  const use = (pod: number): number =>
    Math.max(...load.dimensions.map((dimension) => load.utilization(pod, dimension)));
  const zones = new Map<number, number[]>();
  for (const pod of load.pods) {
    const zone = model.nodes.zone[nodeOfPod[pod]!]!;
    zones.set(zone, [...(zones.get(zone) ?? []), pod]);
  }
  return [...zones.values()].map((slots) => ({
    slots: slots.sort((a, b) => use(a) - use(b)),
    placed: 0,
  }));
}

/** Round by round, the least used pod first. */
function takeSlot(zone: Zone): number {
  return zone.slots[zone.placed++ % zone.slots.length]!;
}
