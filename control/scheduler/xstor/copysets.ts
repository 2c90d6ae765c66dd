// Subcluster groups (X-Stor, section 3). A group of 27 nodes, or 9 in a small cluster, has 12 subclusters with one pod of
// each node. All replicas of a partition are in one subcluster, so that few sets of three disks hold one together: the
// idea of copysets. Smaller groups are safer, larger ones rebuild faster.

interface GroupMember {
  /** A number of the caller's. */
  node: number;
  zone: number;
}

const groupSizes = { usual: 27, small: 9 } as const;
const subclustersOfGroup = 12;

/**
 * Nodes of each new group; those that do not fill one are left out, and wait. The zones of a group have numbers of nodes
 * as equal as the nodes at hand allow.
 */
export function formGroups(
  waiting: readonly GroupMember[],
  size: number = groupSizes.usual,
): number[][] {
  const byZone = new Map<number, number[]>();
  for (const { node, zone } of waiting) byZone.set(zone, [...(byZone.get(zone) ?? []), node]);
  const queues = [...byZone.values()];
  const groups: number[][] = [];
  for (let formed = 0; formed < Math.floor(waiting.length / size); formed++) {
    const group: number[] = [];
    while (group.length < size) {
      // Takes nodes from the zones in turn. Empty zones are skipped.
      for (const queue of queues) {
        const node = group.length < size ? queue.shift() : undefined;
        if (node !== undefined) group.push(node);
      }
    }
    groups.push(group);
  }
  return groups;
}

/** The chance that a partition loses all replicas when three disks fail at once, by the disks that partitions are on. */
export function lossProbability(partitions: Iterable<readonly number[]>, disks: number): number {
  const together = new Set<number>();
  for (const replicas of partitions) {
    const [a, b, c] = [...replicas].sort((x, y) => x - y) as [number, number, number];
    together.add((a * disks + b) * disks + c);
  }
  return together.size / ((disks * (disks - 1) * (disks - 2)) / 6);
}

/** No placement into subclusters exceeds it, however many partitions there are. */
export function lossBound(groupSize: number, subclusters: number = subclustersOfGroup): number {
  const triples = (n: number): number => (n * (n - 1) * (n - 2)) / 6;
  return (subclusters * triples(groupSize)) / triples(groupSize * subclusters);
}
