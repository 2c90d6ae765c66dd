// A model like Prophet's (Taylor and Letham 2018): a trend of straight pieces plus Fourier terms at the periods found,
// fitted by ridge regression. The trend may bend at a few places in the first four fifths of the series; the ridge
// keeps bends small that the data do not ask for.

import type { MemberForecast } from './member.ts';

const bends = 6;
/** Bends lie in this first part of the series, so that the last slope has something to rest on. */
const bendingPart = 0.8;
const bendRidge = 0.05;
const sineRidge = 1e-3;
/** Overtones of each period. */
const mostHarmonics = 6;
const shortestHarmonicHours = 3;

/**
 * The columns of the regression for `hours` hours, filled once and shared by the fits to all of a series and to all
 * but its last week.
 */
export class TrendModel {
  readonly #values: Float64Array;
  readonly #known: Uint8Array;
  readonly #columns: Float64Array[] = [];
  readonly #ridge: number[] = [];

  constructor(
    values: Float64Array,
    known: Uint8Array,
    periods: readonly number[],
    horizon: number,
  ) {
    this.#values = values;
    this.#known = known;
    const length = values.length + horizon;
    const n = values.length;
    this.#add(1e-9, new Float64Array(length).fill(1));
    this.#add(1e-6, line(length, n, 0));
    for (let bend = 1; bend <= bends; bend++) {
      const at = (bend * bendingPart) / (bends + 1);
      this.#add(bendRidge, line(length, n, at));
    }
    const used = new Set<number>();
    for (const period of periods) {
      for (let harmonic = 1; harmonic <= mostHarmonics; harmonic++) {
        const hours = period / harmonic;
        // Overtones of one period may coincide with those of another.
        if (hours < shortestHarmonicHours || used.has(hours)) continue;
        used.add(hours);
        this.#addSines(hours, length);
      }
    }
  }

  #add(ridge: number, column: Float64Array): void {
    this.#columns.push(column);
    this.#ridge.push(ridge);
  }

  #addSines(hours: number, length: number): void {
    const [cosine, sine] = [new Float64Array(length), new Float64Array(length)];
    const step = (2 * Math.PI) / hours;
    const [turnC, turnS] = [Math.cos(step), Math.sin(step)];
    let [c, s] = [1, 0];
    for (let hour = 0; hour < length; hour++) {
      cosine[hour] = c;
      sine[hour] = s;
      const next = c * turnC - s * turnS;
      s = s * turnC + c * turnS;
      c = next;
    }
    this.#add(sineRidge, cosine);
    this.#add(sineRidge, sine);
  }

  /** Fits to the known of the first hours, up to each of `ends` (ascending), and forecasts `horizon` hours after it. */
  fit(ends: readonly number[], horizon: number): MemberForecast[] {
    const size = this.#columns.length;
    const gram = new Float64Array(size * size);
    const right = new Float64Array(size);
    let from = 0;
    let count = 0;
    return ends.map((end) => {
      count += this.#accumulate(gram, right, from, end);
      from = end;
      const factors = solveRidge(gram, right, this.#ridge, Math.max(1, count));
      const all = this.#evaluate(factors, end + horizon);
      return { fitted: all.subarray(0, end), forecast: all.subarray(end) };
    });
  }

  #accumulate(gram: Float64Array, right: Float64Array, from: number, to: number): number {
    const size = this.#columns.length;
    const row = new Float64Array(size);
    let count = 0;
    for (let hour = from; hour < to; hour++) {
      if (this.#known[hour] === 0) continue;
      count++;
      for (let i = 0; i < size; i++) row[i] = this.#columns[i]![hour]!;
      const y = this.#values[hour]!;
      for (let i = 0; i < size; i++) {
        const x = row[i]!;
        right[i]! += x * y;
        const at = i * size;
        for (let j = 0; j <= i; j++) gram[at + j]! += x * row[j]!;
      }
    }
    return count;
  }

  #evaluate(factors: Float64Array, length: number): Float64Array {
    const result = new Float64Array(length);
    for (let i = 0; i < factors.length; i++) {
      const column = this.#columns[i]!;
      const factor = factors[i]!;
      for (let hour = 0; hour < length; hour++) result[hour]! += factor * column[hour]!;
    }
    return result;
  }
}

/** A line that begins to rise at this part of the `n` hours. */
function line(length: number, n: number, at: number): Float64Array {
  const values = new Float64Array(length);
  for (let hour = 0; hour < length; hour++) values[hour] = Math.max(0, hour / n - at);
  return values;
}

/** Solves (gram + count * ridge) x = right by Cholesky; `gram` holds its lower triangle. */
function solveRidge(
  gram: Float64Array,
  right: Float64Array,
  ridge: readonly number[],
  count: number,
): Float64Array {
  const n = right.length;
  const lower = Float64Array.from(gram);
  for (let i = 0; i < n; i++) lower[i * n + i]! += ridge[i]! * count;
  for (let i = 0; i < n; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = lower[i * n + j]!;
      for (let k = 0; k < j; k++) sum -= lower[i * n + k]! * lower[j * n + k]!;
      // Rounding may leave a column that depends on others with nothing, or less: it then gets no part.
      if (i === j) lower[i * n + i] = Math.sqrt(Math.max(sum, 1e-12 * count));
      else lower[i * n + j] = sum / lower[j * n + j]!;
    }
  }
  const x = Float64Array.from(right);
  for (let i = 0; i < n; i++) {
    for (let k = 0; k < i; k++) x[i]! -= lower[i * n + k]! * x[k]!;
    x[i]! /= lower[i * n + i]!;
  }
  for (let i = n - 1; i >= 0; i--) {
    for (let k = i + 1; k < n; k++) x[i]! -= lower[k * n + i]! * x[k]!;
    x[i]! /= lower[i * n + i]!;
  }
  return x;
}
