import {
  defaultPoolRules,
  mostQuota,
  type PoolRules,
  type PoolUse,
  refusalOf,
} from '../../control/autoscaler/scaling/pool-rules.ts';
import type { Experiment, Line } from './experiment.ts';
import { overSeeds } from './over-seeds.ts';
import { Chance } from './sim/chance.ts';

const nodes = 50;
const capacityOfNode = 1000;
/** Requests that a node serves at a time. */
const workers = 16;

interface Admitted {
  quotas: Map<string, number>;
  /** Use of each quota in its highest hour. */
  loads: Map<string, number>;
  refused: number;
}

/** Tenants come one by one, with quotas of lognormal size and use of 50 to 85 %, until 200 were admitted or refused. */
function admitAll(chance: Chance, rules: PoolRules | undefined): Admitted {
  const made: Admitted = { quotas: new Map(), loads: new Map(), refused: 0 };
  for (let number = 0; number < 200; number++) {
    const tenant = `t${number}`;
    const quota = chance.lognormal(Math.log(400), 1.2);
    const load = quota * chance.uniform(0.5, 0.85);
    const pool = poolOf(made);
    if (rules !== undefined && refusalOf(pool, tenant, quota, load, rules) !== undefined) {
      made.refused++;
      continue;
    }
    made.quotas.set(tenant, quota);
    made.loads.set(tenant, load);
  }
  return made;
}

function poolOf({ quotas, loads }: Admitted): PoolUse {
  let sum = 0;
  for (const load of loads.values()) sum += load;
  return {
    nodeCapacity: new Float64Array(nodes).fill(capacityOfNode),
    nodeLoad: new Float64Array(nodes).fill(sum / nodes),
    quotas,
  };
}

/** 99th percentile of the response time of an M/M/c queue, in mean service times; Infinity when it is overloaded. */
function p99(use: number): number {
  if (use >= 1) return Infinity;
  const offered = workers * use;
  let blocking = 1;
  for (let n = 1; n <= workers; n++) blocking = (offered * blocking) / (n + offered * blocking);
  const waits = blocking / (1 - use * (1 - blocking));
  const rate = workers * (1 - use);
  // Service alone, or with a wait before it, which is exponential of this rate.
  const tail = (t: number): number =>
    Math.abs(rate - 1) < 1e-9
      ? Math.exp(-t) * (1 + waits * t)
      : (1 - waits) * Math.exp(-t) +
        (waits * (rate * Math.exp(-t) - Math.exp(-rate * t))) / (rate - 1);
  let [low, high] = [0, 1e6];
  for (let step = 0; step < 100; step++) {
    const middle = (low + high) / 2;
    if (tail(middle) > 0.01) low = middle;
    else high = middle;
  }
  return high;
}

interface Judged {
  /** Tenants that would be throttled, by nodes without room, when they double at once. */
  throttled: number;
  /** The others' p99 relative to before, for the worst of them. */
  latency: number;
  use: number;
  tenants: number;
}

function judge(made: Admitted): Judged {
  const { nodeLoad } = poolOf(made);
  const use = nodeLoad[0]! / capacityOfNode;
  const after = [...made.loads.values()].map((load) => use + load / nodes / capacityOfNode);
  const latency = after.map((of) => (of >= 1 ? Infinity : p99(of) / p99(Math.min(use, 0.999))));
  return {
    throttled: after.filter((of) => of > 1).length,
    // The latency of an overloaded gateway is unbounded: it counts as a thousandfold.
    latency: Math.min(1000, Math.max(...latency)),
    use,
    tenants: made.quotas.size,
  };
}

export const poolHeadroom: Experiment = {
  id: 'AB-7-headroom',
  title: 'Idle capacity for any tenant to double, and limits of a pool',
  kind: 'SIM',
  source: 'ABase, section 7; the paper has no figure',
  setup:
    '200 tenants with quotas of lognormal size ask for a place in a pool of 50 nodes, which the rules admit or refuse; without, ' +
    'all are admitted. Then each tenant doubles its load at once, one at a time. A node is a queue with 16 workers, whose p99 ' +
    'is that of an M/M/16 queue.',
  run({ seeds }) {
    const run = (seed: number, rules: PoolRules | undefined): Judged & { broken: number } => {
      const made = admitAll(new Chance(seed), rules);
      const largest = Math.max(...made.quotas.values());
      const broken = largest > mostQuota(poolOf(made), defaultPoolRules) ? 1 : 0;
      return { ...judge(made), broken };
    };
    const ours = seeds.map((seed) => run(seed, defaultPoolRules));
    const without = seeds.map((seed) => run(seed, undefined));
    const of = (runs: readonly (Judged & { broken: number })[], figure: keyof Judged | 'broken') =>
      runs.map((one) => one[figure]);
    const line = (rules: PoolRules | undefined): Line => ({
      label: 'use of the pool, %',
      points: seeds.map((seed) => [seed, 100 * run(seed, rules).use] as const),
    });
    return {
      measures: [
        overSeeds(
          of(ours, 'throttled'),
          { metric: 'tenants throttled when they double', threshold: 0, better: 'lower' },
          of(without, 'throttled'),
        ),
        overSeeds(
          of(ours, 'latency'),
          {
            metric: 'p99 of the others while the worst doubles, times',
            threshold: 1.1,
            better: 'lower',
          },
          of(without, 'latency'),
        ),
        overSeeds(
          of(ours, 'broken'),
          {
            metric: 'pools whose rules are broken after all admissions',
            threshold: 0,
            better: 'lower',
          },
          of(without, 'broken'),
        ),
      ],
      xLabel: 'seed',
      yLabel: '%',
      before: { title: 'all admitted', lines: [line(undefined)] },
      after: { title: 'by the rules', lines: [line(defaultPoolRules)] },
    };
  },
};
