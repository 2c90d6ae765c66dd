// Peaks that were seen only once are no reason to buy capacity (ABase, section 5.2, issue 1). Peaks that come every
// day at another hour are (issue 3): so a peak is judged by whether its height returns on any day around, at any hour.

import { maximum, quantile } from '../statistics.ts';
import { hoursPerDay, hoursPerWeek } from '../usage-history.ts';

/** A peak whose like is not seen within so many days before and after it is sporadic. */
const daysOfRecurrence = 10;
/** A value above the local 95th percentile times this factor is a peak. */
const peakFactor = 1.25;
/** A day that reaches this part of a peak has a peak like it. */
const likeness = 0.75;
/** A longer rise is not a peak. */
const longestPeakHours = 24;

/**
 * Values with sporadic peaks cut to the 95th percentile of the week around them. A peak that has not ended when the
 * history does is left: it may be the first day of a new level. `values` has no gaps.
 */
export function cutSinglePeaks(values: Float64Array): Float64Array {
  const cut = Float64Array.from(values);
  const highest = dailyMaxima(values);
  for (let hour = 0; hour < values.length; hour++) {
    const dayStart = hour - (hour % hoursPerDay);
    // On most days no hour stands out, as the daily maximum shows. Such days are skipped.
    if (hour === dayStart && isUsual(highest, hour / hoursPerDay)) {
      hour = dayStart + hoursPerDay - 1;
      continue;
    }
    if (isRecurring(values, hour, values[hour]!)) continue;
    const local = localPercentile(values, hour);
    if (values[hour]! <= local * peakFactor) continue;
    const end = endOfPeak(values, hour, local * peakFactor);
    if (end !== undefined) for (; hour < end; hour++) cut[hour] = Math.min(cut[hour]!, local);
  }
  return cut;
}

function dailyMaxima(values: Float64Array): Float64Array {
  const days = Math.ceil(values.length / hoursPerDay);
  return Float64Array.from({ length: days }, (_, day) =>
    maximum(values, day * hoursPerDay, Math.min(values.length, (day + 1) * hoursPerDay)),
  );
}

/** Whether a day at least two days away, within the days of recurrence, reaches this day's peak. */
function isUsual(highest: Float64Array, day: number): boolean {
  const from = Math.max(0, day - daysOfRecurrence + 1);
  const to = Math.min(highest.length - 1, day + daysOfRecurrence - 1);
  for (let other = from; other <= to; other++) {
    if (Math.abs(other - day) >= 2 && highest[other]! >= likeness * highest[day]!) return true;
  }
  return false;
}

/** Whether an hour that is not of the same peak comes near this height. */
function isRecurring(values: Float64Array, hour: number, height: number): boolean {
  const reach = daysOfRecurrence * hoursPerDay;
  const wanted = likeness * height;
  const to = Math.min(values.length, hour + reach + 1);
  for (let other = Math.max(0, hour - reach); other < to; other++) {
    if (values[other]! >= wanted && Math.abs(other - hour) >= longestPeakHours) return true;
  }
  return false;
}

/** The 95th percentile of the week around an hour, without the hours within half a day of it. */
function localPercentile(values: Float64Array, hour: number): number {
  const from = Math.max(0, Math.min(hour - hoursPerWeek / 2, values.length - hoursPerWeek));
  const to = Math.min(values.length, from + hoursPerWeek);
  const around = values
    .subarray(from, to)
    .filter((_, i) => Math.abs(from + i - hour) > hoursPerDay / 2);
  return around.length === 0 ? values[hour]! : quantile(around, 0.95);
}

function endOfPeak(values: Float64Array, start: number, limit: number): number | undefined {
  const last = Math.min(values.length, start + longestPeakHours + 1);
  for (let hour = start; hour < last; hour++) if (values[hour]! <= limit) return hour;
  return undefined;
}
