// Replica placement of a new table (X-Stor, section 5.3.1): the number of partitions, an even
// spread over all pods, and the lowest score (eq. 6) for the remaining choices. All replicas of a
// partition are in one subcluster, on nodes and, where there are enough, in zones of their own.

import type { Rng } from '../../../universal-row/environment.ts';

interface PartitionLimits {
  /** Allocation of one partition: LRU a second, and bytes. */
  lru: number;
  bytes: number;
}

const gibibyte = 2 ** 30;

/** A tenth of a pod's capacity, and 10 GiB. */
export function partitionLimits(podLru: number): PartitionLimits {
  return { lru: podLru / 10, bytes: 10 * gibibyte };
}

/** Partitions of a table by the tenant's estimate; at least 1. */
export function partitionCount(estimate: PartitionLimits, limit: PartitionLimits): number {
  return Math.max(1, Math.ceil(estimate.lru / limit.lru), Math.ceil(estimate.bytes / limit.bytes));
}

export interface PlacementParameters {
  /** Limit of allocation, as a multiple of the capacity. */
  overRu: number;
  overDisk: number;
  /** A pod with a term above it gets nothing. */
  threshold: number;
  /** Terms of the score; eq. 6 has all three. */
  terms: readonly ('usedDisk' | 'allocatedRu' | 'allocatedDisk')[];
}

export const usualPlacement: PlacementParameters = {
  overRu: 1.5,
  overDisk: 1.2,
  threshold: 0.85,
  terms: ['usedDisk', 'allocatedRu', 'allocatedDisk'],
};

export interface PlacementPod {
  node: number;
  zone: number;
  subcluster: number;
  /** LRU a second, and bytes, that it can bear. */
  lru: number;
  diskBytes: number;
  usedBytes: number;
  allocatedLru: number;
  allocatedBytes: number;
}

export interface TableRequest {
  partitions: number;
  /** LRU/s allocated to one replica. */
  allocatedLru: number;
  allocatedBytes: number;
  /** Replicas of the table's tenant on each pod, those of this table added as they are placed. Equal scores go by it. */
  ofTenant?: Uint32Array;
}

const copies = 3;

/** There is no room for all replicas: the cluster needs another subcluster group. */
export class NoRoomError extends Error {
  constructor(partition: number) {
    super(`no pods are left for partition ${partition}: add a subcluster group`);
  }
}

/**
 * Pods of each partition; the first one leads. `pods` and `ofTenant` include the new table when this returns.
 * Throws a NoRoomError, and then nothing is placed.
 */
export function placeTable(
  pods: PlacementPod[],
  request: TableRequest,
  rng: Rng,
  parameters = usualPlacement,
): number[][] {
  const members = new Map<number, number[]>();
  pods.forEach(({ subcluster }, pod) => {
    const group = members.get(subcluster);
    if (group === undefined) members.set(subcluster, [pod]);
    else group.push(pod);
  });
  const groups = [...members.values()].map((group): Group => {
    return { pods: group, scored: byScore(pods, group, request, rng, parameters) };
  });
  const held = new Uint32Array(pods.length);
  const leads = new Uint32Array(pods.length);
  const placed: number[][] = [];
  for (let partition = 0; partition < request.partitions; partition++) {
    const found = choose(pods, groups, held);
    if (found === undefined) {
      for (const pod of placed.flat()) bear(pods, pod, request, -1);
      throw new NoRoomError(partition);
    }
    const { group, chosen } = found;
    for (const pod of chosen) {
      bear(pods, pod, request, 1);
      held[pod]!++;
    }
    // Only its pods have other scores now.
    group.scored = byScore(pods, group.pods, request, rng, parameters);
    chosen.sort((a, b) => leads[a]! - leads[b]!);
    leads[chosen[0]!]!++;
    placed.push(chosen);
  }
  return placed;
}

function bear(pods: PlacementPod[], pod: number, request: TableRequest, by: 1 | -1): void {
  const { allocatedLru, allocatedBytes, ofTenant } = request;
  const one = pods[pod]!;
  one.allocatedLru += by * allocatedLru;
  one.allocatedBytes += by * allocatedBytes;
  if (ofTenant !== undefined) ofTenant[pod] = ofTenant[pod]! + by;
}

/** The three terms of eq. 6, with one more replica of a table. */
export function termsOf(
  pod: PlacementPod,
  request: Pick<TableRequest, 'allocatedLru' | 'allocatedBytes'>,
  { overRu, overDisk }: PlacementParameters,
): Record<PlacementParameters['terms'][number], number> {
  return {
    usedDisk: pod.usedBytes / pod.diskBytes,
    allocatedRu: (pod.allocatedLru + request.allocatedLru) / (pod.lru * overRu),
    allocatedDisk: (pod.allocatedBytes + request.allocatedBytes) / (pod.diskBytes * overDisk),
  };
}

/** A subcluster with its pods by score, the lowest first. */
interface Group {
  pods: readonly number[];
  scored: Scored[];
}

/**
 * Pods of one partition. Pods that hold fewest replicas of the table come first: until each has as many, that is the
 * even spread, and afterwards the remainder, which goes to the lowest scores.
 */
function choose(
  pods: readonly PlacementPod[],
  groups: readonly Group[],
  held: Uint32Array,
): { group: Group; chosen: number[] } | undefined {
  const levels = new Set<number>();
  for (const { scored } of groups) for (const { pod } of scored) levels.add(held[pod]!);
  for (const level of [...levels].sort((a, b) => a - b)) {
    let best: { group: Group; chosen: number[] } | undefined;
    let least = Infinity;
    for (const group of groups) {
      const free = group.scored.filter(({ pod }) => held[pod]! <= level);
      const chosen = apart(pods, free);
      if (chosen === undefined) continue;
      const score = chosen.reduce((sum, one) => sum + one.score, 0);
      if (score >= least) continue;
      best = { group, chosen: chosen.map(({ pod }) => pod) };
      least = score;
    }
    if (best !== undefined) return best;
  }
  return undefined;
}

/** Of equal scores the one with fewest replicas of the tenant comes first; then chance decides. */
function byScore(
  pods: readonly PlacementPod[],
  group: readonly number[],
  request: TableRequest,
  rng: Rng,
  parameters: PlacementParameters,
): Scored[] {
  return group
    .map((pod) => ({
      pod,
      score: scoreOf(pods[pod]!, request, parameters),
      ofTenant: request.ofTenant?.[pod] ?? 0,
      tie: rng.next(),
    }))
    .filter(({ score }) => score < Infinity)
    .sort((a, b) => a.score - b.score || a.ofTenant - b.ofTenant || a.tie - b.tie);
}

interface Scored {
  pod: number;
  score: number;
}

/** The first that are on nodes of their own, in zones of their own where the group has enough zones. */
function apart(pods: readonly PlacementPod[], group: readonly Scored[]): Scored[] | undefined {
  const zones = new Set(group.map(({ pod }) => pods[pod]!.zone)).size;
  for (const byZone of zones >= copies ? [true, false] : [false]) {
    const chosen: Scored[] = [];
    for (const one of group) {
      const { node, zone } = pods[one.pod]!;
      const isTaken = chosen.some(
        ({ pod }) => pods[pod]!.node === node || (byZone && pods[pod]!.zone === zone),
      );
      if (!isTaken) chosen.push(one);
      if (chosen.length === copies) return chosen;
    }
  }
  return undefined;
}

/** Eq. 6; Infinity for a pod that a term excludes. */
function scoreOf(
  pod: PlacementPod,
  request: TableRequest,
  parameters: PlacementParameters,
): number {
  const terms = termsOf(pod, request, parameters);
  if (Object.values(terms).some((term) => term > parameters.threshold)) return Infinity;
  return Math.hypot(...parameters.terms.map((term) => terms[term]));
}
