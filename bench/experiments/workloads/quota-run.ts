// Runs a scaling policy over a tenant's demand, hour by hour: it sees the past, and is judged on
// the time after. A change of quota takes effect an hour later.

import { type CleanHistory, preprocess } from '../../../control/autoscaler/denoise/preprocess.ts';
import { type Forecast, forecastOfClean } from '../../../control/autoscaler/forecast/forecast.ts';
import {
  defaultScalingRules,
  planScaling,
  type ScalingRules,
  upperUse,
} from '../../../control/autoscaler/scaling/predictive-scaling.ts';
import { maximum } from '../../../control/autoscaler/statistics.ts';

export const historyHours = 720;
const day = 24;
const week = 168;
/** A forecast is made once a day, and when the use comes near the quota, but not more often than this. */
const shortestPauseHours = 6;

/**
 * The demand of one tenant: `historyHours` of history, then the hours on which the policies are
 * judged. Forecasts are kept.
 */
export class Tenant {
  readonly demand: Float64Array;
  readonly #clean = new Map<number, CleanHistory>();
  readonly #forecasts = new Map<number, Forecast>();
  readonly #ensembles = new Map<number, Forecast>();

  constructor(demand: Float64Array) {
    this.demand = demand;
  }

  past(hour: number): Float64Array {
    return this.demand.subarray(hour - historyHours, hour);
  }

  /** The default forecast, by the trend model alone. */
  forecast(hour: number): Forecast {
    return this.#forecastBy(this.#forecasts, hour, 'trend');
  }

  /** That of the paper, a mix of the trend model and the historical average. */
  ensemble(hour: number): Forecast {
    return this.#forecastBy(this.#ensembles, hour, 'ensemble');
  }

  #forecastBy(kept: Map<number, Forecast>, hour: number, model: 'trend' | 'ensemble'): Forecast {
    let made = kept.get(hour);
    if (made === undefined) {
      kept.set(hour, (made = forecastOfClean(this.#cleanPast(hour), model)));
    }
    return made;
  }

  #cleanPast(hour: number): CleanHistory {
    let clean = this.#clean.get(hour);
    if (clean === undefined) {
      const quota = new Float64Array(historyHours).fill(1);
      const known = new Uint8Array(historyHours).fill(1);
      clean = preprocess({ usage: this.past(hour), quota, known });
      this.#clean.set(hour, clean);
    }
    return clean;
  }
}

interface QuotaState {
  quota: number;
  hoursSinceChange: number;
  hoursSinceForecast: number;
}

/** The quota wanted after the hours before `hour`, undefined for no change. */
export type QuotaPolicy = (tenant: Tenant, hour: number, state: QuotaState) => number | undefined;

/**
 * Algorithm 1 with a way to forecast the highest hour of the next week. It runs once a day, and between when the last hour
 * came near the quota.
 */
export function algorithm1(
  highest: (tenant: Tenant, hour: number) => number,
  rules: ScalingRules = defaultScalingRules,
  isFixed = false,
): QuotaPolicy {
  return (tenant, hour, state) => {
    const last = tenant.demand[hour - 1]!;
    const isDue = hour % day === 0;
    const isClose = last > upperUse * state.quota && state.hoursSinceForecast >= shortestPauseHours;
    const isUrgent = last > rules.urgentUse * state.quota;
    if (!isDue && !isClose && !isUrgent) return undefined;
    state.hoursSinceForecast = 0;
    const decision = planScaling(
      { ...state, partitions: 1, used: rules.urgentUse < Infinity ? last : 0, isFixed },
      highest(tenant, hour),
      rules,
    );
    return decision.kind === 'scale' ? decision.quota : undefined;
  };
}

/** Raises the quota when the last hour used `threshold` of it, lowers it by the highest hour of the last week. */
export function thresholdScaling(threshold: number): QuotaPolicy {
  return (tenant, hour, { quota, hoursSinceChange }) => {
    const last = tenant.demand[hour - 1]!;
    if (last > threshold * quota) return last / 0.65;
    if (hoursSinceChange < week || hour % day !== 0) return undefined;
    const highest = maximum(tenant.demand, hour - week, hour);
    return highest < 0.65 * 0.9 * quota ? highest / 0.65 : undefined;
  };
}

export interface QuotaRun {
  hours: number;
  throttledHours: number;
  /** Sum over hours of the quota over the highest hour of its week. */
  excess: number;
  raised: number;
  lowered: number;
  /** Reductions that were taken back within a week. */
  regretted: number;
  /** Units used, at most the quota. */
  billed: number;
  quotas: Float64Array;
}

/** The first quota is right for the week before: its highest hour is 75 % of it. */
export function runQuota(tenant: Tenant, policy: QuotaPolicy): QuotaRun {
  const { demand } = tenant;
  const hours = demand.length - historyHours;
  const quotas = new Float64Array(hours);
  const state: QuotaState = {
    quota: maximum(demand, historyHours - week, historyHours) / 0.75,
    hoursSinceChange: week,
    hoursSinceForecast: shortestPauseHours,
  };
  const run = {
    hours,
    throttledHours: 0,
    excess: 0,
    raised: 0,
    lowered: 0,
    regretted: 0,
    billed: 0,
  };
  let next: number | undefined;
  let loweredAt = -Infinity;
  let weekHighest = 0;
  for (let hour = historyHours; hour < demand.length; hour++) {
    if (next !== undefined) {
      if (next > state.quota) {
        run.raised++;
        if (hour - loweredAt <= week) run.regretted++;
        loweredAt = -Infinity;
      } else {
        run.lowered++;
        loweredAt = hour;
      }
      state.quota = next;
      state.hoursSinceChange = 0;
    }
    const used = demand[hour]!;
    if (used > state.quota) run.throttledHours++;
    run.billed += Math.min(used, state.quota);
    const at = hour - historyHours;
    quotas[at] = state.quota;
    if (at % week === 0) weekHighest = maximum(demand, hour, Math.min(hour + week, demand.length));
    run.excess += state.quota / weekHighest;
    state.hoursSinceChange++;
    state.hoursSinceForecast++;
    const wanted = policy(tenant, hour + 1, state);
    next = wanted === undefined || wanted === state.quota ? undefined : wanted;
  }
  return { ...run, quotas };
}
