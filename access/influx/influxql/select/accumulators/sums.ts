// count, sum, mean and spread.

import type { ColumnSummary } from '../../../../../universal-row/series/column.ts';
import { maxSafe } from '../vector.ts';
import {
  type Accumulator,
  type AccumulatorOptions,
  type DenseRows,
  grown,
  type Points,
  pointsOf,
} from './accumulator.ts';
import { Extreme } from './extremes.ts';

export class Count implements Accumulator {
  #counts = new Float64Array(0);

  grow(slots: number): void {
    this.#counts = grown(this.#counts, slots);
  }

  add(slot: number, _rows: DenseRows, from: number, to: number): void {
    this.#counts[slot]! += to - from;
  }

  addSummary(slot: number, summary: ColumnSummary): void {
    this.#counts[slot]! += summary.count;
  }

  startSeries(): void {}
  finish(): void {}

  points(slots: Int32Array): Points {
    return pointsOf(slots, 'integer', (slot) => this.#counts[slot]! || undefined).points;
  }
}

const safe = Number.MAX_SAFE_INTEGER;

/**
 * Sums each series first and then adds these sums, as InfluxDB does: another order of adding floats may change the
 * last digit. Sums of integers are exact and wrap at 64 bits.
 */
abstract class SeriesSums implements Accumulator {
  readonly isFloat: boolean;
  readonly isUnsigned: boolean;
  /** Sums of the current series. */
  #sums = new Float64Array(0);
  /** Sums that do not fit into doubles, by slot. */
  #wide: Map<number, bigint> | undefined;
  #counts = new Float64Array(0);
  /** Slots in which it has rows. */
  #touched: number[] = [];

  constructor({ type }: AccumulatorOptions) {
    this.isFloat = type === 'float';
    this.isUnsigned = type === 'unsigned';
  }

  grow(slots: number): void {
    this.#sums = grown(this.#sums, slots);
    this.#counts = grown(this.#counts, slots);
  }

  add(slot: number, { column }: DenseRows, from: number, to: number): void {
    this.#touch(slot, to - from);
    const { numbers, wide } = column;
    let sum = this.#sums[slot]!;
    if (wide !== undefined) {
      let big = 0n;
      for (let i = from; i < to; i++) big += wide[i]!;
      this.#spill(slot, big);
      return;
    }
    if (this.isFloat) {
      for (let i = from; i < to; i++) sum += numbers[i]!;
    } else {
      for (let i = from; i < to; i++) {
        const next = sum + numbers[i]!;
        if (next > safe || next < -safe) {
          this.#spill(slot, BigInt(sum));
          sum = numbers[i]!;
        } else sum = next;
      }
    }
    this.#sums[slot] = sum;
  }

  addSummary(slot: number, summary: ColumnSummary): void {
    this.#touch(slot, summary.count);
    const { sum } = summary;
    if (typeof sum === 'bigint') this.#spill(slot, sum);
    else if (this.isFloat) this.#sums[slot]! += sum ?? 0;
    else {
      const next = this.#sums[slot]! + (sum ?? 0);
      if (Number.isSafeInteger(next)) this.#sums[slot] = next;
      else this.#spill(slot, BigInt(sum ?? 0));
    }
  }

  startSeries(): void {
    for (const slot of this.#touched) {
      const wide = this.#wide?.get(slot);
      const sum = this.#sums[slot]!;
      const total = wide === undefined ? sum : this.#wrap(wide + BigInt(sum));
      this.fold(slot, total, this.#counts[slot]!);
      this.#sums[slot] = 0;
      this.#counts[slot] = 0;
    }
    this.#wide = undefined;
    this.#touched = [];
  }

  finish(): void {
    this.startSeries();
  }

  abstract fold(slot: number, sum: number | bigint, count: number): void;
  abstract points(slots: Int32Array): Points;

  #wrap(value: bigint): bigint {
    return this.isUnsigned ? BigInt.asUintN(64, value) : BigInt.asIntN(64, value);
  }

  #touch(slot: number, count: number): void {
    if (this.#counts[slot] === 0) this.#touched.push(slot);
    this.#counts[slot]! += count;
  }

  #spill(slot: number, value: bigint): void {
    this.#wide ??= new Map();
    this.#wide.set(slot, (this.#wide.get(slot) ?? 0n) + value);
  }
}

export class Sum extends SeriesSums {
  readonly #sums: (number | bigint | undefined)[] = [];

  fold(slot: number, sum: number | bigint): void {
    const before = this.#sums[slot];
    if (before === undefined) this.#sums[slot] = sum;
    else if (this.isFloat) this.#sums[slot] = (before as number) + (sum as number);
    else {
      const total = BigInt(before) + BigInt(sum);
      const fits = total >= -maxSafe && total <= maxSafe;
      const wrapped = this.isUnsigned ? BigInt.asUintN(64, total) : BigInt.asIntN(64, total);
      this.#sums[slot] = fits ? Number(total) : wrapped;
    }
  }

  points(slots: Int32Array): Points {
    const type = this.isFloat ? 'float' : this.isUnsigned ? 'unsigned' : 'integer';
    return pointsOf(slots, type, (slot) => this.#sums[slot]).points;
  }
}

export class Mean extends SeriesSums {
  #weighted = new Float64Array(0);
  #rows = new Float64Array(0);

  override grow(slots: number): void {
    super.grow(slots);
    this.#weighted = grown(this.#weighted, slots);
    this.#rows = grown(this.#rows, slots);
  }

  fold(slot: number, sum: number | bigint, count: number): void {
    const mean = Number(sum) / count;
    this.#weighted[slot]! += count > 1 ? mean * count : mean;
    this.#rows[slot]! += count;
  }

  points(slots: Int32Array): Points {
    return pointsOf(slots, 'float', (slot) => {
      const count = this.#rows[slot]!;
      if (count === 0) return undefined;
      const mean = this.#weighted[slot]! / count;
      // One more step of the same kind, for that is how often InfluxDB rounds.
      return count > 1 ? (mean * count) / count : mean;
    }).points;
  }
}

export class Spread implements Accumulator {
  readonly #type: AccumulatorOptions['type'];
  readonly #least: Extreme;
  readonly #most: Extreme;

  constructor(options: AccumulatorOptions) {
    const plain = { ...options, keepsTime: false, aux: [] };
    this.#type = options.type;
    this.#least = new Extreme(plain, -1);
    this.#most = new Extreme(plain, 1);
  }

  grow(slots: number): void {
    this.#least.grow(slots);
    this.#most.grow(slots);
  }

  add(slot: number, rows: DenseRows, from: number, to: number): void {
    this.#least.add(slot, rows, from, to);
    this.#most.add(slot, rows, from, to);
  }

  addSummary(slot: number, summary: ColumnSummary, base: number): void {
    this.#least.addSummary(slot, summary, base);
    this.#most.addSummary(slot, summary, base);
  }

  startSeries(): void {}
  finish(): void {}

  points(slots: Int32Array): Points {
    return pointsOf(slots, this.#type, (slot) => {
      const least = this.#least.value(slot);
      const most = this.#most.value(slot);
      if (least === undefined || most === undefined) return undefined;
      if (this.#type === 'float') return (most as number) - (least as number);
      const spread = BigInt(most) - BigInt(least);
      return this.#type === 'unsigned' ? spread : BigInt.asIntN(64, spread);
    }).points;
  }
}
