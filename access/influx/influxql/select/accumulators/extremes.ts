// min and max. Of equal values the earliest counts, and of those at one time the first in series order.

import type { ColumnSummary } from '../../../../../universal-row/series/column.ts';
import { compareTimes } from '../vector.ts';
import {
  type Accumulator,
  type AccumulatorOptions,
  AuxValues,
  type DenseRows,
  grown,
  type Points,
  pointsOf,
} from './accumulator.ts';

export class Extreme implements Accumulator {
  readonly #options: AccumulatorOptions;
  readonly #sign: 1 | -1;
  readonly #keepsRows: boolean;
  #seen = new Uint8Array(0);
  /** Times the sign, so that more is better. */
  #best = new Float64Array(0);
  /** The exact values of slots where a double is not enough. */
  readonly #wide = new Map<number, bigint>();
  #bases = new Float64Array(0);
  #offsets = new Float64Array(0);
  readonly #aux: AuxValues;

  /** `sign` is 1 for max, -1 for min. */
  constructor(options: AccumulatorOptions, sign: 1 | -1) {
    this.#options = options;
    this.#sign = sign;
    this.#keepsRows = options.keepsTime || options.aux.length > 0;
    this.#aux = new AuxValues(options.aux);
  }

  grow(slots: number): void {
    this.#best = grown(this.#best, slots);
    if (this.#keepsRows) {
      this.#bases = grown(this.#bases, slots);
      this.#offsets = grown(this.#offsets, slots);
    }
    if (this.#seen.length >= slots) return;
    const seen = new Uint8Array(Math.max(slots, this.#seen.length * 2, 16));
    seen.set(this.#seen);
    this.#seen = seen;
  }

  add(slot: number, rows: DenseRows, from: number, to: number): void {
    if (rows.column.wide !== undefined) return this.#addWide(slot, rows, from, to);
    const { numbers } = rows.column;
    let start = from;
    let row = -1;
    let best = this.#best[slot]!;
    if (this.#seen[slot] === 0) {
      this.#seen[slot] = 1;
      best = numbers[from]! * this.#sign;
      row = from;
      start++;
    }
    if (this.#keepsRows) {
      if (row >= 0) this.#take(slot, rows, row);
      this.#best[slot] = best;
      for (let i = start; i < to; i++) {
        const value = numbers[i]! * this.#sign;
        if (value < best || (value === best && !this.#isEarlier(slot, rows, i))) continue;
        // A value that is no number never wins.
        if (!(value >= best)) continue;
        best = value;
        this.#best[slot] = value;
        this.#wide.delete(slot);
        this.#take(slot, rows, i);
      }
      return;
    }
    const before = best;
    if (this.#sign === 1) {
      for (let i = start; i < to; i++) if (numbers[i]! > best) best = numbers[i]!;
    } else {
      best = -best;
      for (let i = start; i < to; i++) if (numbers[i]! < best) best = numbers[i]!;
      best = -best;
    }
    this.#best[slot] = best;
    if (best !== before) this.#wide.delete(slot);
  }

  addSummary(slot: number, summary: ColumnSummary, _base: number): void {
    const value = this.#sign === 1 ? summary.max : summary.min;
    if (value === undefined || typeof value === 'string') return;
    this.#improve(slot, value);
  }

  startSeries(): void {}
  finish(): void {}

  value(slot: number): number | bigint | undefined {
    if (this.#seen[slot] !== 1) return undefined;
    return this.#wide.get(slot) ?? this.#best[slot]! * this.#sign;
  }

  points(slots: Int32Array): Points {
    const { resultType, keepsTime } = this.#options;
    const { found, points } = pointsOf(slots, resultType, (slot) => this.value(slot));
    if (!this.#keepsRows) return points;
    const times = keepsTime
      ? {
          bases: Float64Array.from(found, (slot) => this.#bases[slot]!),
          offsets: Float64Array.from(found, (slot) => this.#offsets[slot]!),
        }
      : undefined;
    return { ...points, times, aux: this.#aux.columns(found) };
  }

  /** Whether the value is better than the slot's; if so, the slot takes it. */
  #improve(slot: number, value: number | bigint): boolean {
    const before = this.value(slot);
    if (before !== undefined && (this.#sign === 1 ? value <= before : value >= before)) {
      return false;
    }
    this.#seen[slot] = 1;
    this.#best[slot] = Number(value) * this.#sign;
    if (typeof value === 'bigint') this.#wide.set(slot, value);
    else this.#wide.delete(slot);
    return true;
  }

  #addWide(slot: number, rows: DenseRows, from: number, to: number): void {
    const wide = rows.column.wide!;
    for (let i = from; i < to; i++) {
      const value = wide[i]!;
      const isBetter = this.#improve(slot, value);
      if (!this.#keepsRows) continue;
      if (isBetter || (value === this.#wide.get(slot) && this.#isEarlier(slot, rows, i))) {
        this.#take(slot, rows, i);
      }
    }
  }

  #isEarlier(slot: number, { base, times }: DenseRows, row: number): boolean {
    return compareTimes(base, times[row]!, this.#bases[slot]!, this.#offsets[slot]!) < 0;
  }

  #take(slot: number, rows: DenseRows, row: number): void {
    this.#bases[slot] = rows.base;
    this.#offsets[slot] = rows.times[row]!;
    this.#aux.set(slot, rows, row);
  }
}
