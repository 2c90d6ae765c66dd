import { WorkKind } from '../../storage-node/admission/work-kind.ts';
import { mean, percentile } from '../support/statistics.ts';
import type { Experiment, Line } from './experiment.ts';
import { runQueuedPod, type SourceRun } from './workloads/queued-pod.ts';

const slots = 16;
const serviceMs = 1;
/** Background work is done in slices of this length. */
const sliceMs = 2;
const warmMs = 1000;

type Background = 'none' | 'low' | 'alike';

function run(background: Background, load: number, seconds: number, seed: number): SourceRun[] {
  return runQueuedPod({
    slots,
    queues: {
      limits: false,
      tenantCap: false,
      // In one line with clients' work, and as urgent.
      ...(background === 'alike' && { kinds: false, background: false, order: 'fifo' }),
    },
    seconds,
    warmMs,
    seed,
    sources: [
      {
        tenant: 1,
        quota: 1,
        load: () => (load * slots) / serviceMs,
        make: () => ({ kind: WorkKind.smallRead, cost: 1, cpuMs: serviceMs }),
      },
      ...(background === 'none'
        ? []
        : [
            {
              tenant: 2,
              quota: 1,
              load: { backlog: 64 },
              make: () => ({ kind: WorkKind.background, cost: 1, cpuMs: sliceMs }),
            },
          ]),
    ],
  });
}

function line(label: string, { bySecond }: SourceRun): Line {
  return {
    label,
    points: bySecond.flatMap((all, second): [number, number][] =>
      all.length === 0 ? [] : [[second, percentile(all, 0.99)]],
    ),
  };
}

export const backgroundLayer: Experiment = {
  id: 'CR-layers',
  title: "The pod's own work in the same queues, at low priority",
  kind: 'SIM',
  source: "J. Vanlightly's analysis of serverless CockroachDB, part 2, admission control",
  setup:
    'A pod with sixteen slots, 60 % of them busy with reads, and as much background work as it will take, in slices of 2 ms; ' +
    'then with half as many reads again as it can do. Without the mechanism background work waits in one line with reads.',
  run({ seeds, quick }) {
    const seconds = quick ? 6 : 20;
    const all = (background: Background, load: number) =>
      seeds.map((seed) => run(background, load, seconds, seed));
    const [alone, after, before] = [all('none', 0.6), all('low', 0.6), all('alike', 0.6)];
    const overload = all('low', 1.5);
    const p99 = (runs: readonly SourceRun[][]): number =>
      mean(runs.map(([reads]) => percentile(reads!.latencies, 0.99)));
    const share = (runs: readonly SourceRun[][]): number =>
      mean(
        runs.map(([, background]) => {
          return (100 * background!.slotMs) / (slots * (seconds * 1000 - warmMs));
        }),
      );
    return {
      measures: [
        {
          metric: 'p99 of reads, of that without background work',
          value: p99(after) / p99(alone),
          threshold: 1.1,
          better: 'lower',
          without: p99(before) / p99(alone),
        },
        {
          metric: 'background work beside 60 % reads, % of slots',
          value: share(after),
          threshold: 5,
          better: 'higher',
          without: share(before),
        },
        {
          metric: 'background work beside 150 % reads, % of slots',
          value: share(overload),
          threshold: 5,
          better: 'higher',
        },
      ],
      xLabel: 'second',
      yLabel: 'p99 of reads, ms',
      before: {
        title: 'in one line',
        lines: [line('alone', alone[0]![0]!), line('with background', before[0]![0]!)],
      },
      after: {
        title: 'at low priority',
        lines: [line('alone', alone[0]![0]!), line('with background', after[0]![0]!)],
      },
    };
  },
};
