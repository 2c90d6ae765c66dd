// The forecast of a resource's use over the next week (ABase, section 5.2). The paper mixes a model of trend and periods
// with the historical average, each weighted by how well it would have foretold the last week. In AB-5.2-forecast the
// mix is no better than the first model alone, which is the default for that.

import { type CleanHistory, preprocess } from '../denoise/preprocess.ts';
import { maximum, mean } from '../statistics.ts';
import { hoursPerDay, hoursPerWeek, type UsageHistory } from '../usage-history.ts';
import type { MemberForecast } from './member.ts';
import { phaseAverage } from './phase-average.ts';
import type { Period } from './periods.ts';
import { TrendModel } from './trend-model.ts';

export const horizonHours = hoursPerWeek;
/** A forecast whose maximum is below this part of the last period's maximum is not believed. */
const believedPart = 0.8;
/** No forecast is above the largest value seen by more than this factor. */
const mostGrowth = 3;
/** A phase average over longer periods would have too few values for each phase. */
const longestAverageHours = hoursPerWeek;
/** Weight of the error of single hours, relative to that of the week's mean. */
const hourlyWeight = 0.1;

/** `trend`: the model of trend and periods. `ensemble`: the paper's mix of it and the historical average. */
type ForecastModel = 'trend' | 'ensemble';

export interface Forecast {
  /** Use in each hour of the next week, in the unit of the history. */
  hourly: Float64Array;
  /**
   * The highest hour expected in the next week. It is above `hourly`'s highest by as much as peaks have been above the
   * model's in the weeks before.
   */
  highest: number;
  /** For an ensemble: each member's highest hour, and the weight of the trend model (the average has the rest). */
  members: { trend: number; average: number; trendWeight: number } | undefined;
  periods: readonly Period[];
  /** The first hour of the history that was used. */
  trainedFrom: number;
  /** Whether the last period's own data stand in, because the forecast was far below them. */
  isLastPeriod: boolean;
}

/** Throws a RangeError for a history that `checkHistory` refuses. The same history always gives the same forecast. */
export function forecast(history: UsageHistory, model: ForecastModel = 'trend'): Forecast {
  return forecastOfClean(preprocess(history), model);
}

/** The same from a history that is preprocessed, for forecasts by both models. */
export function forecastOfClean(clean: CleanHistory, model: ForecastModel): Forecast {
  const { usage, known, trainFrom, periods } = clean;
  const values = usage.subarray(trainFrom);
  const isKnown = known.subarray(trainFrom);
  const limit = mostGrowth * maximum(values);
  const predicted =
    model === 'trend'
      ? trendAlone(values, isKnown, periods, limit)
      : ensemble(values, isKnown, periods, limit);
  const common = { members: predicted.members, periods, trainedFrom: trainFrom };
  const last = lastPeriod(values, periods);
  const lastHighest = maximum(last);
  if (predicted.highest >= believedPart * lastHighest) {
    return { ...predicted, ...common, isLastPeriod: false };
  }
  const repeated = predicted.hourly.map((_, hour) => last[hour % last.length]!);
  return { hourly: repeated, highest: lastHighest, ...common, isLastPeriod: true };
}

type Predicted = Pick<Forecast, 'hourly' | 'highest' | 'members'>;

function trendAlone(
  values: Float64Array,
  known: Uint8Array,
  periods: readonly Period[],
  limit: number,
): Predicted {
  const hours = periods.map((period) => period.hours);
  const [trend] = new TrendModel(values, known, hours, horizonHours).fit(
    [values.length],
    horizonHours,
  );
  return {
    hourly: trend!.forecast.map((value) => within(value, limit)),
    highest: within(highestOf(values, trend!), limit),
    members: undefined,
  };
}

function ensemble(
  values: Float64Array,
  known: Uint8Array,
  periods: readonly Period[],
  limit: number,
): Predicted {
  const [trend, average] = fitMembers(values, known, periods);
  const trendWeight = weightOfFirst(trend.error, average.error);
  const hourly = Float64Array.from({ length: horizonHours }, (_, hour) =>
    within(
      trendWeight * trend.forecast[hour]! + (1 - trendWeight) * average.forecast[hour]!,
      limit,
    ),
  );
  const members = {
    trend: within(trend.highest, limit),
    average: within(average.highest, limit),
    trendWeight,
  };
  const highest = trendWeight * members.trend + (1 - trendWeight) * members.average;
  return { hourly, highest, members };
}

/** A value from 0 to `limit`; a value that cannot be computed is the limit, the cautious answer. */
function within(value: number, limit: number): number {
  return value >= 0 && value <= limit ? value : value < 0 ? 0 : limit;
}

interface Member extends MemberForecast {
  highest: number;
  /** Relative error of a forecast of the last week from the time before it. */
  error: number;
}

function fitMembers(
  values: Float64Array,
  known: Uint8Array,
  periods: readonly Period[],
): [trend: Member, average: Member] {
  const hours = periods.map((period) => period.hours);
  const trendModel = new TrendModel(values, known, hours, horizonHours);
  const averageHours = periodOfAverage(hours);
  const n = values.length;
  const heldOut = n - horizonHours;
  // With less than two weeks there is no week to try the members on.
  if (heldOut < hoursPerWeek) {
    const [trend] = trendModel.fit([n], horizonHours);
    const average = phaseAverage(values, known, n, averageHours, horizonHours);
    return [asMember(values, trend!, 1), asMember(values, average, 0.5)];
  }
  const [tried, trend] = trendModel.fit([heldOut, n], horizonHours);
  const triedAverage = phaseAverage(values, known, heldOut, averageHours, horizonHours);
  const average = phaseAverage(values, known, n, averageHours, horizonHours);
  return [
    asMember(values, trend!, backTest(values, known, tried!)),
    asMember(values, average, backTest(values, known, triedAverage)),
  ];
}

/** The common multiple of the periods if it is at most a week, otherwise the strongest that is; 1 without any. */
function periodOfAverage(hours: readonly number[]): number {
  const usable = hours.filter((period) => period <= longestAverageHours);
  let common = usable[0] ?? 1;
  for (const period of usable) {
    const multiple = leastCommonMultiple(common, period);
    if (multiple <= longestAverageHours) common = multiple;
  }
  return common;
}

function leastCommonMultiple(a: number, b: number): number {
  let [x, y] = [a, b];
  while (y > 0) [x, y] = [y, x % y];
  return (a / x) * b;
}

function asMember(values: Float64Array, member: MemberForecast, error: number): Member {
  return { ...member, error, highest: highestOf(values, member) };
}

/** The highest hour of a member's forecast, with its allowance for peaks. */
function highestOf(values: Float64Array, member: MemberForecast): number {
  return maximum(member.forecast) + peakAllowance(values, member);
}

/** By how much the highest hour of a week was above the model's highest, on average over the weeks fitted. */
function peakAllowance(values: Float64Array, { fitted }: MemberForecast): number {
  const excesses: number[] = [];
  for (let end = fitted.length; end > 0; end -= hoursPerWeek) {
    const from = end - hoursPerWeek;
    // A part of a week has no comparable highest hour, except where there is nothing else.
    if (from < 0 && excesses.length > 0) break;
    const start = Math.max(0, from);
    excesses.push(maximum(values, start, end) - maximum(fitted, start, end));
  }
  return Math.max(0, mean(Float64Array.from(excesses)));
}

/**
 * Error of a member over the hours of a week, relative to their highest. Only the overall deviation
 * counts: noisy peaks, and noise from hour to hour, are unpredictable for every member, and say
 * little about them.
 */
function backTest(values: Float64Array, known: Uint8Array, tried: MemberForecast): number {
  const from = tried.fitted.length;
  const actual = maximum(values, from);
  if (actual === 0) return maximum(tried.forecast);
  let [sum, absolute, count] = [0, 0, 0];
  for (let hour = from; hour < values.length; hour++) {
    if (known[hour] === 0) continue;
    const difference = values[hour]! - tried.forecast[hour - from]!;
    sum += difference;
    absolute += Math.abs(difference);
    count++;
  }
  if (count === 0) return 1;
  return Math.hypot(sum, hourlyWeight * absolute) / count / actual;
}

/** By the inverse squares of the errors. */
function weightOfFirst(first: number, second: number): number {
  const [a, b] = [second ** 2 + 1e-9, first ** 2 + 1e-9];
  const weight = a / (a + b);
  return Number.isFinite(weight) ? weight : 0.5;
}

/** The last period, at least a day and at most a week: without a period the last week. */
function lastPeriod(values: Float64Array, periods: readonly Period[]): Float64Array {
  const hours = periods[0]?.hours ?? hoursPerWeek;
  const length = Math.min(hoursPerWeek, Math.max(hoursPerDay, hours), values.length);
  return values.subarray(values.length - length);
}
