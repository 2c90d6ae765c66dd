// Parameters of X-Stor's replica scheduling (section 5.3). Those that the paper leaves open are ours.

import type { HardLimits } from '../hard-limits.ts';

export interface SchedulingParameters {
  /** A point is anomalous above this many times the mean of all pods. */
  k: number;
  /** Points in a row above the threshold that make all of them anomalous. */
  run: number;
  /** Share of a pod's limit above which a point violates it. */
  thresholdShare: number;
  /** A pod with more anomalous points than this is high-load. */
  warning: number;
  /** Number of replicas counted at each anomalous point: those with the highest load at that point. */
  k1: number;
  /** Candidates of a pod: the replicas that were counted most often. */
  k2: number;
  /** Anomalous points that the receiver of a leader may have afterwards. */
  acceptedAnomalies: number;
  /** At most this share of the partitions changes its leader in a run, and of the replicas moves. */
  switchedShare: number;
  movedShare: number;
  /** Whether moves left over after migration are used to level the load of pods. */
  levels: boolean;
  /** Minimum limit of role changes, and of moves, in a small cluster; does not apply to a share of 0. */
  leastChanges: number;
  /** When two destinations count as equal: anomalous points, cosine similarity, share of total load. */
  tolerance: { anomalies: number; similarity: number; load: number };
  limits: HardLimits;
}

export const usualParameters: SchedulingParameters = {
  k: 1.5,
  run: 3,
  thresholdShare: 0.6,
  warning: 5,
  k1: 10,
  k2: 100,
  acceptedAnomalies: 0,
  switchedShare: 0.0068,
  movedShare: 0.0043,
  levels: true,
  leastChanges: 10,
  tolerance: { anomalies: 2, similarity: 0.01, load: 0.05 },
  limits: { tableSlack: 5, diskShare: 0.85, crossSubcluster: true },
};

/** How many of `all` may be changed in a run. */
export function budgetOf(
  share: number,
  all: number,
  { leastChanges }: SchedulingParameters,
): number {
  return share === 0 ? 0 : Math.max(leastChanges, Math.floor(all * share));
}
