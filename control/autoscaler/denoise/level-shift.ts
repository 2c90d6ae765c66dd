// Change points: after business adjustments and data clean-ups the level of a series jumps, and
// values before the jump say little about later ones (ABase, section 5.2, issues 1 and 2). Segments
// are lines, found by PELT (Killick et al. 2012): a steady trend is one segment, and only a jump
// between two lines counts as a shift.

import { maximum, mean, median } from '../statistics.ts';
import { hoursPerDay, hoursPerWeek } from '../usage-history.ts';

/** PELT runs over means of so many hours; the hour is found afterwards. */
const binHours = 3;
const shortestSegmentBins = 8;
const filterReach = 3;
/** Levels are compared over so many days on each side. */
const searchDays = 2;
/** Each further segment must lower the squared error by this many variances of a bin, times the log of their number. */
const penaltyFactor = 6;
/** A jump smaller than this part of the level is not a shift. */
const smallestJump = 0.15;
/** Below this part of the mean the daily profile is not divided by. */
const profileFloor = 0.2;

/**
 * The hour at which the last lasting shift of level begins, undefined for a series without one. `values` has no gaps;
 * `periodHours` is its strongest period.
 */
export function lastLevelShift(values: Float64Array, periodHours: number): number | undefined {
  if (values.length < 4 * hoursPerDay || maximum(values) === 0) return undefined;
  const flat = withoutProfile(values, periodHours);
  const boundaries = segmentStarts(binned(flat)).map((bin) => bin * binHours);
  const sums = prefixSums(flat);
  for (const boundary of boundaries.reverse()) {
    // A boundary may be two days off: the search around it is repeated from where it ends.
    let hour = boundary;
    for (let round = 0; round < 4 * searchDays; round++) hour = exactHour(sums, hour);
    if (isLasting(values, flat, hour, periodHours)) return hour;
  }
  return undefined;
}

/** The series divided by its profile over the period, without short bursts. */
function withoutProfile(values: Float64Array, periodHours: number): Float64Array {
  const level = movingMean(values, periodHours);
  const profile = new Float64Array(periodHours);
  for (let phase = 0; phase < periodHours; phase++) {
    const ratios: number[] = [];
    for (let hour = phase; hour < values.length; hour += periodHours) {
      if (level[hour]! > 0) ratios.push(values[hour]! / level[hour]!);
    }
    profile[phase] = ratios.length === 0 ? 1 : median(Float64Array.from(ratios));
  }
  const floor = profileFloor * mean(profile);
  const flat = values.map((value, hour) => value / Math.max(profile[hour % periodHours]!, floor));
  return medianFiltered(flat);
}

/** The mean over one period around each hour. */
function movingMean(values: Float64Array, width: number): Float64Array {
  const sums = prefixSums(values);
  return values.map((_, hour) => {
    const from = Math.max(0, Math.min(hour - (width >> 1), values.length - width));
    const to = Math.min(values.length, from + width);
    return (sums[to]! - sums[from]!) / (to - from);
  });
}

function prefixSums(values: Float64Array): Float64Array {
  const sums = new Float64Array(values.length + 1);
  for (let i = 0; i < values.length; i++) sums[i + 1] = sums[i]! + values[i]!;
  return sums;
}

/** The median of the hours around each: takes out bursts of up to three hours, and leaves jumps where they are. */
function medianFiltered(flat: Float64Array): Float64Array {
  const sorted = new Float64Array(2 * filterReach + 1);
  const filtered = Float64Array.from(flat);
  for (let hour = filterReach; hour + filterReach < flat.length; hour++) {
    // By insertion: the sort of typed arrays is several times slower on so few.
    for (let i = 0; i < sorted.length; i++) {
      const value = flat[hour - filterReach + i]!;
      let at = i;
      for (; at > 0 && sorted[at - 1]! > value; at--) sorted[at] = sorted[at - 1]!;
      sorted[at] = value;
    }
    filtered[hour] = sorted[filterReach]!;
  }
  return filtered;
}

function binned(values: Float64Array): Float64Array {
  const count = Math.floor(values.length / binHours);
  const means = new Float64Array(count);
  for (let bin = 0; bin < count; bin++) {
    means[bin] = mean(values.subarray(bin * binHours, (bin + 1) * binHours));
  }
  return means;
}

/** PELT: the starts of all segments but the first, in order. */
function segmentStarts(values: Float64Array): number[] {
  const n = values.length;
  const cost = lineCost(values);
  const penalty = penaltyFactor * noiseVariance(values) * Math.log(n);
  if (penalty === 0) return exactSegmentStarts(values);
  const best = new Float64Array(n + 1).fill(Infinity);
  const from = new Int32Array(n + 1);
  const costs = new Float64Array(n + 1);
  const candidates = new Int32Array(n + 1);
  let count = 1;
  best[0] = -penalty;
  for (let end = shortestSegmentBins; end <= n; end++) {
    for (let i = 0; i < count; i++) {
      const start = candidates[i]!;
      costs[i] = end - start < shortestSegmentBins ? Infinity : best[start]! + cost(start, end);
      if (costs[i]! + penalty < best[end]!) {
        best[end] = costs[i]! + penalty;
        from[end] = start;
      }
    }
    let kept = 0;
    for (let i = 0; i < count; i++) {
      if (costs[i] === Infinity || costs[i]! <= best[end]!) candidates[kept++] = candidates[i]!;
    }
    candidates[kept] = end;
    count = kept + 1;
  }
  const starts: number[] = [];
  for (let end = n; end > 0 && from[end]! > 0; end = from[end]!) starts.push(from[end]!);
  return starts.reverse();
}

/** Without any noise each jump is a boundary. */
function exactSegmentStarts(values: Float64Array): number[] {
  const starts: number[] = [];
  for (let bin = 1; bin < values.length; bin++) {
    if (values[bin] !== values[bin - 1]) starts.push(bin);
  }
  return starts;
}

/** From the differences of neighbours, of which a jump spoils only one: the median, scaled to a normal variance. */
function noiseVariance(values: Float64Array): number {
  const differences = Float64Array.from({ length: values.length - 1 }, (_, i) =>
    Math.abs(values[i + 1]! - values[i]!),
  );
  return (median(differences) / 0.6745) ** 2 / 2;
}

/** The squared error of the best line through values[start, end), from running sums. */
function lineCost(values: Float64Array): (start: number, end: number) => number {
  const n = values.length;
  const centre = mean(values);
  const sumY = new Float64Array(n + 1);
  const sumYY = new Float64Array(n + 1);
  const sumXY = new Float64Array(n + 1);
  for (let i = 0; i < n; i++) {
    const y = values[i]! - centre;
    sumY[i + 1] = sumY[i]! + y;
    sumYY[i + 1] = sumYY[i]! + y * y;
    sumXY[i + 1] = sumXY[i]! + i * y;
  }
  return (start, end) => {
    const count = end - start;
    const y = sumY[end]! - sumY[start]!;
    const meanX = (start + end - 1) / 2;
    const xy = sumXY[end]! - sumXY[start]! - meanX * y;
    const xx = (count * (count * count - 1)) / 12;
    return Math.max(0, sumYY[end]! - sumYY[start]! - (y * y) / count - (xy * xy) / xx);
  };
}

/** The hour near a bin boundary that separates two levels best; `sums` are running sums of the series. */
function exactHour(sums: Float64Array, boundary: number): number {
  const from = Math.max(0, boundary - searchDays * hoursPerDay);
  const to = Math.min(sums.length - 1, boundary + searchDays * hoursPerDay);
  let best = boundary;
  let most = -1;
  for (let hour = boundary - hoursPerDay / 2; hour <= boundary + hoursPerDay / 2; hour++) {
    if (hour <= from + 3 || hour >= to - 3) continue;
    const before = (sums[hour]! - sums[from]!) / (hour - from);
    const after = (sums[to]! - sums[hour]!) / (to - hour);
    const between = ((hour - from) * (to - hour) * (after - before) ** 2) / (to - from);
    if (between > most) {
      most = between;
      best = hour;
    }
  }
  return best;
}

/**
 * Whether the level jumps at this hour, and stays there: against the same phase of the weeks before, so that weekends
 * and other parts of a long period are not taken for shifts.
 */
function isLasting(
  values: Float64Array,
  flat: Float64Array,
  hour: number,
  periodHours: number,
): boolean {
  const day = Math.min(hoursPerDay, hour, values.length - hour);
  const before = median(flat.subarray(hour - day, hour));
  const after = median(flat.subarray(hour, hour + day));
  const level = Math.max(before, after);
  if (!(Math.abs(after - before) > smallestJump * level)) return false;
  const lag = Math.ceil(hoursPerWeek / periodHours) * periodHours;
  // Each hour of the new level against its phase before; early in the history each of the old against its phase after.
  const from = hour < lag ? lag : hour;
  const to = Math.min(values.length, hour + lag);
  if (from >= to) return true;
  const sign = Math.sign(after - before);
  const changes = values
    .slice(from, to)
    .map((value, i) => (sign * (value - values[from + i - lag]!)) / level);
  return median(changes) > smallestJump / 2;
}
