// Libra: when regions are not split, and how they become fewer again.

import { noScheduling } from '../../control/ranges/baseline-planners.ts';
import { cooperative } from '../../control/ranges/cooperative.ts';
import { LoadTable } from '../../control/ranges/load-table.ts';
import { merges } from '../../control/ranges/merge.ts';
import type { RangePlanner } from '../../control/ranges/range-plan.ts';
import { RangeState } from '../../control/ranges/range-state.ts';
import { boundedPlacement, mostMoves } from '../../control/ranges/region-bound.ts';
import type { Experiment } from './experiment.ts';
import { overSeeds } from './over-seeds.ts';
import { balance, lambda, mostRounds, windowOf } from './ranges/balance.ts';
import { mean } from './ranges/comparison.ts';
import { KeySpaceCluster } from './ranges/key-space.ts';
import { randomSteps } from './ranges/random-steps.ts';
import { Chance } from './sim/chance.ts';

export const rangeBound: Experiment = {
  id: 'LB-IV-bound',
  title: 'Regions below λ/2 can always be placed',
  kind: 'SIM',
  source: 'Libra, section IV-B, theorem 1',
  setup:
    'Random clusters of 2 to 12 nodes in which no region has more than λ/2 of a node in either dimension, placed as in the ' +
    'proof of the theorem, and balanced by moves alone from a random placement.',
  run({ seeds, quick, progress }) {
    const instances = quick ? 300 : 10_000;
    const failed = { placement: 0, moves: 0, bound: 0 };
    const counts: [number, number][] = [];
    const chance = new Chance(seeds[0]!);
    for (let i = 0; i < instances; i++) {
      if (i % 100 === 0) progress(`${i} of ${instances}`);
      const { cpu, io, nodes } = bounded(chance);
      const model = {
        capacity: new Float64Array(nodes).fill(1),
        cpu,
        io,
        bytes: new Float64Array(cpu.length),
        order: Uint32Array.from(cpu, (_, region) => region),
      };
      const placed = new RangeState({ ...model, node: boundedPlacement(cpu, io, nodes) });
      if (placed.imbalance() > lambda + 1e-9) failed.placement++;
      const start = { ...model, node: Uint32Array.from(cpu, () => chance.below(nodes)) };
      const { total } = new RangeState(start);
      const { after, steps } = cooperative({ leastLoad: 0 }).plan(start);
      if (after > lambda + 1e-9) failed.moves++;
      const most = mostMoves(total, cpu, io);
      if (steps.length > most) failed.bound++;
      if (i % Math.ceil(instances / 200) === 0) counts.push([cpu.length, steps.length]);
    }
    counts.sort((a, b) => a[0] - b[0]);
    return {
      measures: [
        {
          metric: 'clusters not balanced by the placement of the proof',
          value: failed.placement,
          threshold: 0,
          better: 'lower',
        },
        {
          metric: 'clusters not balanced by cooperative moves',
          value: failed.moves,
          threshold: 0,
          better: 'lower',
        },
        {
          metric: 'clusters with more moves than excess / x',
          value: failed.bound,
          threshold: 0,
          better: 'lower',
        },
      ],
      xLabel: 'regions',
      yLabel: 'moves',
      before: { title: 'no scheduling', lines: [] },
      after: { title: 'cooperative', lines: [{ label: 'moves', points: counts }] },
    };
  },
};

/** Loads normalised to a mean of 1 by node, none above λ/2. */
function bounded(chance: Chance): { cpu: Float64Array; io: Float64Array; nodes: number } {
  const nodes = 2 + chance.below(11);
  for (let regions = nodes * 60; ; regions *= 2) {
    const sigma = chance.uniform(0, 1);
    const draw = (): Float64Array => {
      const loads = Float64Array.from({ length: regions }, () => chance.lognormal(0, sigma));
      const unit = loads.reduce((sum, load) => sum + load, 0) / nodes;
      return loads.map((load) => load / unit);
    };
    const [cpu, io] = [draw(), draw()];
    if (Math.max(...cpu, ...io) <= lambda / 2) return { cpu, io, nodes };
  }
}

export const rangeLazy: Experiment = {
  id: 'LB-IV-lazy',
  title: 'Splits wait until moves do not do',
  kind: 'SIM',
  source: 'Libra, section IV-C and figure 18',
  setup:
    'W-MIX over an ordered key space. The hot ranges move elsewhere seven times, and the cluster is balanced each time. ' +
    'Without: all regions of an overloaded node are first brought below λ/2. Messages: a heartbeat for each region in each ' +
    'round of thirty minutes, an order and an answer for each split and move. Planned on measured loads with ' +
    'an error of 2 % a region, and judged by those without it. Then load is even for three hours, and cold neighbours are ' +
    'merged, one a minute and node.',
  run({ seeds, quick, progress }) {
    const outcomes = seeds.slice(0, quick ? 1 : undefined).map((seed) => {
      progress(`seed ${seed}`);
      return {
        lazy: hotspots(seed, cooperative()),
        eager: hotspots(seed, cooperative({ isEager: true })),
        random: hotspots(seed, randomSteps(cooperative(), seed)),
        nothing: hotspots(seed, noScheduling),
      };
    });
    const line = (
      of: (outcome: (typeof outcomes)[number]) => readonly number[],
      label: string,
    ) => ({
      label,
      points: of(outcomes[0]!).map((count, i): [number, number] => [i, count]),
    });
    return {
      measures: [
        overSeeds(
          outcomes.map(({ lazy, eager }) => lazy.counts[7]! / eager.counts[7]!),
          {
            metric: 'regions after seven rounds, over those of eager splits',
            threshold: 0.5,
            better: 'lower',
          },
        ),
        overSeeds(
          outcomes.map(({ lazy, eager }) => 100 * (1 - lazy.messages / eager.messages)),
          {
            metric: 'fewer messages than with eager splits, %',
            threshold: 51.5,
            better: 'higher',
            paper: '51.4',
          },
        ),
        overSeeds(
          outcomes.map(({ lazy }) => lazy.imbalance),
          { metric: 'imbalance after seven rounds', threshold: lambda, better: 'lower' },
          outcomes.map(({ eager }) => eager.imbalance),
        ),
        ...(['random', 'nothing'] as const).map((name) =>
          overSeeds(
            outcomes.map(({ lazy }) => lazy.imbalance),
            {
              metric: `imbalance after seven rounds, beside ${name === 'random' ? 'as many cuts and moves at random' : 'nothing done'}`,
              threshold: mean(outcomes.map((outcome) => outcome[name].imbalance)),
              better: 'lower',
            },
            outcomes.map((outcome) => outcome[name].imbalance),
          ),
        ),
        overSeeds(
          outcomes.map(({ lazy }) => Math.abs(lazy.counts[8]! / lazy.counts[0]! - 1) * 100),
          {
            metric: 'LB-IV-merge: regions after three calm hours, difference from the start, %',
            threshold: 10,
            better: 'lower',
          },
        ),
      ],
      xLabel: 'round; 8: after merging',
      yLabel: 'regions',
      before: { title: 'eager splits', lines: [line(({ eager }) => eager.counts, 'regions')] },
      after: { title: 'lazy splits', lines: [line(({ lazy }) => lazy.counts, 'regions')] },
    };
  },
};

function hotspots(
  seed: number,
  planner: RangePlanner,
): { counts: number[]; messages: number; imbalance: number } {
  const cluster = new KeySpaceCluster(seed);
  const counts = [cluster.regionCount];
  let messages = 0;
  let imbalance = 0;
  for (let round = 1; round <= 7; round++) {
    cluster.setHotspot(round / 8);
    for (let i = 0; i < mostRounds; i++) {
      const plan = planner.plan(windowOf(cluster, (seed * 100 + round) * 1000 + i));
      if (plan.before <= lambda || plan.steps.length === 0) break;
      const { moves, splits } = cluster.carryOut(plan);
      messages += 2 * (moves + splits);
    }
    messages += cluster.regionCount * 180;
    imbalance = new RangeState(cluster.model()).imbalance();
    counts.push(cluster.regionCount);
  }
  cluster.setHotspot(0, 1);
  for (let minute = 0; minute < 180; minute++) {
    const found = merges(cluster.model());
    if (found.length === 0) break;
    cluster.merge(found);
  }
  counts.push(cluster.regionCount);
  return { counts, messages, imbalance };
}

export const rangeSuspend: Experiment = {
  id: 'LB-IV-suspend',
  title: 'Nothing moves while loads jump',
  kind: 'SIM',
  source: 'Libra, section IV-A, and figure 21 for how long hotspots last',
  setup:
    'Heartbeats every 10 s. A hotspot that comes and goes every 15 s; a steady one; and one that lasts 5 or 30 minutes, on ' +
    'a cluster that was balanced before. A node gives two regions away between two heartbeats, and a split takes as long.',
  run({ seeds, quick }) {
    const runs = seeds.slice(0, quick ? 1 : undefined).map((seed) => ({
      square: follow(seed, 600, (now) => Math.floor(now / 15) % 2 === 0),
      steady: follow(seed, 1800, () => true),
      five: follow(seed, 600, (now) => now < 300),
      fiveNone: follow(seed, 600, (now) => now < 300, false),
      none: follow(seed, 1800, () => true, false),
    }));
    return {
      measures: [
        overSeeds(
          runs.map(({ square }) => square.moves),
          { metric: 'moves during a square wave of 30 s', threshold: 0, better: 'lower' },
        ),
        overSeeds(
          runs.map(({ steady }) => steady.firstBeat),
          { metric: 'heartbeats until a steady skew is acted on', threshold: 3, better: 'lower' },
        ),
        overSeeds(
          runs.map(({ steady }) => steady.balancedAt / 60),
          {
            metric: 'LB-V-perf: minutes until a hotspot of 30 is balanced',
            threshold: 30,
            better: 'lower',
            paper: '< 30',
          },
        ),
        overSeeds(
          runs.map(({ five }) => five.meanWorst),
          {
            metric:
              'LB-V-perf: largest over mean load during a hotspot of 5 minutes and 5 after, over that without scheduling',
            threshold: mean(runs.map(({ fiveNone }) => fiveNone.meanWorst)),
            better: 'lower',
          },
          runs.map(({ fiveNone }) => fiveNone.meanWorst),
        ),
      ],
      xLabel: 'minute of a hotspot',
      yLabel: 'largest over mean load',
      before: { title: 'no scheduling', lines: [{ label: 'load', points: runs[0]!.none.curve }] },
      after: { title: 'cooperative', lines: [{ label: 'load', points: runs[0]!.steady.curve }] },
    };
  },
};

interface Followed {
  moves: number;
  firstBeat: number;
  /** Second from which on the load stays balanced; Infinity: never. */
  balancedAt: number;
  meanWorst: number;
  curve: [number, number][];
}

function follow(
  seed: number,
  seconds: number,
  isHot: (now: number) => boolean,
  schedules = true,
): Followed {
  const cluster = new KeySpaceCluster(seed);
  balance(cluster, cooperative(), 'load', seed);
  const table = new LoadTable();
  const planner = cooperative();
  const result: Followed = {
    moves: 0,
    firstBeat: Infinity,
    balancedAt: Infinity,
    meanWorst: 0,
    curve: [],
  };
  for (let now = 0; now < seconds; now += 10) {
    // Loads of the ten seconds before the heartbeat, in two halves.
    const halves = [now, now + 5].map((at) => {
      cluster.setHotspot(isHot(at) ? 0.5 : 0);
      return new RangeState(cluster.model());
    });
    for (let node = 0; node < cluster.nodes; node++) {
      const [a, b] = [halves[0]!.total, halves[1]!.total];
      const cpu = (a.cpu[node]! + b.cpu[node]!) / 2;
      table.hearNode({ node, cpu, io: (a.io[node]! + b.io[node]!) / 2 });
    }
    const imbalance = halves[1]!.imbalance();
    result.meanWorst += ((1 + imbalance) * 10) / seconds;
    result.curve.push([now / 60, 1 + imbalance]);
    if (imbalance > lambda) result.balancedAt = Infinity;
    else if (result.balancedAt === Infinity) result.balancedAt = now;
    if (!schedules || !table.isDue) continue;
    const { moves, splits } = cluster.carryOut(planner.plan(cluster.model()), 'load', 2);
    result.moves += moves + splits;
    if (moves + splits > 0) result.firstBeat = Math.min(result.firstBeat, now / 10 + 1);
  }
  return result;
}
