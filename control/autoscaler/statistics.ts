// Small statistics over typed arrays.

/** The value below which the part `q` (0 to 1) of the values lies, by linear interpolation. NaN for no values. */
export function quantile(values: Float64Array, q: number): number {
  const sorted = Float64Array.from(values).sort();
  const place = q * (sorted.length - 1);
  const below = Math.floor(place);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below]! + (sorted[above]! - sorted[below]!) * (place - below);
}

export function median(values: Float64Array): number {
  return quantile(values, 0.5);
}

/** The largest of `values[from, to)`; 0 for an empty range. */
export function maximum(values: Float64Array, from = 0, to = values.length): number {
  let most = 0;
  for (let i = from; i < to; i++) if (values[i]! > most) most = values[i]!;
  return most;
}

export function mean(values: Float64Array): number {
  let sum = 0;
  for (const value of values) sum += value;
  return sum / values.length;
}

export function isAllKnown(known: Uint8Array): boolean {
  return !known.includes(0);
}
