// Range scheduling by chance: as many moves and splits as a planner makes, but of any region, to any node, in any ratio.

import type { RangePlanner, RangeStep } from '../../../control/ranges/range-plan.ts';
import { RangeState } from '../../../control/ranges/range-state.ts';
import { Chance } from '../sim/chance.ts';

export function randomSteps(planner: RangePlanner, seed: number): RangePlanner {
  const chance = new Chance(seed);
  return {
    ...planner,
    name: 'random',
    plan(model) {
      const plan = planner.plan(model);
      const state = new RangeState(model);
      const reason = 'drawn at random';
      const cut = new Set<number>();
      const steps = plan.steps.flatMap((step): RangeStep[] => {
        const region = chance.below(model.node.length);
        if (step.kind === 'move') {
          const [from, to] = [state.node[region]!, chance.below(state.nodeCount)];
          if (from === to) return [];
          state.move(region, to);
          return [{ kind: 'move', region, from, to, reason }];
        }
        if (cut.has(region)) return [];
        cut.add(region);
        // As many cuts, anywhere.
        const places = step.ratios.map(() => chance.next()).sort((a, b) => a - b);
        const ratios = places.map((place, i) => place - (places[i - 1] ?? 0));
        return [{ ...step, region, ratios, reason }];
      });
      return { ...plan, steps };
    },
  };
}
