import { kindOf, WorkKind } from '../../storage-node/admission/work-kind.ts';
import { mean, percentile } from '../support/statistics.ts';
import type { Experiment, Line } from './experiment.ts';
import type { Chance } from './sim/chance.ts';
import { runQueuedPod, type Shape, type SourceRun } from './workloads/queued-pod.ts';

/** All requests, a millisecond. */
const rate = 2.6;
const largeShare = 0.05;
const smallBytes = 1024;
const largeBytes = 1024 * 1024;
const bytesAnOperation = 16 * 1024;
const operationMs = 0.1;
const hitRatio = 0.5;
const floodSeconds = 3;

function request(bytes: number, cached: boolean): Shape {
  return {
    kind: kindOf(false, bytes),
    cost: bytes / 1024,
    // A twentieth of a millisecond, and what it takes to check and copy it.
    cpuMs: 0.05 + bytes / 7e5,
    operations: cached ? 0 : Math.ceil(bytes / bytesAnOperation),
  };
}

interface Options {
  classes: boolean;
  withLarge: boolean;
  /** Times as many misses as the disk can read. */
  missFlood?: number;
}

function run({ classes, withLarge, missFlood = 0 }: Options, seconds: number, seed: number) {
  const small = (chance: Chance): Shape => request(smallBytes, chance.happens(hitRatio));
  return runQueuedPod({
    slots: 4,
    operationMs,
    singleLayer: !classes,
    queues: { kinds: classes && { shares: [4, 4, 1, 1], largeAlone: 0.75, quietMs: 100 } },
    seconds,
    seed,
    sources: [
      { tenant: 1, quota: 1, load: () => rate * (1 - largeShare), make: small },
      ...(withLarge
        ? [
            {
              tenant: 2,
              quota: 1,
              load: () => rate * largeShare,
              make: () => request(largeBytes, false),
            },
          ]
        : []),
      ...(missFlood > 0
        ? [
            {
              tenant: 3,
              quota: 1,
              load: () => (missFlood * 4) / operationMs,
              make: () => ({ kind: WorkKind.smallRead, cost: 1, cpuMs: 0.01, operations: 1 }),
            },
          ]
        : []),
    ],
  });
}

function bySecond(label: string, { bySecond }: SourceRun): Line {
  return {
    label,
    points: bySecond.flatMap((all, second): [number, number][] =>
      all.length === 0 ? [] : [[second, percentile(all, 0.99)]],
    ),
  };
}

export const queueClasses: Experiment = {
  id: 'AB-4.3-classes',
  title: 'Small and large, reads and writes, each in lines of their own',
  kind: 'SIM',
  source: 'ABase, section 4.3 and Figure 2',
  setup:
    'Reads of 1 kB, half of which the cache has, and 5 % of 1 MB, on a pod with four slots and four workers that read ' +
    '16 kB at a time. Without the mechanism all wait in one line for one of four threads, which does all of a request.',
  run({ seeds, quick, progress }) {
    const seconds = quick ? 8 : 30;
    const all = (what: string, options: Options): SourceRun[][] =>
      seeds.map((seed) => {
        progress(`${what}, seed ${seed}`);
        return run(options, seconds, seed);
      });
    const p99 = (runs: readonly SourceRun[][], of = 0): number =>
      mean(runs.map((one) => percentile(one[of]!.latencies, 0.99)));
    const smallOnly = all('small only', { classes: true, withLarge: false });
    const mixed = all('mixed', { classes: true, withLarge: true });
    const onlyBefore = all('one line, small only', { classes: false, withLarge: false });
    const before = all('one line', { classes: false, withLarge: true });
    // Twice as many misses as the disk can read: they wait ever longer, hits do not.
    const flood = seeds.map((seed) =>
      run({ classes: true, withLarge: false, missFlood: 2 }, floodSeconds, seed),
    );
    const latestHit = (runs: readonly SourceRun[][]): number =>
      Math.max(...runs.map(([small]) => small!.hits.reduce((a, b) => Math.max(a, b), 0)));
    return {
      measures: [
        {
          metric: 'p99 of small reads, of that without large ones',
          value: p99(mixed) / p99(smallOnly),
          threshold: 1.3,
          better: 'lower',
          without: p99(before) / p99(onlyBefore),
        },
        {
          metric: 'one line: p99 of small reads, of that without large ones',
          value: p99(before) / p99(onlyBefore),
          threshold: 5,
          better: 'higher',
        },
        {
          metric:
            'longest answer to a hit with the disk at twice its rate, less that with it idle, reads of the disk',
          value: Math.max(0, latestHit(flood) - latestHit(smallOnly)) / operationMs,
          threshold: 1,
          better: 'lower',
        },
        {
          metric: 'large reads served, of those that came, %',
          value: mean(
            mixed.map(([, large]) => (100 * large!.served) / (rate * largeShare * 1000 * seconds)),
          ),
          threshold: 95,
          better: 'higher',
        },
      ],
      xLabel: 'second',
      yLabel: 'p99 of small reads, ms',
      before: {
        title: 'one line, four threads',
        lines: [bySecond('small only', onlyBefore[0]![0]!), bySecond('5 % large', before[0]![0]!)],
      },
      after: {
        title: 'lines by kind, processor then disk',
        lines: [bySecond('small only', smallOnly[0]![0]!), bySecond('5 % large', mixed[0]![0]!)],
      },
    };
  },
};
