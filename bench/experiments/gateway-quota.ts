import { GatewayShares } from '../../access/admission/shares/gateway-shares.ts';
import type { Experiment, Measure } from './experiment.ts';
import { Chance } from './sim/chance.ts';
import { gateways, meanSatisfied, serveThreeGateways } from './workloads/three-gateways.ts';

const equalSplit = { scheduler: false, burst: 0 };
const inThePaper = [99.7, 73.8, 62];

export const gatewayQuota: Experiment = {
  id: 'XS-5.2-quota',
  title: "Equal shares of a tenant's quota",
  kind: 'SIM',
  source: 'X-Stor, section 5.2 and Table 5, first row',
  setup:
    'Three gateways with an equal share each of 30,000 LRU/s, and traffic that is anything but equal: what is beyond ' +
    'a share is refused. The satisfied rates show that the workload of this and the next two experiments is like the ' +
    "paper's. And: shares come to the quota through 100,000 changes of gateways and quota.",
  run({ seeds, quick }) {
    const rates = meanSatisfied(equalSplit, seeds);
    const runs = seeds.map((seed) => serveThreeGateways(equalSplit, seed));
    const measures: Measure[] = gateways.map((gateway, i) => ({
      metric: `satisfied rate of ${gateway}: points off the paper's`,
      value: Math.abs(rates[i]! - inThePaper[i]!),
      threshold: 1,
      better: 'lower',
      paper: `${inThePaper[i]} %, ours ${rates[i]!.toFixed(1)} %`,
    }));
    measures.push(
      {
        metric: 'most admitted in a second beyond the quota, LRU',
        value: Math.max(...runs.map((run) => run.mostOverQuota)),
        threshold: 1e-6,
        better: 'lower',
      },
      {
        metric: 'most that the shares were off the quota, LRU',
        value: drift(quick ? 20_000 : 100_000),
        threshold: 1e-6,
        better: 'lower',
      },
    );
    const picture = { title: 'equal shares', lines: runs[0]!.byMinute };
    return {
      measures,
      xLabel: 'minute',
      yLabel: 'satisfied, %',
      before: { title: 'no quota', lines: everythingServed },
      after: picture,
      explanation:
        'The traffic is calibrated by these three rates alone (the busy minutes of G2 ask for 13,300 LRU/s), as the ' +
        'paper says no more of its own.',
    };
  },
};

const everythingServed = gateways.map((label) => ({
  label,
  points: [
    [1, 100],
    [15, 100],
  ] as const,
}));

/** The most that shares differ from the quota while gateways come and go and the quota changes. */
function drift(changes: number): number {
  const chance = new Chance(1);
  const shares = new GatewayShares(30_000, ['0']);
  let most = 0;
  for (let n = 0; n < changes; n++) {
    const gateway = String(chance.below(20));
    if (chance.happens(0.4)) shares.join(gateway);
    else if (chance.happens(0.5) && shares.count > 1) shares.leave(gateway);
    else shares.setQuota(chance.uniform(1, 1e6));
    let sum = 0;
    for (const one of shares.gateways()) sum += shares.of(one);
    if (shares.count > 0) most = Math.max(most, Math.abs(sum - shares.quota));
  }
  return most;
}
