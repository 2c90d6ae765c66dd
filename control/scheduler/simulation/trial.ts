// Policies against each other: every policy plans on one draw of a workload's noise, its plan is carried out on another
// draw, and the cluster is measured there, before and after. One trial for each seed.

import type { Policy, Proposal } from '../proposal.ts';
import { carriedOut, type WorkingCluster } from '../working-cluster.ts';
import { Chance } from './chance.ts';
import type { Workload } from './workload.ts';

/** Figures of a cluster, by name. */
type Measurement = Readonly<Record<string, number>>;

interface TrialOptions {
  workload: (seed: number) => Workload;
  policies: readonly Policy[];
  seeds: readonly number[];
  measure: (cluster: WorkingCluster) => Measurement;
  progress?: (text: string) => void;
}

export interface Trial {
  policy: string;
  seed: number;
  before: Measurement;
  after: Measurement;
  proposals: readonly Proposal[];
}

const planningDraw = 1;
const judgingDraw = 2;

export function runTrials({ workload, policies, seeds, measure, progress }: TrialOptions): Trial[] {
  return seeds.flatMap((seed) => {
    const made = workload(seed);
    const [planned, judged] = [made.model(planningDraw), made.model(judgingDraw)];
    const before = measure(carriedOut(judged, []));
    return policies.map((policy) => {
      progress?.(`${policy.name}, seed ${seed}`);
      const proposals = policy.plan(planned, { now: 0, rng: new Chance(seed) });
      const after = measure(carriedOut(judged, proposals));
      return { policy: policy.name, seed, before, after, proposals };
    });
  });
}

interface Spread {
  mean: number;
  least: number;
  most: number;
}

/** Median and range of one figure over trials. */
export function spreadOf(values: readonly number[]): Spread {
  return {
    mean: values.reduce((sum, value) => sum + value, 0) / values.length,
    least: Math.min(...values),
    most: Math.max(...values),
  };
}
