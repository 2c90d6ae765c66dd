// Libra: how long planning takes, and how that grows.

import { cooperative } from '../../control/ranges/cooperative.ts';
import { type RangeModel, RangeState } from '../../control/ranges/range-state.ts';
import type { Experiment } from './experiment.ts';
import { carryOut } from './ranges/carry-out.ts';
import { mean } from './ranges/comparison.ts';
import { mixgraph } from './ranges/mixgraph.ts';

export const rangePlanningTime: Experiment = {
  id: 'LB-V-sim',
  title: 'Planning of 64 nodes with 20,000 regions',
  kind: 'SIM',
  source: 'Libra, section V-F',
  setup:
    'Clusters like W-MIX of 312 regions a node, from 8 to 64 nodes, planned on one core until they are balanced; the curves have the processor time of the first plan, the least of 30 by turns of all clusters. The ' +
    'exponent is that of the time by the number of regions, where n log n from 2,500 to 20,000 regions is about 1.13.',
  run({ seeds, quick }) {
    const models: RangeModel[][] = [];
    const last = { seconds: 0, splits: 0, moves: 0, imbalance: 0 };
    for (const nodes of [8, 16, 32, 64]) {
      const first: RangeModel[] = [];
      let total = 0;
      for (const seed of seeds.slice(0, quick ? 2 : 10)) {
        const { model } = mixgraph(seed, { nodes, ranges: 78 * nodes });
        const out = carryOut(cooperative(), model, seed, { mostRounds: 200 });
        total = Math.max(total, out.planningMs / 1000);
        first.push(model);
        Object.assign(last, { splits: out.splits, moves: out.moves });
        last.imbalance = Math.max(
          nodes === 64 ? last.imbalance : 0,
          new RangeState(out.model).imbalance(),
        );
      }
      last.seconds = total;
      models.push(first);
    }
    const points = planningTimes(models);
    const [first, final] = [points[0]!, points.at(-1)!];
    return {
      measures: [
        {
          metric: 'seconds to plan 64 nodes with 20,000 regions until balanced, all rounds',
          value: last.seconds,
          threshold: 10,
          better: 'lower',
        },
        {
          metric: 'imbalance of that cluster then',
          value: last.imbalance,
          threshold: 0.05,
          better: 'lower',
        },
        {
          metric: 'resident memory, GB',
          value: process.memoryUsage.rss() / 1e9,
          threshold: 1,
          better: 'lower',
        },
        {
          metric: 'exponent of the time of one plan by regions',
          value: Math.log(final[1] / first[1]) / Math.log(final[0] / first[0]),
          threshold: 1.2,
          better: 'lower',
        },
      ],
      xLabel: 'regions',
      yLabel: 'seconds',
      before: {
        title: 'n log n through the first point',
        lines: [
          {
            label: 'seconds',
            points: points.map(([n]) => [
              n,
              (first[1] * n * Math.log(n)) / (first[0] * Math.log(first[0])),
            ]),
          },
        ],
      },
      after: { title: 'measured', lines: [{ label: 'seconds', points }] },
    };
  },
};

/**
 * Seconds of processor time of one plan of each size, by number of regions: of each cluster the least of several plans. The
 * clusters alternate, so that other work on the machine slows all of them.
 */
function planningTimes(sizes: readonly (readonly RangeModel[])[]): [number, number][] {
  const least = new Map<RangeModel, number>();
  for (let round = 0; round < 30; round++) {
    for (const model of sizes.flat()) {
      const startedAt = process.cpuUsage();
      cooperative().plan(model);
      const { user, system } = process.cpuUsage(startedAt);
      least.set(model, Math.min(least.get(model) ?? Infinity, (user + system) / 1e6));
    }
  }
  return sizes.map((models) => [
    models[0]!.node.length,
    mean(models.map((model) => least.get(model)!)),
  ]);
}
