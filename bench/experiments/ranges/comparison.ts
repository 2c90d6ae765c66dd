// The planners of Libra's evaluation on the same clusters: planned on one window of measurement, judged on another.

import {
  isolated,
  noScheduling,
  oneDimension,
  weighted,
} from '../../../control/ranges/baseline-planners.ts';
import { cooperative } from '../../../control/ranges/cooperative.ts';
import type { RangePlanner, RangeStep } from '../../../control/ranges/range-plan.ts';
import { type RangeModel, RangeState } from '../../../control/ranges/range-state.ts';
import { Chance } from '../sim/chance.ts';
import { type CarriedOut, carryOut } from './carry-out.ts';
import { measured, mixgraph, type MixOptions } from './mixgraph.ts';

/** Relative error by region of the window that is planned on, and of the one that is judged on. */
const noise = 0.02;

export interface Judged extends CarriedOut {
  /** Largest over mean. */
  cpu: number;
  io: number;
  state: RangeState;
}

/** As many moves as the cooperative planner makes, of any region to any node. */
function randomPlanner(moves: number, seed: number): RangePlanner {
  return {
    name: 'random',
    lambda: 0,
    loadOf: (state, node) => 1 + state.deviation(node),
    plan(model) {
      const chance = new Chance(seed);
      const state = new RangeState(model);
      const before = state.imbalance();
      const steps: RangeStep[] = [];
      for (let i = 0; i < moves; i++) {
        const region = chance.below(state.regionCount);
        const from = state.node[region]!;
        const to = chance.below(state.nodeCount);
        if (from === to) continue;
        state.move(region, to);
        steps.push({ kind: 'move', region, from, to, reason: 'drawn at random' });
      }
      return { steps, before, after: state.imbalance(), bytes: 0 };
    },
  };
}

export function judge(planner: RangePlanner, start: RangeModel, seed: number): Judged {
  const mostRounds = planner.name === 'random' ? 1 : 60;
  // The load used for planning carries an error; regions made by a split inherit their part of it.
  const planned = carryOut(planner, measured(start, seed * 2 + 1, noise), seed, { mostRounds });
  const state = new RangeState(measured(planned.model, seed * 2 + 2, noise));
  return { ...planned, state, cpu: state.maxOverMean('cpu'), io: state.maxOverMean('io') };
}

/** By the planner's name, one for each seed. */
export function compareAll(
  seeds: readonly number[],
  options: MixOptions = {},
): Map<string, Judged[]> {
  const results = new Map<string, Judged[]>();
  const planners = [
    noScheduling,
    oneDimension('cpu'),
    oneDimension('io'),
    isolated(),
    weighted(),
    cooperative(),
  ];
  for (const seed of seeds) {
    const { model } = mixgraph(seed, options);
    let moves = 0;
    for (const planner of planners) {
      const judged = judge(planner, model, seed);
      results.set(planner.name, [...(results.get(planner.name) ?? []), judged]);
      moves = judged.moves;
    }
    const random = judge(randomPlanner(moves, seed), model, seed);
    results.set('random', [...(results.get('random') ?? []), random]);
  }
  return results;
}

export const baselineNames = ['1D-CPU', '1D-IO', '2D-ISO', '2D-WTD'] as const;

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
