// Carries plans of range planners out, round after round, as a cluster would: a split that is asked for by ratio comes
// out a little different, and the next round knows the parts by their loads.

import type { RangePlanner } from '../../../control/ranges/range-plan.ts';
import { type RangeModel, RangeState } from '../../../control/ranges/range-state.ts';
import { Chance } from '../sim/chance.ts';

export interface CarriedOut {
  model: RangeModel;
  rounds: number;
  moves: number;
  splits: number;
  bytes: number;
  /** Milliseconds that the planner took. */
  planningMs: number;
}

interface CarryOutOptions {
  mostRounds?: number;
  /**
   * Fraction of the load that a split actually gives to its left part, for a requested fraction.
   */
  shareOf?: (ratio: number, chance: Chance) => number;
}

/** With the relative error that Libra's figure 16 and the experiment LB-IV-split have. */
const byLoad = (ratio: number, chance: Chance): number => ratio * chance.normal(1, 0.1);
export function carryOut(
  planner: RangePlanner,
  start: RangeModel,
  seed: number,
  { mostRounds = 60, shareOf = byLoad }: CarryOutOptions = {},
): CarriedOut {
  const chance = new Chance(seed);
  const result: CarriedOut = {
    model: start,
    rounds: 0,
    moves: 0,
    splits: 0,
    bytes: 0,
    planningMs: 0,
  };
  for (; result.rounds < mostRounds; result.rounds++) {
    const startedAt = performance.now();
    const { steps, bytes } = planner.plan(result.model);
    result.planningMs += performance.now() - startedAt;
    if (steps.length === 0) break;
    const state = new RangeState(result.model);
    for (const step of steps) {
      if (step.kind === 'move') {
        state.move(step.region, step.to);
        result.moves++;
      } else {
        let { region } = step;
        let rest = 1;
        for (const ratio of step.ratios) {
          const wanted = ratio / rest;
          const share = (): number => Math.min(0.98, Math.max(0.02, shareOf(wanted, chance)));
          region = state.split(region, share(), share(), 0.5);
          rest -= ratio;
          result.splits++;
        }
      }
    }
    result.bytes += bytes;
    result.model = modelOf(state);
  }
  return result;
}

/** Without the regions that were merged away. */
function modelOf(state: RangeState): RangeModel {
  const order = state.inOrder();
  return {
    capacity: state.capacity,
    node: Uint32Array.from(order, (region) => state.node[region]!),
    cpu: Float64Array.from(order, (region) => state.load.cpu[region]!),
    io: Float64Array.from(order, (region) => state.load.io[region]!),
    bytes: Float64Array.from(order, (region) => state.bytes[region]!),
    order: Uint32Array.from(order, (_, i) => i),
  };
}
