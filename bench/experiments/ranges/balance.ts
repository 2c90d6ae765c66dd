// Brings a key space to balance round by round, planned on measured loads and judged by those without their error.

import type { RangePlanner } from '../../../control/ranges/range-plan.ts';
import { type RangeModel, RangeState } from '../../../control/ranges/range-state.ts';
import type { KeySpaceCluster, SplitBy } from './key-space.ts';
import { measured } from './mixgraph.ts';

export const lambda = 0.05;
/** Relative error of a region's load in a window of measurement. */
const noise = 0.02;
export const mostRounds = 100;

/** The load of the cluster as the window of measurement of this number finds it. */
export function windowOf(cluster: KeySpaceCluster, window: number): RangeModel {
  return measured(cluster.model(), window, noise);
}

export interface Balanced {
  /** Until the cluster is balanced by the loads without the error. */
  rounds: number;
  atFirst: number;
  imbalance: number;
}

export function balance(
  cluster: KeySpaceCluster,
  planner: RangePlanner,
  by: SplitBy,
  seed: number,
  most = mostRounds,
): Balanced {
  const judged = (): number => new RangeState(cluster.model()).imbalance();
  const atFirst = judged();
  let balancedAt: number | undefined;
  let rounds = 0;
  for (; rounds < most; rounds++) {
    const plan = planner.plan(windowOf(cluster, seed * 1000 + rounds));
    if (plan.before <= lambda || plan.steps.length === 0) break;
    cluster.carryOut(plan, by);
    if (judged() <= lambda) balancedAt ??= rounds + 1;
  }
  return { rounds: balancedAt ?? Math.max(1, rounds), atFirst, imbalance: judged() };
}
