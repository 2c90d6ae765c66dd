/** Percentile of values in any order; `share` from 0 to 1. NaN for no values. */
export function percentile(values: Float64Array, share: number): number {
  if (values.length === 0) return NaN;
  const sorted = values.slice().sort();
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)]!;
}

export function joined(parts: readonly Float64Array[]): Float64Array {
  const all = new Float64Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
