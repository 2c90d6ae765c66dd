// Replicas that live on borrowed capacity (Amazon, "Fairness in multi-tenant systems": fairness as
// bin packing). A pod lends capacity that its tenants leave idle. A replica that has been above its
// share for an hour, on a pod that has promised that capacity to others, moves to a pod that can
// serve it beside all promised shares.

import { dimensionOf } from './cluster-model.ts';
import { type HardLimits, refusalOf, usualLimits } from './hard-limits.ts';
import type { Policy, Proposal } from './proposal.ts';
import { WorkingCluster } from './working-cluster.ts';
import { similarity } from './xstor/migrate.ts';

export interface BorrowingOptions {
  /** The dimension that shares are allocated in. */
  dimension: string;
  /** A replica borrows when its load is above this many times its allocated share. */
  overShare: number;
  /** A tenant is a habitual borrower when it borrowed at most points of this period until now. */
  sustainedSeconds: number;
  /** Part of those points; the rest is noise. */
  leastPart: number;
  /** Among targets with room: the most room, or the load least like the replica's own (eq. 10 of X-Stor). */
  target: 'unlike' | 'room';
  limits: HardLimits;
}

const defaultBorrowing: BorrowingOptions = {
  dimension: 'ru',
  overShare: 1.2,
  sustainedSeconds: 3600,
  leastPart: 0.9,
  target: 'room',
  limits: usualLimits,
};

interface Borrower {
  replica: number;
  share: number;
  /** Its highest load within the time looked at, in the unit of shares. */
  highest: number;
}

/** The last points of a model that the policy looks at. */
function firstPoint(cluster: WorkingCluster, { sustainedSeconds }: BorrowingOptions): number {
  const { points, model } = cluster;
  return Math.max(0, points - Math.ceil(sustainedSeconds / model.pointSeconds));
}

/** Habitual borrowers, those that borrow most first. Replicas without an allocated share have nothing to exceed. */
export function habitualBorrowers(
  cluster: WorkingCluster,
  options: Partial<BorrowingOptions> = {},
): Borrower[] {
  const all = { ...defaultBorrowing, ...options };
  const dimension = dimensionOf(cluster.model, all.dimension);
  const from = firstPoint(cluster, all);
  const found: Borrower[] = [];
  for (let replica = 0; replica < cluster.podOf.length; replica++) {
    const share = cluster.partitionLru[cluster.partitionOf[replica]!]!;
    // A negative pod marks a removed replica.
    if (!(share > 0) || cluster.podOf[replica]! < 0) continue;
    let [over, highest] = [0, 0];
    for (let point = from; point < cluster.points; point++) {
      const load = cluster.replicaLoad(replica, dimension, point);
      if (load > all.overShare * share) over++;
      highest = Math.max(highest, load);
    }
    if (over > 0 && over >= all.leastPart * (cluster.points - from)) {
      found.push({ replica, share, highest });
    }
  }
  return found.sort((a, b) => b.highest - b.share - (a.highest - a.share));
}

/**
 * Load that a pod could not serve if its tenants claimed their shares while habitual borrowers continued: promised
 * shares and borrowed load beyond its capacity, in the unit of shares. 0 when no tenant is affected.
 */
export function contestedLoad(
  cluster: WorkingCluster,
  pod: number,
  borrowers: readonly Borrower[],
  dimensionName = defaultBorrowing.dimension,
): number {
  const dimension = dimensionOf(cluster.model, dimensionName);
  const borrowed = borrowers
    .filter(({ replica }) => cluster.podOf[replica] === pod)
    .reduce((sum, { highest, share }) => sum + highest - share, 0);
  if (borrowed === 0) return 0;
  const capacity = cluster.model.pods.limits[pod * cluster.dimensionCount + dimension]!;
  return Math.max(0, Math.min(borrowed, cluster.podAllocatedLru[pod]! + borrowed - capacity));
}

export function moveHabitualBorrowers(options: Partial<BorrowingOptions> = {}): Policy {
  const all = { ...defaultBorrowing, ...options };
  return {
    name: 'habitual borrowers',
    plan(model) {
      const cluster = new WorkingCluster(model);
      const borrowers = habitualBorrowers(cluster, all);
      const contested = (pod: number): number =>
        contestedLoad(cluster, pod, borrowers, all.dimension);
      // Two borrowers on a pod both move: capacity freed by the first may be promised to others at
      // once.
      const moving = borrowers
        .map((borrower) => ({ borrower, fromPod: cluster.podOf[borrower.replica]! }))
        .filter(({ fromPod }) => contested(fromPod) > 0);
      const proposals: Proposal[] = [];
      for (const { borrower, fromPod } of moving) {
        const before = contested(fromPod);
        const toPod = targetOf(cluster, borrower, borrowers, all);
        // Without a pod that has room the fleet or the quota must grow, which other policies propose.
        if (toPod === undefined) continue;
        const change = {
          kind: 'move-replica',
          replica: borrower.replica,
          fromPod,
          toPod,
        } as const;
        cluster.apply(change);
        const partition = cluster.partitionOf[borrower.replica]!;
        const [from, to] = [model.pods.ids[fromPod], model.pods.ids[toPod]];
        const percent = Math.round((100 * borrower.highest) / borrower.share);
        proposals.push({
          change,
          reason: `${model.partitions.ids[partition]} uses up to ${percent} % of its share on ${from}, whose capacity is promised to others; ${to} has room`,
          figures: [
            {
              name: `borrowed load on ${from} that others may claim`,
              before,
              after: contested(fromPod),
            },
          ],
          cost: { bytes: cluster.partitionBytes[partition]!, replicas: 1 },
        });
      }
      return proposals;
    },
  };
}

/**
 * A pod on which all shares, the borrower's load and other borrowers' use fit, now and in the
 * highest minute.
 */
function targetOf(
  cluster: WorkingCluster,
  { replica, highest }: Borrower,
  borrowers: readonly Borrower[],
  options: BorrowingOptions,
): number | undefined {
  const { model } = cluster;
  const dimension = dimensionOf(model, options.dimension);
  let [best, bestScore] = [undefined as number | undefined, Infinity];
  for (let pod = 0; pod < cluster.podCount; pod++) {
    if (refusalOf(cluster, replica, pod, options.limits) !== undefined) continue;
    const capacity = model.pods.limits[pod * cluster.dimensionCount + dimension]!;
    const borrowed = borrowers
      .filter((of) => cluster.podOf[of.replica] === pod)
      .reduce((sum, of) => sum + of.highest - of.share, 0);
    const room = capacity - cluster.podAllocatedLru[pod]! - borrowed - highest;
    if (room < 0) continue;
    const series = cluster.seriesOf(replica, dimension);
    const score = options.target === 'room' ? -room : similarity(cluster, dimension, pod, series);
    if (score < bestScore) [best, bestScore] = [pod, score];
  }
  return best;
}
