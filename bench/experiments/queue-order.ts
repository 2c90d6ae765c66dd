import { TokenBucket } from '../../request-units/token-bucket.ts';
import { WorkKind } from '../../storage-node/admission/work-kind.ts';
import { mean, percentile } from '../support/statistics.ts';
import type { Experiment, Line } from './experiment.ts';
import { runQueuedPod, type SourceRun } from './workloads/queued-pod.ts';

const slots = 8;
const serviceMs = 1;
const writeBytes = 1000;
/** Writes a millisecond that the store can take. */
const storeRate = 1;

function run(
  firstQueue: 'store' | 'cpu',
  offered: number,
  seconds: number,
  seed: number,
): SourceRun[] {
  const tokens = new TokenBucket(storeRate * writeBytes * 1000, storeRate * writeBytes * 10, 0);
  return runQueuedPod({
    slots,
    queues: { firstQueue, limits: false, tenantCap: false },
    gate: { admit: (bytes, now) => tokens.take(bytes, now) },
    seconds,
    seed,
    sources: [
      {
        tenant: 1,
        quota: 1,
        load: () => 0.3 * (slots / serviceMs),
        make: () => ({ kind: WorkKind.smallRead, cost: 1, cpuMs: serviceMs }),
      },
      {
        tenant: 2,
        quota: 1,
        load: () => offered * storeRate,
        make: () => ({
          kind: WorkKind.smallWrite,
          cost: 1,
          cpuMs: serviceMs,
          bytes: writeBytes,
        }),
      },
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

export const queueOrder: Experiment = {
  id: 'CR-order',
  title: 'Writes wait for the store first, and for a slot then',
  kind: 'SIM',
  source: "J. Vanlightly's analysis of serverless CockroachDB, part 2, admission control",
  setup:
    'A pod with eight slots, reads for 30 % of them, and a store that takes 1,000 writes a second, of which half as many ' +
    'come when calm and twice as many when it is saturated. In the order turned round a write takes a slot first, and ' +
    'keeps it while it waits for the store.',
  run({ seeds, quick }) {
    const seconds = quick ? 10 : 30;
    const all = (order: 'store' | 'cpu', offered: number) =>
      seeds.map((seed) => run(order, offered, seconds, seed));
    const [calm, after] = [all('store', 0.5), all('store', 2)];
    const [calmBefore, before] = [all('cpu', 0.5), all('cpu', 2)];
    const p99 = (runs: readonly SourceRun[][]): number =>
      mean(runs.map(([reads]) => percentile(reads!.latencies, 0.99)));
    return {
      measures: [
        {
          metric: 'p99 of reads with the store saturated, of that when calm',
          value: p99(after) / p99(calm),
          threshold: 1.1,
          better: 'lower',
          without: p99(before) / p99(calmBefore),
        },
        {
          metric: 'slot first: p99 of reads with the store saturated, of that when calm',
          value: p99(before) / p99(calmBefore),
          threshold: 5,
          better: 'higher',
        },
        {
          metric: 'writes served, of what the store takes, %',
          value: mean(after.map(([, writes]) => (100 * writes!.served) / (1000 * seconds))),
          threshold: 99,
          better: 'higher',
        },
      ],
      xLabel: 'second',
      yLabel: 'p99 of reads, ms',
      before: {
        title: 'slot, then store',
        lines: [line('calm', calmBefore[0]![0]!), line('saturated', before[0]![0]!)],
      },
      after: {
        title: 'store, then slot',
        lines: [line('calm', calm[0]![0]!), line('saturated', after[0]![0]!)],
      },
    };
  },
};
