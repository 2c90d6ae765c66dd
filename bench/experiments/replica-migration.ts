// X-Stor: where replicas go that leave an overloaded pod, and how many do.

import { ClusterBuilder } from '../../control/scheduler/cluster-builder.ts';
import type { ClusterModel } from '../../control/scheduler/cluster-model.ts';
import { Chance } from '../../control/scheduler/simulation/chance.ts';
import { runTrials, type Trial } from '../../control/scheduler/simulation/trial.ts';
import {
  paperSize,
  replicaScheduling,
} from '../../control/scheduler/simulation/workloads/replica-scheduling.ts';
import { peakMover, randomMoves } from '../../control/scheduler/baselines.ts';
import { dailyCycle, migration } from '../../control/scheduler/xstor/daily-cycle.ts';
import {
  type SchedulingParameters,
  usualParameters,
} from '../../control/scheduler/xstor/parameters.ts';
import { schedulingFigures } from './cluster/figures.ts';
import type { Experiment, Measure } from './experiment.ts';
import { overSeeds } from './over-seeds.ts';

const copies = 3;
const dayPods = 4;

/**
 * A pod with twice the load of the others, of which a small replica that works at night is moved first; and eight pods of about
 * the same load, half of which work at day and half at night. None of them gets anomalous minutes by the small replica.
 */
function dayAndNight(chance: Chance): { model: ClusterModel; isDay: boolean[] } {
  const points = 96;
  const builder = new ClusterBuilder({ dimensions: ['cpu'], points, pointSeconds: 900 });
  const isDay = Array.from({ length: 9 }, (_, pod) => pod > 0 && pod <= dayPods);
  for (let i = 8; i > 1; i--) {
    const j = 1 + chance.below(i);
    [isDay[i], isDay[j]] = [isDay[j]!, isDay[i]!];
  }
  const series = (mean: number, day: boolean): number[] =>
    Array.from({ length: points }, (_, t) => {
      const phase = Math.cos((2 * Math.PI * t) / points) * (day ? -1 : 1);
      return mean * Math.max(0, 1 + 0.3 * phase + chance.normal(0, 0.05));
    });
  const add = (pod: number, mean: number, day: boolean): void => {
    const table = builder.table(`t${pod}-${mean}`);
    const row = builder.row(series(mean, day));
    const partition = builder.partition({
      id: `p${pod}-${mean}`,
      table,
      bytes: 1,
      leader: { row },
    });
    builder.replica(partition, pod, true);
  };
  for (let pod = 0; pod < 9; pod++) {
    const node = builder.node({ id: `n${pod}` });
    builder.pod({ id: `pod${pod}`, node, limits: [100], diskBytes: 100 });
  }
  for (const mean of [5, 18, 20]) add(0, mean, false);
  for (let pod = 1; pod < 9; pod++) add(pod, 18 * chance.uniform(0.9, 1.1), isDay[pod]!);
  return { model: builder.build(), isDay };
}

/** Whether the first replica that is moved goes to a pod of the other pattern; undefined when none is. */
function goesToComplement(seed: number, parameters: SchedulingParameters): boolean | undefined {
  const { model, isDay } = dayAndNight(new Chance(seed));
  const [first] = migration(parameters).plan(model, { now: 0, rng: new Chance(seed) });
  return first?.change.kind === 'move-replica' ? isDay[first.change.toPod]! : undefined;
}

export const replicaMigration: Experiment = {
  id: 'XS-5.3-migrate',
  title: 'Replicas move by five priorities',
  kind: 'SIM',
  source: 'X-Stor, section 5.3.2, eq. 10, and table 6',
  setup:
    'W-REPL, with role switching before and without; beside it as many moves at random, and the heaviest replica of the highest peak. ' +
    'Planned on one draw of the noise and judged on another. And clusters of a ' +
    'pod with twice the load of eight others, whose loads differ by a tenth, and of which half work at day: where does its ' +
    'replica go that works at night? Without: the same priorities but the third, least similar load.',
  run({ seeds, quick, progress }) {
    const { movedShare, thresholdShare } = usualParameters;
    const most = Math.floor(paperSize.partitions * copies * movedShare);
    const trials = runTrials({
      workload: (seed) => replicaScheduling(seed),
      policies: [
        // Without levelling: its moves are for another purpose, and are counted in XS-5.3-cycle.
        dailyCycle({ ...usualParameters, levels: false }),
        migration(),
        peakMover(most, thresholdShare),
        randomMoves(most),
      ],
      seeds: seeds.slice(0, quick ? 1 : seeds.length),
      measure: schedulingFigures,
      progress,
    });
    const of = (name: string): Trial[] => trials.filter(({ policy }) => policy === name);
    const moved = (name: string): number[] =>
      of(name).map(
        ({ proposals }) =>
          (100 * proposals.filter(({ change }) => change.kind === 'move-replica').length) /
          (paperSize.partitions * copies),
      );
    const fallBy = (name: string, figure: string): number[] =>
      of(name).map(({ before, after }) => 100 * (1 - after[figure]! / before[figure]!));
    const fall = fallBy('xstor-moves', 'violations');
    const beside = (name: string, figure: string): Measure => {
      const theirs = fallBy(name, figure);
      const threshold = theirs.reduce((sum, value) => sum + value, 0) / theirs.length;
      const metric = `fewer ${figure} by migration alone, beside the policy \`${name}\`, %`;
      return overSeeds(
        fallBy('xstor-moves', figure),
        { metric, threshold, better: 'higher' },
        theirs,
      );
    };
    const cases = Array.from({ length: 200 }, (_, i) => i + 1);
    const blind = {
      ...usualParameters,
      tolerance: { ...usualParameters.tolerance, similarity: Infinity },
    };
    const share = (parameters: SchedulingParameters): number => {
      const found = cases.map((seed) => goesToComplement(seed, parameters));
      return (100 * found.filter((one) => one === true).length) / cases.length;
    };
    const [withPriority, without] = [share(usualParameters), share(blind)];
    return {
      measures: [
        overSeeds(moved('xstor'), {
          metric: 'replicas moved after role switching, %',
          threshold: 0.43,
          better: 'lower',
          paper: '0.42 %',
        }),
        overSeeds(moved('xstor-moves'), {
          metric: 'replicas moved by migration alone, %',
          threshold: 0.43,
          better: 'lower',
          paper: '0.42 %',
        }),
        overSeeds(
          fall,
          { metric: 'fewer violations by migration alone, %', threshold: 50, better: 'higher' },
          fall.map(() => 0),
        ),
        ...['random', 'peak-mover'].flatMap((name) =>
          ['violations', 'anomalies'].map((figure) => beside(name, figure)),
        ),
        {
          metric: 'replicas that go to a pod of the complementary pattern, % of 200 cases',
          value: withPriority,
          without,
          threshold: 95,
          better: 'higher',
        },
      ],
      xLabel: 'seed',
      yLabel: 'replicas moved, %',
      before: {
        title: 'migration alone',
        lines: [{ label: 'moved', points: moved('xstor-moves').map((value, i) => [i + 1, value]) }],
      },
      after: {
        title: 'after role switching',
        lines: [{ label: 'moved', points: moved('xstor').map((value, i) => [i + 1, value]) }],
      },
    };
  },
};
