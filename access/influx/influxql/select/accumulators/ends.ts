// first and last.

import type { ColumnSummary } from '../../../../../universal-row/series/column.ts';
import { compareText } from '../../../../../universal-row/series/series-key.ts';
import { compareTimes, scalarAt } from '../vector.ts';
import {
  type Accumulator,
  type AccumulatorOptions,
  AuxValues,
  type DenseRows,
  grown,
  type Points,
  pointsOf,
  type Scalar,
} from './accumulator.ts';

/**
 * Among values of the same time the larger one wins; with other columns beside it and no GROUP BY
 * time, the value of the first series wins (for `last`, of the last series).
 */
export class End implements Accumulator {
  readonly #options: AccumulatorOptions;
  readonly #isLast: boolean;
  readonly #values: (Scalar | undefined)[] = [];
  #bases = new Float64Array(0);
  #offsets = new Float64Array(0);
  readonly #aux: AuxValues;

  constructor(options: AccumulatorOptions, isLast: boolean) {
    this.#options = options;
    this.#isLast = isLast;
    this.#aux = new AuxValues(options.aux);
  }

  grow(slots: number): void {
    this.#bases = grown(this.#bases, slots);
    this.#offsets = grown(this.#offsets, slots);
  }

  add(slot: number, rows: DenseRows, from: number, to: number): void {
    const ascending = rows.times[from]! <= rows.times[to - 1]!;
    const row = ascending === this.#isLast ? to - 1 : from;
    const value = scalarAt(rows.column, row);
    if (this.#improve(slot, value, rows.base, rows.times[row]!)) this.#aux.set(slot, rows, row);
  }

  addSummary(slot: number, summary: ColumnSummary, base: number): void {
    if (this.#isLast) this.#improve(slot, summary.last, base, summary.lastTime);
    else this.#improve(slot, summary.first, base, summary.firstTime);
  }

  startSeries(): void {}
  finish(): void {}

  points(slots: Int32Array): Points {
    const { resultType, keepsTime } = this.#options;
    const { found, points } = pointsOf(slots, resultType, (slot) => this.#values[slot]);
    const times = keepsTime
      ? {
          bases: Float64Array.from(found, (slot) => this.#bases[slot]!),
          offsets: Float64Array.from(found, (slot) => this.#offsets[slot]!),
        }
      : undefined;
    return { ...points, times, aux: this.#aux.columns(found) };
  }

  #improve(slot: number, value: Scalar, base: number, offset: number): boolean {
    const before = this.#values[slot];
    if (before !== undefined) {
      const order = compareTimes(base, offset, this.#bases[slot]!, this.#offsets[slot]!);
      if (this.#isLast ? order < 0 : order > 0) return false;
      if (order === 0 && !this.#winsTie(value, before)) return false;
    }
    this.#values[slot] = value;
    this.#bases[slot] = base;
    this.#offsets[slot] = offset;
    return true;
  }

  #winsTie(value: Scalar, before: Scalar): boolean {
    const { aux, hasInterval, type } = this.#options;
    if (aux.length > 0 && !hasInterval) return this.#isLast;
    if (typeof value === 'string') return compareText(value, before as string) > 0;
    const order = value > (before as number | bigint);
    return type === 'boolean' && !this.#isLast ? value < (before as number) : order;
  }
}
