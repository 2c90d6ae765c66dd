import { tenantCapDefaults } from './baselines/cpu-places.ts';
import { WorkKind } from '../../storage-node/admission/work-kind.ts';
import { mean, percentile } from '../support/statistics.ts';
import type { Experiment, Line } from './experiment.ts';
import { runQueuedPod, type SourceRun } from './workloads/queued-pod.ts';

const slots = 32;
const serviceMs = 4;

/** The first tenant floods from then on, ms. */
const floodFrom = 4000;

function run(capped: boolean, flooded: boolean, seconds: number, seed: number): SourceRun[] {
  const rate = slots / serviceMs;
  const make = () => ({ kind: WorkKind.smallRead, cost: 1, cpuMs: serviceMs });
  return runQueuedPod({
    slots,
    queues: { tenantCap: capped && tenantCapDefaults, limits: false },
    seconds,
    warmMs: flooded ? floodFrom + 1000 : 1000,
    seed,
    sources: [
      {
        tenant: 1,
        quota: 95,
        load: (now) => rate * (flooded && now > floodFrom ? 1.5 : 0.3),
        make,
      },
      { tenant: 2, quota: 5, load: () => rate * 0.01, make },
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

export const tenantCap: Experiment = {
  id: 'AB-4.3-r3',
  title: 'No tenant holds more than 90 % of the slots',
  kind: 'SIM',
  source: 'ABase, section 4.3, rule 3',
  setup:
    'A pod with 32 slots. Tenant 1 has 95 % of the quotas and sends half as much again as the pod can do; tenant 2 has 5 % and sends ' +
    '1 %. Calm is tenant 1 at 30 %. Fair order by quotas, with and without the cap.',
  run({ seeds, quick }) {
    const seconds = quick ? 12 : 30;
    const all = (capped: boolean, flooded: boolean) =>
      seeds.map((seed) => run(capped, flooded, seconds, seed));
    const [calm, before, after] = [all(true, false), all(false, true), all(true, true)];
    const p99 = (runs: readonly SourceRun[][]): number =>
      mean(runs.map(([, two]) => percentile(two!.latencies, 0.99)));
    const most = mean(
      after.map(([one]) => (100 * one!.slotMs) / (slots * (seconds * 1000 - floodFrom - 1000))),
    );
    return {
      measures: [
        {
          metric: 'p99 of the other tenant, of that when calm',
          value: p99(after) / p99(calm),
          threshold: 1.5,
          better: 'lower',
          without: p99(before) / p99(calm),
        },
        {
          metric: 'time in slots of the flooding tenant, %',
          value: most,
          threshold: 90,
          better: 'lower',
          without: mean(
            before.map(
              ([one]) => (100 * one!.slotMs) / (slots * (seconds * 1000 - floodFrom - 1000)),
            ),
          ),
          paper: 'at most 90 %',
        },
      ],
      xLabel: 'second',
      yLabel: 'p99 of tenant 2, ms',
      before: {
        title: 'fair order alone',
        lines: [line('calm', calm[0]![1]!), line('flooded', before[0]![1]!)],
      },
      after: {
        title: 'at most 90 % of slots',
        lines: [line('calm', calm[0]![1]!), line('flooded', after[0]![1]!)],
      },
    };
  },
};
