// Proposals of planners of range tables. A node that splits a region samples its requests once and cuts at the given
// ratios; the parts are known to the next round.

import type { Dimension, RangeModel, RangeState } from './range-state.ts';

export type RangeStep =
  | { kind: 'move'; region: number; from: number; to: number; reason: string }
  /** Parts from the left are to have these shares of the region's load in a dimension, and the last part the rest. */
  | {
      kind: 'split';
      region: number;
      ratios: readonly number[];
      dimension: Dimension;
      reason: string;
    };

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
