import { ProxyQuota, ProxyRecall } from './baselines/proxy-quota.ts';
import { mean, percentile } from '../support/statistics.ts';
import type { Experiment } from './experiment.ts';
import { type NodeTenantRun, runNode, servedLines, sumOf } from './workloads/node.ts';

const nodeRate = 6000;
const proxies = 4;
const quota = 2000;
const burstFrom = 10;

function run(withProxy: boolean, seconds: number, seed: number): NodeTenantRun[] {
  const gates = Array.from({ length: proxies }, () => new ProxyQuota(quota / proxies, 0));
  const recall = new ProxyRecall(quota);
  let next = 0;
  return runNode({
    rate: nodeRate,
    slots: 32,
    refusalCost: 0.2,
    queueLength: 2000,
    queueOf: 'all',
    order: 'fair',
    seconds,
    seed,
    tenants: [
      {
        load: (now) => (now < burstFrom * 1000 ? 1500 : 60_000),
        weight: 1,
        ...(withProxy && { proxy: (now: number) => gates[next++ % proxies]!.admit(1, now) }),
      },
      { load: () => 1500, weight: 1 },
    ],
    everySecond: (now) => {
      let total = 0;
      for (const gate of gates) {
        const { admitted, refused } = gate.report();
        total += admitted + refused;
      }
      const recalled = recall.decide(total);
      for (const gate of gates) gate.setRecalled(recalled, now);
    },
  });
}

export const proxyQuota: Experiment = {
  id: 'AB-4.2-proxy',
  title: 'Proxies hold a tenant to its quota, under control from afar',
  kind: 'SIM',
  source: 'ABase, section 4.2 and Figure 6',
  setup:
    'A node of 6,000 requests a second to which refusing one is a fifth of the work of serving it. Tenant 1, with a ' +
    'quota of 2,000 over four proxies, goes from 1,500 to 60,000; tenant 2 stays at 1,500. Off, what is beyond the ' +
    "node's queue is refused by the node.",
  run({ seeds, quick }) {
    const seconds = quick ? 20 : 40;
    const before = seeds.map((seed) => run(false, seconds, seed));
    const after = seeds.map((seed) => run(true, seconds, seed));
    // Five seconds to settle.
    const from = burstFrom + 5;
    const share = (runs: readonly NodeTenantRun[][]): number =>
      mean(
        runs.map(([, two]) => {
          const [served, offered] = [sumOf(two!.served, from), sumOf(two!.offered, from)];
          return (100 * served) / offered;
        }),
      );
    const p99 = ([, two]: NodeTenantRun[], a: number, b: number): number =>
      percentile(two!.latencies.slice(a, b).flat(), 0.99);
    const slower = mean(after.map((one) => p99(one, from, seconds) / p99(one, 2, burstFrom)));
    return {
      measures: [
        {
          metric: 'tenant 2 served during the burst, off, %',
          value: share(before),
          threshold: 10,
          better: 'lower',
          paper: 'nearly zero (Fig. 6)',
        },
        {
          metric: 'tenant 2 served during the burst, %',
          value: share(after),
          threshold: 99,
          better: 'higher',
          without: share(before),
          paper: 'as before the burst',
        },
        {
          metric: 'p99 of tenant 2, of that before the burst',
          value: slower,
          threshold: 1.2,
          better: 'lower',
        },
      ],
      xLabel: 'second',
      yLabel: 'served/s',
      before: { title: 'proxies off', lines: servedLines(before[0]!) },
      after: { title: 'proxies on', lines: servedLines(after[0]!) },
    };
  },
};
