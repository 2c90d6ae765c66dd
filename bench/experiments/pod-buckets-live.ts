import { Neighbours, type Rates, type Sample } from '../../cli/demo/neighbours.ts';
import { joined, percentile } from '../../cli/demo/percentiles.ts';
import { bystander, flooder } from '../../cli/demo/workloads.ts';
import type { Experiment } from './experiment.ts';
import { expensiveWrites } from './live/flood-workloads.ts';
import { pinned } from './live/machine.ts';
import { failureIn, lineOf, p99Of, silentOf, totalOf } from './live/samples.ts';

/**
 * Load of tenant 2 as a fraction of the pod's capacity: for most of a minute, and for three seconds
 * of it.
 */
const usual = 0.42;
const peak = 0.52;
const [rampFrom, rampTo] = [0.2, 1.2];

/** The CPU scheduler is fair in both. */
const settings = {
  off: { 'admission.mode': 'off' },
  on: { 'admission.mode': 'enforce' },
} as const;

export const podBucketsLive: Experiment = {
  id: 'XS-5.2-buckets-live',
  title: 'Buckets of tenants and of the pod, in a server',
  kind: 'LIVE',
  source: 'X-Stor, section 5.2 and Figure 13a',
  setup:
    'Two tenants write hashes of 64 fields over Redis, and each is guaranteed half of what the plane can do; beyond that ' +
    'it may have what is left (`admission.allocation` is `stacked`). Tenant 1 ramps up from 0.2 to 1.2 of what the plane ' +
    'can do, tenant 2 is steady at 0.42 with three seconds of each minute at 0.52. The p99 is over all requests of the ' +
    'later half, in which both want more than there is. Without the mechanism `admission.mode` is `off`; the CPU scheduler ' +
    'is fair in both. Five minutes without and five with; the quick form has the whole ramp in six seconds.',
  async run({ quick, progress }) {
    progress('starting a server');
    const neighbours = await Neighbours.start({
      prepare: expensiveWrites,
      pin: pinned(),
      flags: ['--admission.allocation', 'stacked'],
    });
    try {
      const { server } = neighbours;
      await neighbours.warmUp(quick ? 0.5 : 3);
      progress('what the server can do');
      await server.set({ 'admission.mode': 'off' });
      const capacity = await neighbours.capacity(quick ? 0.6 : 3);
      const podRate = Math.round(capacity.ru);
      const most = capacity.requests;
      await server.set({ 'redis.ru-per-second': podRate });
      for (const name of [flooder, bystander]) await server.setQuota(name, podRate / 2);
      const seconds = quick ? 6 : 300;
      const run = async (
        mode: keyof typeof settings,
        rates: (second: number) => Rates,
        samples: number,
      ): Promise<Sample[]> => {
        await server.set(settings[mode]);
        const all: Sample[] = [];
        // An overloaded server takes a second for each answer to a status query.
        const options = { rates, samples, settle: quick ? 0.5 : 2, asks: false };
        for await (const sample of neighbours.phase(options)) all.push(sample);
        return all;
      };
      const steadyAt = (second: number): number => most * (second % 60 >= 57 ? peak : usual);
      const ramp = (second: number): Rates => ({
        flood: most * (rampFrom + ((rampTo - rampFrom) * second) / (seconds - 1)),
        steady: steadyAt(second),
      });
      progress('without buckets');
      const before = await run('off', ramp, seconds);
      progress('with buckets');
      const after = await run('on', ramp, seconds);
      progress('tenant 2 alone');
      const aloneRates = (second: number): Rates => ({ flood: 0, steady: steadyAt(second) });
      const alone = await run('on', aloneRates, quick ? 2 : 60);
      progress('a half idle pod');
      const halfIdle = await run(
        'on',
        () => ({ flood: most * rampTo, steady: most * 0.02 }),
        quick ? 2 : 30,
      );
      const late = (samples: readonly Sample[]): Sample[] => samples.slice(samples.length >> 1);
      const p99 = (samples: readonly Sample[]): number =>
        percentile(joined(samples.map(({ latencies }) => latencies)), 0.99);
      const served = (samples: readonly Sample[]): number =>
        totalOf(samples, (sample) => (sample.served + sample.rate) * sample.seconds);
      const rejects = (samples: readonly Sample[]): number =>
        (100 * totalOf(samples, ({ notServed }) => notServed)) /
        totalOf(samples, ({ latencies }) => latencies.length);
      return {
        measures: [
          {
            metric: 'p99 of tenant 2, of that without buckets',
            value: p99(late(after)) / p99(late(before)),
            threshold: 0.2,
            better: 'lower',
            paper: 'much lower (Fig. 13a)',
          },
          {
            metric: 'p99 of tenant 2, of that of running alone',
            value: p99(late(after)) / p99(alone),
            threshold: 1.2,
            better: 'lower',
            // Where most seconds had no answer at all there is no figure for it.
            ...(Number.isFinite(p99(late(before))) && {
              without: p99(late(before)) / p99(alone),
            }),
          },
          {
            metric: 'served in all, of that without buckets, %',
            value: (100 * served(after)) / served(before),
            threshold: 99.9,
            better: 'higher',
            paper: 'less than 0.1 % lost',
          },
          {
            metric: 'requests of tenant 2 refused or failed, %',
            value: rejects(after),
            threshold: 0.1,
            better: 'lower',
            without: rejects(before),
          },
          {
            metric:
              'what a half idle pod does for the other tenant and its own, of what it can do, %',
            value: (100 * served(halfIdle)) / totalOf(halfIdle, ({ seconds: s }) => s) / most,
            threshold: 95,
            better: 'higher',
          },
        ],
        xLabel: 'second',
        yLabel: 'p99 of tenant 2, ms',
        before: { title: 'no buckets', lines: [lineOf('tenant 2', before, p99Of)] },
        after: { title: 'buckets', lines: [lineOf('tenant 2', after, p99Of)] },
        explanation: explained(before, after, alone),
      };
    } finally {
      await neighbours.stop();
    }
  },
};

function explained(
  before: readonly Sample[],
  after: readonly Sample[],
  alone: readonly Sample[],
): string {
  const p50 = (samples: readonly Sample[]): string =>
    percentile(samples.at(-1)!.latencies, 0.5).toFixed(2);
  return (
    failureIn(after) ??
    `Without buckets tenant 2 had no answer in ${silentOf(before)} of ${before.length} seconds. Half of tenant 2's requests are answered within ${p50(alone)} ms alone and ${p50(after)} ms beside tenant 1 at its ` +
      'most. A request that arrives while a batch of the other tenant runs waits for its end. The capacity that the plane is ' +
      'told is an average over requests.'
  );
}
