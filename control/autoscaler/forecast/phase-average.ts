// The historical average: the mean of the series at the same phase of its period. It has no trend.

import type { MemberForecast } from './member.ts';

/** Forecasts `horizon` hours after `values[0, end)`; hours whose `known` is 0 do not count. */
export function phaseAverage(
  values: Float64Array,
  known: Uint8Array,
  end: number,
  periodHours: number,
  horizon: number,
): MemberForecast {
  const sums = new Float64Array(periodHours);
  const counts = new Float64Array(periodHours);
  let [sum, count] = [0, 0];
  for (let hour = 0; hour < end; hour++) {
    if (known[hour] === 0) continue;
    sums[hour % periodHours]! += values[hour]!;
    counts[hour % periodHours]! += 1;
    sum += values[hour]!;
    count++;
  }
  const overall = count === 0 ? 0 : sum / count;
  const profile = sums.map((of, phase) => (counts[phase] === 0 ? overall : of / counts[phase]!));
  const at = (hour: number): number => profile[hour % periodHours]!;
  const all = new Float64Array(end + horizon);
  for (let hour = 0; hour < all.length; hour++) all[hour] = at(hour);
  return { fitted: all.subarray(0, end), forecast: all.subarray(end) };
}
