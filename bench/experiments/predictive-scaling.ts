import { defaultScalingRules } from '../../control/autoscaler/scaling/predictive-scaling.ts';
import type { Experiment, ExperimentContext, Line, Measure } from './experiment.ts';
import { overSeeds } from './over-seeds.ts';
import { Chance } from './sim/chance.ts';
import {
  type Growth,
  growingDemand,
  roughGrowth,
  steadyGrowth,
} from './workloads/growing-tenant.ts';
import {
  algorithm1,
  historyHours,
  type QuotaPolicy,
  type QuotaRun,
  runQuota,
  Tenant,
  thresholdScaling,
} from './workloads/quota-run.ts';
import { holtWinters, lastDayMaximum, lastWeekMaximum } from './workloads/simple-forecasts.ts';

const week = 168;

const predictive = algorithm1((tenant, hour) => tenant.forecast(hour).highest);
const reactive = thresholdScaling(0.95);

/** Policies beside the predictive one. */
const others: Record<string, (chance: Chance) => QuotaPolicy> = {
  'a threshold of 95 %': () => reactive,
  'Holt-Winters': () => algorithm1((tenant, hour) => holtWinters(tenant.past(hour))),
  "the last day's maximum": () => algorithm1((tenant, hour) => lastDayMaximum(tenant.past(hour))),
  "the last week's maximum": () => algorithm1((tenant, hour) => lastWeekMaximum(tenant.past(hour))),
  "the paper's mix of two forecasts": () =>
    algorithm1((tenant, hour) => tenant.ensemble(hour).highest),
  'no look at present use': () =>
    algorithm1((tenant, hour) => tenant.forecast(hour).highest, {
      ...defaultScalingRules,
      urgentUse: Infinity,
    }),
  'random changes': (chance) => (_, __, state) => {
    if (state.hoursSinceChange < week) return undefined;
    return state.quota * chance.uniform(0.65 / 0.85, 0.85 / 0.65);
  },
  'no scaling': () => () => undefined,
};

interface Totals {
  throttled: number;
  /** Mean over hours of the quota over the week's highest hour. */
  excess: number;
  raised: number;
  lowered: number;
  regretted: number;
}

function totals(runs: readonly QuotaRun[]): Totals {
  const sum = (of: (run: QuotaRun) => number): number =>
    runs.reduce((total, run) => total + of(run), 0);
  return {
    throttled: sum((run) => run.throttledHours),
    excess: sum((run) => run.excess) / sum((run) => run.hours),
    raised: sum((run) => run.raised),
    lowered: sum((run) => run.lowered),
    regretted: sum((run) => run.regretted),
  };
}

function tenantsOf(seed: number, count: number, weeks: number, growth: Growth): Tenant[] {
  return Array.from(
    { length: count },
    (_, tenant) =>
      new Tenant(
        growingDemand(historyHours + weeks * week, growth, new Chance(seed * 10_000 + tenant)),
      ),
  );
}

/** Totals for each seed, by policy. */
function runAll(
  policies: Record<string, (chance: Chance) => QuotaPolicy>,
  { seeds, quick, progress }: ExperimentContext,
  growth: Growth,
  tenants: number,
): { byPolicy: Map<string, Totals[]>; shown: Tenant } {
  const [count, weeks] = quick ? [5, 6] : [tenants, 26];
  const byPolicy = new Map<string, Totals[]>(Object.keys(policies).map((name) => [name, []]));
  let shown: Tenant | undefined;
  for (const seed of seeds) {
    const runs = new Map<string, QuotaRun[]>(Object.keys(policies).map((name) => [name, []]));
    for (const [number, tenant] of tenantsOf(seed, count, weeks, growth).entries()) {
      progress(`seed ${seed}, tenant ${number}`);
      const chance = new Chance(seed * 10_000 + number);
      for (const [name, policy] of Object.entries(policies)) {
        runs.get(name)!.push(runQuota(tenant, policy(chance)));
      }
      shown ??= tenant;
    }
    for (const [name, of] of runs) byPolicy.get(name)!.push(totals(of));
  }
  return { byPolicy, shown: shown! };
}

function quotaLines(tenant: Tenant, policy: QuotaPolicy): Line[] {
  const { quotas } = runQuota(tenant, policy);
  const points = (values: Float64Array): (readonly [number, number])[] =>
    Array.from(values, (value, hour) => [hour / 24, value] as const);
  return [
    { label: 'use', points: points(tenant.demand.subarray(historyHours)) },
    { label: 'quota', points: points(quotas) },
  ];
}

const fewer = (ours: readonly Totals[], theirs: readonly Totals[]): number[] =>
  ours.map(({ throttled }, seed) => 100 * (1 - throttled / Math.max(1, theirs[seed]!.throttled)));
const regret = (of: readonly Totals[]): number[] =>
  of.map(({ regretted, lowered }) => (100 * regretted) / Math.max(1, lowered));

const throttled = (of: readonly Totals[]): number[] => of.map((one) => one.throttled);
const excess = (of: readonly Totals[]): number[] => of.map((one) => one.excess);

function beside(name: string, byPolicy: ReadonlyMap<string, Totals[]>, whose = ''): Measure {
  const [ours, of] = [byPolicy.get('predictive')!, byPolicy.get(name)!];
  const idle = `idle quota ${mean(excess(ours)).toFixed(2)} and ${mean(excess(of)).toFixed(2)}`;
  return overSeeds(
    throttled(ours),
    {
      metric: `${whose}throttled tenant-hours, beside ${name} (${idle})`,
      threshold: mean(throttled(of)),
      better: 'lower',
    },
    throttled(of),
  );
}

/** Which of two policies throttles fewer hours is chance when both together throttle fewer than this in all seeds. */
const leastThrottledHours = 30;

function throttledHours(byPolicy: ReadonlyMap<string, Totals[]>, beside: string): number {
  return [...byPolicy.get('predictive')!, ...byPolicy.get(beside)!].reduce(
    (sum, { throttled }) => sum + throttled,
    0,
  );
}

export const predictiveScaling: Experiment = {
  id: 'AB-5.1-scale',
  title: 'Quotas follow the forecast',
  kind: 'SIM',
  source: 'ABase, section 5.1, Algorithm 1 and figure 8',
  setup:
    '200 tenants over 26 weeks, growing by -1 to 4 % a week with days, periods of 3.5 days, bursts at random hours or flat, and ' +
    'noise of 2 to 6 %. Then 40 tenants of a rough kind: a sporadic peak every 60 days, and a new level for one in ten, which ' +
    'nothing in the past tells. Each policy sees the hours before, and its changes take effect an hour later. An hour is ' +
    'throttled when the demand is above the quota; idle quota is the quota over the highest hour of its week. All but the ' +
    'threshold autoscaler are Algorithm 1 with another forecast; the default one is the trend model alone, as it is simpler than ' +
    'the mix of the paper and as good. Beside the forecast, use of the last hour above 95 % of the quota raises it, which the ' +
    'paper does not have.',
  run(context) {
    const policies = { predictive: () => predictive, ...others };
    const { byPolicy, shown } = runAll(policies, context, steadyGrowth, 200);
    const rough = runAll(policies, context, roughGrowth, 40).byPolicy;
    const ours = byPolicy.get('predictive')!;
    const theirs = byPolicy.get('a threshold of 95 %')!;
    const measures: Measure[] = [
      overSeeds(fewer(ours, theirs), {
        metric: 'throttled tenant-hours fewer than with a threshold of 95 %, %',
        threshold: 65,
        better: 'higher',
        paper: '65 % fewer urgent contacts',
      }),
      overSeeds(
        excess(ours),
        { metric: "quota over the week's highest hour", threshold: 1.7, better: 'lower' },
        excess(theirs),
      ),
      overSeeds(
        regret(ours),
        { metric: 'reductions taken back within a week, %', threshold: 2, better: 'lower' },
        regret(theirs),
      ),
      ...Object.keys(others).map((name) => beside(name, byPolicy)),
      ...Object.keys(others)
        .filter((name) => !context.quick || throttledHours(rough, name) >= leastThrottledHours)
        .map((name) => beside(name, rough, 'rough tenants: ')),
    ];
    // A short run has too few reductions to compare parts of them.
    if (!context.quick) {
      measures.push(
        overSeeds(
          regret(rough.get('predictive')!),
          {
            metric: 'rough tenants: reductions taken back within a week, %',
            threshold: mean(regret(rough.get("the last week's maximum")!)),
            better: 'lower',
          },
          regret(rough.get("the last week's maximum")!),
        ),
      );
    }
    return {
      measures,
      explanation:
        "Tenants of steady growth are never throttled, and neither are they with the last week's maximum in " +
        'place of a forecast; its reductions are taken back more often among rough ones. What comes without notice is in no ' +
        'forecast: there it is the look at present use that makes the throttled hours about half as many.',
      xLabel: 'day',
      yLabel: 'LRU/s',
      before: { title: 'threshold of 95 %', lines: quotaLines(shown, reactive) },
      after: { title: 'predictive', lines: quotaLines(shown, predictive) },
    };
  },
};

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

export const cautiousReductions: Experiment = {
  id: 'AB-7-downscale',
  title: 'Idle quota rather than a quota that flaps',
  kind: 'SIM',
  source: 'ABase, section 7; the paper has no figure',
  setup:
    'The tenants of AB-5.1-scale. A quota is lowered at most once a week, and not by less than a tenth; without the rule as ' +
    'soon as the forecast is below 65 %.',
  run(context) {
    const hasty = algorithm1((tenant, hour) => tenant.forecast(hour).highest, {
      ...defaultScalingRules,
      smallestReduction: 0,
      hoursBetweenReductions: 0,
    });
    const few = { ...context, seeds: context.seeds.slice(0, 3) };
    const { byPolicy, shown } = runAll(
      { cautious: () => predictive, hasty: () => hasty },
      few,
      steadyGrowth,
      200,
    );
    const [with_, without] = [byPolicy.get('cautious')!, byPolicy.get('hasty')!];
    const changes = (of: readonly Totals[]): number[] =>
      of.map(({ raised, lowered }) => raised + lowered);
    return {
      measures: [
        overSeeds(
          regret(with_),
          { metric: 'reductions taken back within a week, %', threshold: 2, better: 'lower' },
          regret(without),
        ),
        overSeeds(
          changes(with_),
          { metric: 'changes of quota', threshold: mean(changes(without)), better: 'lower' },
          changes(without),
        ),
      ],
      xLabel: 'day',
      yLabel: 'LRU/s',
      before: { title: 'lowered at once', lines: quotaLines(shown, hasty) },
      after: { title: 'lowered with caution', lines: quotaLines(shown, predictive) },
    };
  },
};

export const automaticGrowth: Experiment = {
  id: 'AWS-growth',
  title: 'Quotas grow with their tenants; fixed ones do not',
  kind: 'SIM',
  source: 'AWS, Fairness in multi-tenant systems; no figure',
  setup:
    'Tenants that grow by 3 % a week for 20 weeks, with days or without. The same with a fixed quota, whose owner is warned.',
  run({ seeds, quick, progress }) {
    const count = quick ? 1 : 20;
    const growth = { weekly: [0.03, 0.03] as const, shifting: 0, peaksADay: 0 };
    const fixed = algorithm1((tenant, hour) => tenant.forecast(hour).highest, undefined, true);
    let shown: Tenant | undefined;
    const runs = seeds.map((seed) => {
      progress(`seed ${seed}`);
      let [throttled, without, overQuota] = [0, 0, 0];
      for (let number = 0; number < count; number++) {
        const chance = new Chance(seed * 1000 + number);
        const tenant = new Tenant(growingDemand(historyHours + 20 * week, growth, chance));
        shown ??= tenant;
        throttled += runQuota(tenant, predictive).throttledHours;
        const held = runQuota(tenant, fixed);
        without += held.throttledHours;
        const allowed = held.quotas[0]! * held.hours;
        overQuota = Math.max(overQuota, held.billed / allowed, held.raised + held.lowered);
      }
      return { throttled, without, overQuota };
    });
    return {
      measures: [
        overSeeds(
          runs.map((run) => run.throttled),
          { metric: 'throttled tenant-hours', threshold: 0, better: 'lower' },
          runs.map((run) => run.without),
        ),
        overSeeds(
          runs.map((run) => run.overQuota),
          {
            metric: 'most that a fixed tenant is billed, of its quota',
            threshold: 1,
            better: 'lower',
          },
        ),
      ],
      xLabel: 'day',
      yLabel: 'LRU/s',
      before: { title: 'fixed', lines: quotaLines(shown!, fixed) },
      after: { title: 'automatic', lines: quotaLines(shown!, predictive) },
    };
  },
};
