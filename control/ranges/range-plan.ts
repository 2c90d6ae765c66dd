// Proposals of planners of range tables. A node that splits a region samples its requests and cuts at the given ratio;
// the parts are known to the next round.

import type { Dimension, RangeModel, RangeState } from './range-state.ts';

export type RangeStep =
  | { kind: 'move'; region: number; from: number; to: number; reason: string }
  /** The left part is to have `ratio` of the load in a dimension. */
  | { kind: 'split'; region: number; ratio: number; dimension: Dimension; reason: string };

export interface RangePlan {
  steps: readonly RangeStep[];
  /** The imbalance degree, before and as it will be. */
  before: number;
  after: number;
  /** Bytes that are copied. */
  bytes: number;
}

/** Pure: the same model gives the same plan. */
export interface RangePlanner {
  readonly name: string;
  /** Nodes with a load up to 1 + λ are left alone. */
  readonly lambda: number;
  /** The load of a node that is compared with that; the mean of all nodes is 1. */
  loadOf(state: RangeState, node: number): number;
  plan(model: RangeModel): RangePlan;
}
