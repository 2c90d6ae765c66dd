// The planners that Libra is compared with in its section II-C: one dimension alone, both on their
// own, and a weighted sum of both. All move the hottest region that fits from the node with the
// highest load to the one with the lowest, as long as the destination stays below the source's old
// load. None splits.

import type { RangePlan, RangePlanner, RangeStep } from './range-plan.ts';
import { type Dimension, type RangeModel, RangeState } from './range-state.ts';

/** Load of a region and a node by some measure. */
interface Score {
  name: string;
  region(state: RangeState, region: number): number;
  node(state: RangeState, node: number): number;
}

export const noScheduling: RangePlanner = {
  name: 'NO-SCH',
  lambda: Infinity,
  loadOf: (state, node) => 1 + state.deviation(node),
  plan: (model) => {
    const before = new RangeState(model).imbalance();
    return { steps: [], before, after: before, bytes: 0 };
  },
};

export function oneDimension(dimension: Dimension, lambda = 0.05): RangePlanner {
  const name = `1D-${dimension.toUpperCase()}`;
  return greedy(name, byDimension(dimension), lambda);
}

/**
 * A planner for each dimension, side by side: neither considers the other's moves of the same
 * round.
 */
export function isolated(lambda = 0.05): RangePlanner {
  const planners = [oneDimension('cpu', lambda), oneDimension('io', lambda)];
  return {
    name: '2D-ISO',
    lambda,
    loadOf: (state, node) => 1 + state.deviation(node),
    plan(model): RangePlan {
      const state = new RangeState(model);
      const before = state.imbalance();
      const steps: RangeStep[] = [];
      let bytes = 0;
      const moved = new Set<number>();
      const plans = planners.map((planner) => planner.plan(model).steps);
      for (const step of interleaved(plans)) {
        if (step.kind !== 'move' || moved.has(step.region)) continue;
        moved.add(step.region);
        state.move(step.region, step.to);
        bytes += state.bytes[step.region]!;
        steps.push(step);
      }
      return { steps, before, after: state.imbalance(), bytes };
    },
  };
}

function interleaved(plans: readonly (readonly RangeStep[])[]): RangeStep[] {
  const longest = Math.max(...plans.map((plan) => plan.length));
  return Array.from({ length: longest }, (_, i) => plans.flatMap((plan) => plan[i] ?? [])).flat();
}

/** `weight` is the processor's weight. */
export function weighted(weight = 0.5, lambda = 0.05): RangePlanner {
  const sum = (cpu: number, io: number): number => weight * cpu + (1 - weight) * io;
  const score: Score = {
    name: 'weighted',
    region: ({ load }, region) => sum(load.cpu[region]!, load.io[region]!),
    node: ({ total }, node) => sum(total.cpu[node]!, total.io[node]!),
  };
  return greedy('2D-WTD', score, lambda);
}

function byDimension(dimension: Dimension): Score {
  return {
    name: dimension,
    region: ({ load }, region) => load[dimension][region]!,
    node: ({ total }, node) => total[dimension][node]!,
  };
}

function greedy(name: string, score: Score, lambda: number): RangePlanner {
  return {
    name,
    lambda,
    loadOf: (state, node) => score.node(state, node),
    plan(model: RangeModel): RangePlan {
      const state = new RangeState(model);
      const before = state.imbalance();
      const steps: RangeStep[] = [];
      let bytes = 0;
      // Each move narrows the gap of two nodes; the bound only guards against rounding.
      for (let left = 4 * state.regionCount; left > 0; left--) {
        const move = hottestMove(state, score, lambda);
        if (move === undefined) break;
        const { region, from, to } = move;
        state.move(region, to);
        bytes += state.bytes[region]!;
        const reason = `node ${from} has the highest ${score.name} load, node ${to} the lowest`;
        steps.push({ kind: 'move', region, from, to, reason });
      }
      return { steps, before, after: state.imbalance(), bytes };
    },
  };
}

function hottestMove(
  state: RangeState,
  score: Score,
  lambda: number,
): { region: number; from: number; to: number } | undefined {
  const loads = Array.from({ length: state.nodeCount }, (_, node) => score.node(state, node));
  const high = Math.max(...loads);
  if (high <= 1 + lambda) return undefined;
  const from = loads.indexOf(high);
  // The lowest node, unless it may take none of the regions.
  const targets = loads.map((_, node) => node).sort((a, b) => loads[a]! - loads[b]! || a - b);
  for (const to of targets) {
    let best: number | undefined;
    for (const region of state.regionsOf[from]!) {
      const load = score.region(state, region);
      if (load <= 0 || loads[to]! + load / state.capacity[to]! >= high) continue;
      if (best !== undefined && load <= score.region(state, best)) continue;
      if (state.allows(region, to)) best = region;
    }
    if (best !== undefined) return { region: best, from, to };
    if (!state.isRestricted) return undefined;
  }
  return undefined;
}
