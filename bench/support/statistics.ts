export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length === 0) return NaN;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Percentile of values in any order; `share` from 0 to 1. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = Float64Array.from(values).sort();
  if (sorted.length === 0) return NaN;
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)]!;
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

export interface Interval {
  middle: number;
  low: number;
  high: number;
}

/** Standard deviations of a normal distribution between which 95 % of it are. */
const certain = 1.96;

/** Fewer pairs do not tell a difference of a few per cent. */
export const pairsToJudge = 20;

/** The median of samples, and the order statistics that bound the population's median with 95 %. */
export function medianWithin(samples: readonly number[]): Interval {
  const sorted = Float64Array.from(samples).sort();
  const off = (certain * Math.sqrt(sorted.length)) / 2;
  const low = sorted[Math.max(0, Math.floor(sorted.length / 2 - off))]!;
  const high = sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length / 2 + off))]!;
  return { middle: median(samples), low, high };
}
