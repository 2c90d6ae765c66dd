import { PartitionCeilings } from '../../storage-node/admission/partition/partition-ceilings.ts';
import { mean, percentile } from '../support/statistics.ts';
import type { Experiment } from './experiment.ts';
import { type NodeTenantRun, runNode, servedLines, sumOf } from './workloads/node.ts';

const nodeRate = 6000;
const part = 1000;
const burstFrom = 10;
/** Partitions of tenant 1's table, of which one is hot, and times its part of the quota that a partition may take, as in the server. */
const partitions = 4;
const factor = 3;
/** Cost of a refusal relative to a read of 1 kB, as measured on the server (AWS-shed in docs/experiments.md). */
const refusalCost = 0.49;
/** Refusals a second: the server reads no more of a flood than takes a tenth of its time (20,000 commands a second). */
const refusalPace = (0.1 * nodeRate) / refusalCost;

function run(withQuota: boolean, seconds: number, seed: number): NodeTenantRun[] {
  const ceilings = new PartitionCeilings(0);
  ceilings.setRules({ cap: 'always', factor, podRate: nodeRate }, 0);
  ceilings.setQuotas([{ tenant: 1, ruPerSecond: part * partitions, burstRu: 0 }], 0);
  ceilings.setTables([{ table: 1, tenant: 1, partitions }], 0);
  const visit = ceilings.request();
  const mayEnter = (now: number): boolean => {
    visit.begin();
    visit.touch(1, 0, now);
    if (visit.waitMs(now) > 0) return false;
    visit.charge(1, now);
    return true;
  };
  return runNode({
    rate: nodeRate,
    slots: 48,
    refusalCost,
    refusalPace,
    queueLength: 1000,
    queueOf: 'each',
    order: 'fair',
    seconds,
    seed,
    tenants: [
      {
        load: (now) => (now < burstFrom * 1000 ? 1000 : 20_000),
        weight: 1,
        ...(withQuota && { entry: mayEnter }),
      },
      { load: () => 2500, weight: 1 },
    ],
  });
}

export const partitionQuota: Experiment = {
  id: 'AB-4.2-partition',
  title: 'A ceiling for one partition, at three times its share',
  kind: 'SIM',
  source: 'ABase, section 4.2 and Figure 7',
  setup:
    'A node of 6,000 requests a second with a partition of each of two tenants, whose parts are 1,000. Tenant 1 goes from ' +
    '1,000 to 20,000 on that one partition, which its proxies let pass; tenant 2 stays at 2,500. The ceilings are ' +
    'those of the server with its defaults; a refusal costs the node 0.49 of a request, as measured, and refusals take at ' +
    'most a tenth of its time, as in the server: what is beyond stays with the client. Admitted requests are served ' +
    'in fair order.',
  run({ seeds, quick }) {
    const seconds = quick ? 20 : 40;
    const before = seeds.map((seed) => run(false, seconds, seed));
    const after = seeds.map((seed) => run(true, seconds, seed));
    const from = burstFrom;
    const p99 = (runs: readonly NodeTenantRun[][], tenant: number): number =>
      mean(
        runs.map((one) => {
          const { latencies } = one[tenant]!;
          const quiet = percentile(latencies.slice(0, burstFrom).flat(), 0.99);
          return percentile(latencies.slice(from).flat(), 0.99) / quiet;
        }),
      );
    const lost = (runs: readonly NodeTenantRun[][]): number =>
      mean(
        runs.map(([, two]) => 100 - (100 * sumOf(two!.served, from)) / sumOf(two!.offered, from)),
      );
    const servedOne = mean(after.map(([one]) => sumOf(one!.served, from) / (seconds - from)));
    return {
      measures: [
        {
          metric: 'off: requests of tenant 2 not served, %',
          value: lost(before),
          threshold: 25,
          better: 'lower',
          paper: '25 %',
        },
        {
          metric: 'off: p99 of tenant 2, of that when calm',
          value: p99(before, 1),
          threshold: 1.2,
          better: 'lower',
          paper: 'unchanged',
        },
        {
          metric: 'off: p99 of tenant 1, of that when calm',
          value: p99(before, 0),
          threshold: 20,
          better: 'higher',
          paper: 'x20',
        },
        {
          metric: 'tenant 1 served, off 3,000/s, %',
          value: Math.abs(servedOne / 3000 - 1) * 100,
          threshold: 2,
          better: 'lower',
          paper: '3,000 QPS',
        },
        {
          metric: 'tenant 2 served, %',
          value: 100 - lost(after),
          threshold: 99,
          better: 'higher',
          without: 100 - lost(before),
        },
        {
          metric: 'p99 of tenant 1, of that when calm',
          value: p99(after, 0),
          threshold: 1.5,
          better: 'lower',
          without: p99(before, 0),
        },
        {
          metric: 'p99 of tenant 2, of that when calm',
          value: p99(after, 1),
          threshold: 1.5,
          better: 'lower',
          without: p99(before, 1),
        },
      ],
      explanation:
        "The server admits a second's worth of the ceiling at once, which then waits in tenant 1's queue; and fair order " +
        'protects tenant 2 without a ceiling as well, as an operator sees by comparing the two columns.',
      xLabel: 'second',
      yLabel: 'served/s',
      before: { title: 'no ceiling', lines: servedLines(before[0]!) },
      after: { title: 'three times its part', lines: servedLines(after[0]!) },
    };
  },
};
