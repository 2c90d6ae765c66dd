// Baselines that forecast the highest hour of the next week.

import { maximum } from '../../../control/autoscaler/statistics.ts';
import type { Chance } from '../sim/chance.ts';

const day = 24;
const week = 168;

/** The highest hour of the last day. */
export function lastDayMaximum(usage: Float64Array): number {
  return maximum(usage, usage.length - day);
}

/** The highest hour of the last week. */
export function lastWeekMaximum(usage: Float64Array): number {
  return maximum(usage, usage.length - week);
}

/** The current hour, which a threshold autoscaler uses. */
export function currentUse(usage: Float64Array): number {
  return usage.at(-1)!;
}

/** The highest hour of a day drawn from the last month. */
export function randomDayMaximum(usage: Float64Array, chance: Chance): number {
  const from = chance.below(Math.floor(usage.length / day)) * day;
  return maximum(usage, from, from + day);
}

const smoothings = [0.1, 0.3, 0.6];
const trendSmoothings = [0, 0.01, 0.05];
const seasonSmoothings = [0.1, 0.3];

/**
 * Additive Holt-Winters with a season of a day. Of 18 settings of its three factors it takes the one with the least
 * squared error of one-step forecasts.
 */
export function holtWinters(usage: Float64Array): number {
  let best = { error: Infinity, highest: 0 };
  for (const alpha of smoothings) {
    for (const beta of trendSmoothings) {
      for (const gamma of seasonSmoothings) {
        const fit = smoothed(usage, alpha, beta, gamma);
        if (fit.error < best.error) best = fit;
      }
    }
  }
  return Math.max(0, best.highest);
}

function smoothed(
  usage: Float64Array,
  alpha: number,
  beta: number,
  gamma: number,
): { error: number; highest: number } {
  let level = 0;
  for (let hour = 0; hour < day; hour++) level += usage[hour]! / day;
  let trend = 0;
  const season = Float64Array.from({ length: day }, (_, hour) => usage[hour]! - level);
  let error = 0;
  for (let hour = day; hour < usage.length; hour++) {
    const phase = hour % day;
    const value = usage[hour]!;
    error += (value - level - trend - season[phase]!) ** 2;
    const before = level;
    level = alpha * (value - season[phase]!) + (1 - alpha) * (level + trend);
    trend = beta * (level - before) + (1 - beta) * trend;
    season[phase] = gamma * (value - level) + (1 - gamma) * season[phase]!;
  }
  let highest = 0;
  for (let step = 1; step <= week; step++) {
    highest = Math.max(highest, level + step * trend + season[(usage.length + step - 1) % day]!);
  }
  return { error, highest };
}
