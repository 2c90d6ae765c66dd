import { doNothing, peakMover, randomMoves } from '../../control/scheduler/baselines.ts';
import {
  contestedLoad,
  habitualBorrowers,
  moveHabitualBorrowers,
} from '../../control/scheduler/habitual-borrowers.ts';
import type { Policy } from '../../control/scheduler/proposal.ts';
import { borrowingPods } from '../../control/scheduler/simulation/workloads/borrowing-pods.ts';
import { carriedOut } from '../../control/scheduler/working-cluster.ts';
import { mean, percentile } from '../support/statistics.ts';
import type { Experiment, Measure } from './experiment.ts';
import { overSeeds } from './over-seeds.ts';
import { Chance } from './sim/chance.ts';
import { type ReclaimRun, runReclaim, type Sharing } from './workloads/reclaimed-share.ts';

const sharings: Record<Sharing, string> = {
  borrowing: 'buckets and fair order',
  none: 'no buckets, in arrival order',
  chance: 'buckets, in random order',
  hard: 'buckets that lend nothing',
};

interface Moved {
  /** Habitual borrowers that the plan moves, and other replicas that it moves. */
  habitual: number;
  others: number;
  /** Borrowed load that owners may claim, % of that before. */
  contested: number;
  /** Habitual borrowers on load that owners may claim, after the cycle. */
  left: number;
  /** Highest use of a pod that took a replica, % of its capacity; 0 without one. */
  highest: number;
}

/** One scheduling cycle: planned on one draw of the noise and judged on another. */
function cycle(policy: Policy, seed: number, pods: number): Moved {
  const { workload, habitual } = borrowingPods(seed, pods);
  const proposals = policy.plan(workload.model(1), { now: 0, rng: new Chance(seed) });
  const moved = new Set(
    proposals.flatMap(({ change }) => (change.kind === 'move-replica' ? [change.replica] : [])),
  );
  const judged = workload.model(2);
  const contested = (plan: typeof proposals): number => {
    const cluster = carriedOut(judged, plan);
    const borrowers = habitualBorrowers(cluster);
    return cluster.replicasOfPod.reduce(
      (sum, _, pod) => sum + contestedLoad(cluster, pod, borrowers),
      0,
    );
  };
  const after = carriedOut(judged, proposals);
  const borrowers = habitualBorrowers(after);
  const isContested = (pod: number): boolean => contestedLoad(after, pod, borrowers) > 0;
  const left = borrowers.filter(({ replica }) => isContested(after.podOf[replica]!)).length;
  let highest = 0;
  for (const pod of new Set([...moved].map((replica) => after.podOf[replica]!))) {
    const from = after.podSeries(pod, 0);
    for (let point = 0; point < after.points; point++) {
      highest = Math.max(highest, after.podLoad[from + point]! / judged.pods.limits[pod]!);
    }
  }
  const found = [...moved].filter((replica) => habitual.has(replica)).length;
  return {
    habitual: (100 * found) / Math.max(1, habitual.size),
    others: moved.size - found,
    contested: (100 * contested(proposals)) / Math.max(1, contested([])),
    left,
    highest: 100 * highest,
  };
}

export const borrowedCapacity: Experiment = {
  id: 'AWS-loop',
  title: 'Borrowed capacity comes back at once, and habitual borrowers are moved',
  kind: 'SIM',
  source:
    'Amazon, Fairness in multi-tenant systems, "Fairness as continuous bin packing"; no figure',
  setup:
    'A pod of 500 LRU/s with eight requests at work. Three tenants offer twice what it can do; a fourth is idle for two ' +
    'seconds, then demands its share of 10 to 50 % for a second, again and again. The delay of a demand is that of its latest ' +
    'request, beyond the service itself. Then one scheduling cycle over pods of ten replicas each, of which three quarters have ' +
    'promised all of their capacity: one replica in 30 there has used 1.5 to 3 times its share for one to nine hours, and ' +
    'another in 30 for 20 minutes. Planned on one draw of the noise and judged on another. Random moves and the peak mover ' +
    'move as many replicas.',
  run({ quick, seeds, progress }) {
    const demands = quick ? 40 : 200;
    const pods = quick ? 12 : 40;
    const reclaim = (sharing: Sharing): ReclaimRun[] =>
      seeds.map((seed) => {
        progress(`${sharing}, seed ${seed}`);
        return runReclaim(sharing, demands, seed);
      });
    const p99 = (runs: readonly ReclaimRun[]): number[] =>
      runs.map(({ delays }) => percentile(delays, 0.99));
    const use = (runs: readonly ReclaimRun[]): number[] => runs.map((run) => run.use);
    const ours = reclaim('borrowing');
    const none = reclaim('none');
    const [random, hard] = [reclaim('chance'), reclaim('hard')];
    const beside = (other: readonly ReclaimRun[], sharing: Sharing): Measure =>
      overSeeds(
        p99(ours),
        {
          metric: `the same, beside ${sharings[sharing]}`,
          threshold: mean(p99(other)),
          better: 'lower',
        },
        p99(other),
      );

    const borrower = moveHabitualBorrowers();
    const moves = (seed: number): number =>
      borrower.plan(borrowingPods(seed, pods).workload.model(1), { now: 0, rng: new Chance(seed) })
        .length;
    const cycles = (name: string, policy: (seed: number) => Policy): Moved[] =>
      seeds.map((seed) => {
        progress(`${name}, seed ${seed}`);
        return cycle(policy(seed), seed, pods);
      });
    const scheduled = cycles('habitual borrowers', () => borrower);
    const idle = cycles('nothing', () => doNothing);
    const of = (runs: readonly Moved[], figure: keyof Moved): number[] =>
      runs.map((run) => run[figure]);
    const contestedBeside = (name: string, policy: (seed: number) => Policy): Measure => {
      const runs = cycles(name, policy);
      return overSeeds(
        of(scheduled, 'contested'),
        {
          metric: `borrowed load that others may claim, % of that before, beside ${name}`,
          threshold: mean(of(runs, 'contested')),
          better: 'lower',
        },
        of(runs, 'contested'),
      );
    };
    const unlike = cycles('least similar load', () => moveHabitualBorrowers({ target: 'unlike' }));
    return {
      measures: [
        overSeeds(
          p99(ours),
          {
            metric: 'delay until an owner has its full share, p99, ms',
            threshold: 100,
            better: 'lower',
            paper: 'nearly instantaneous',
          },
          p99(none),
        ),
        beside(random, 'chance'),
        overSeeds(
          use(ours),
          {
            metric: `use of the pod, beside ${sharings.hard}, %`,
            threshold: mean(use(hard)),
            better: 'higher',
          },
          use(hard),
        ),
        overSeeds(
          of(scheduled, 'habitual'),
          {
            metric: 'habitual borrowers moved within one cycle, %',
            threshold: 100,
            better: 'higher',
          },
          of(idle, 'habitual'),
        ),
        overSeeds(
          of(scheduled, 'left'),
          {
            metric: 'habitual borrowers left on capacity that others may claim',
            threshold: 0,
            better: 'lower',
          },
          of(idle, 'left'),
        ),
        overSeeds(of(scheduled, 'others'), {
          metric: 'replicas moved that are no habitual borrowers',
          threshold: 0,
          better: 'lower',
        }),
        contestedBeside('nothing done', () => doNothing),
        contestedBeside('random moves', (seed) => randomMoves(moves(seed))),
        contestedBeside('the peak mover', (seed) => peakMover(moves(seed), 0)),
        overSeeds(
          of(scheduled, 'highest'),
          {
            metric:
              'highest use of a pod that takes a borrower, beside targets of the least similar load (eq. 10 of X-Stor), %',
            threshold: mean(of(unlike, 'highest')),
            better: 'lower',
          },
          of(unlike, 'highest'),
        ),
      ],
      explanation:
        'The target of most room is the default: it beats that of the least similar load, which the mechanism names.',
      xLabel: 'second',
      yLabel: 'served/s',
      before: { title: sharings.none, lines: [none[0]!.owner] },
      after: { title: sharings.borrowing, lines: [ours[0]!.owner] },
    };
  },
};
