import { mean, percentile } from '../support/statistics.ts';
import type { Experiment } from './experiment.ts';
import {
  podRate,
  runNoisy,
  serviceMs,
  type NoisyOptions,
  type NoisyRun,
} from './workloads/noisy-tenant.ts';

const off = { buckets: false, order: 'fifo' } as const;
const withFifo = { buckets: true, order: 'fifo' } as const;
const withFair = { buckets: true, order: 'fair' } as const;
/** Depth of the pod's bucket, in milliseconds of its rate. */
const bucketDepthMs = 200;

export const podBuckets: Experiment = {
  id: 'XS-5.2-buckets',
  title: 'Buckets of tenants and of the pod',
  kind: 'SIM',
  source: 'X-Stor, section 5.2 and Figure 13a',
  setup:
    `A pod of ${podRate} LRU/s with eight requests at work. Tenant 1 ramps up from 0.2 to 1.2 of what the pod can do, ` +
    'tenant 2 is steady at 0.42 with three seconds of each minute at 0.52; each is guaranteed half. Without buckets ' +
    'all requests wait in one queue.',
  run({ seeds, quick, progress }) {
    const seconds = quick ? 180 : 600;
    const all = (what: Pick<NoisyOptions, 'buckets' | 'order'>, more: Partial<NoisyOptions> = {}) =>
      seeds.map((seed) => {
        progress(`${what.buckets ? 'buckets' : 'no buckets'}, ${what.order}, seed ${seed}`);
        return runNoisy({ seconds, seed, ...what, ...more });
      });
    const [before, fifo, fair] = [all(off), all(withFifo), all(withFair)];
    const alone = all(off, { alone: true });
    const halfIdle = all(withFair, { firstLoad: 1.2, secondLoad: 0.02 });
    const p99 = (runs: readonly NoisyRun[]): number =>
      mean(runs.map(({ latencies }) => percentile(latencies, 0.99)));
    const served = (runs: readonly NoisyRun[]): number => mean(runs.map((run) => run.served));
    const utilization = halfIdle.map((run) => (100 * run.served) / run.capacity);
    return {
      measures: [
        {
          metric: 'p99 of tenant 2, of that without buckets',
          value: p99(fair) / p99(before),
          threshold: 0.2,
          better: 'lower',
          paper: 'much lower (Fig. 13a)',
        },
        {
          metric: 'p99 of tenant 2, of that of running alone (fair order)',
          value: p99(fair) / p99(alone),
          threshold: 1.2,
          better: 'lower',
          without: p99(before) / p99(alone),
        },
        {
          metric: 'p99 of the wait of tenant 2 in arrival order, ms',
          value: p99(fifo) - serviceMs,
          threshold: bucketDepthMs + 50,
          better: 'lower',
          without: p99(before) - serviceMs,
        },
        {
          metric: 'served in all, of that without buckets',
          value: served(fair) / served(before),
          threshold: 0.999,
          better: 'higher',
          paper: 'falls by less than 0.1 %',
        },
        {
          metric: 'requests of tenant 2 refused, %',
          value: mean(fair.map(({ refused, offered }) => (100 * refused) / offered)),
          threshold: 0.1,
          better: 'lower',
        },
        {
          metric: 'use of a pod whose other tenant is all but idle, %',
          value: mean(utilization),
          threshold: 95,
          better: 'higher',
        },
      ],
      explanation:
        'In three seconds of each minute, 5 % of the time, tenant 2 asks for 0.52 of the pod and is guaranteed 0.5: 30 ' +
        'requests beyond its part, which take 120 ms at 250 a second, 7.5 times the 16 ms of running alone. While it stays ' +
        'at 0.42 its p99 is 20.5 ms, 1.28 times: it waits for one of eight slots, and for one request of tenant 1. A fair ' +
        'queue with credit for an unused part would serve the 30 requests at once; that of the server gives none, as a ' +
        'tenant that floods it is idle whenever it waits for its quota, and would have such credit, too.',
      xLabel: 'second',
      yLabel: 'mean latency, ms',
      before: { title: 'one line for all', lines: [before[0]!.bySecond] },
      after: { title: 'buckets, fair order', lines: [fair[0]!.bySecond] },
    };
  },
};
