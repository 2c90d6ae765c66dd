// Counts, sums, least and greatest values by slot and column, as summaries have them: a slot is a bucket of
// a group.

import type { Column, ColumnSummary } from '../../../universal-row/series/column.ts';
import type { FieldType } from '../../../universal-row/series/field-type.ts';

const maxSafe = Number.MAX_SAFE_INTEGER;

/** Sum of integers that do not fit into doubles. */
interface Wide {
  min: bigint;
  max: bigint;
  sum: bigint;
}

/** One column of all slots. */
export class ColumnTotals {
  readonly #type: FieldType;
  readonly #counts: Float64Array;
  readonly #sums: Float64Array;
  readonly #mins: Float64Array;
  readonly #maxs: Float64Array;
  readonly #wide = new Map<number, Wide>();

  constructor(type: FieldType, slots: number) {
    this.#type = type;
    this.#counts = new Float64Array(slots);
    this.#sums = new Float64Array(slots);
    this.#mins = new Float64Array(slots).fill(Infinity);
    this.#maxs = new Float64Array(slots).fill(-Infinity);
  }

  /** Rows [lo, hi) of a column of the type. */
  add(slot: number, column: Column, lo: number, hi: number): void {
    const { numbers, present } = column;
    if (this.#type === 'string') {
      this.#counts[slot]! += present === undefined ? hi - lo : ones(present, lo, hi);
      return;
    }
    if (column.wide !== undefined) {
      this.#addWide(slot, column.wide, present, lo, hi);
      return;
    }
    let count = 0;
    let sum = this.#sums[slot]!;
    let min = this.#mins[slot]!;
    let max = this.#maxs[slot]!;
    for (let i = lo; i < hi; i++) {
      if (present !== undefined && present[i] === 0) continue;
      const value = numbers[i]!;
      const next = sum + value;
      if (next <= maxSafe && next >= -maxSafe) sum = next;
      else {
        this.#spill(slot, sum);
        sum = value;
      }
      if (value < min) min = value;
      if (value > max) max = value;
      count++;
    }
    this.#counts[slot]! += count;
    this.#sums[slot] = sum;
    this.#mins[slot] = min;
    this.#maxs[slot] = max;
  }

  addSummary(slot: number, { count, min, max, sum }: ColumnSummary): void {
    this.#counts[slot]! += count;
    for (const each of [min, max]) {
      if (typeof each === 'bigint') this.#extend(slot, each, each, 0n);
      else if (typeof each === 'number') {
        this.#mins[slot] = Math.min(this.#mins[slot]!, each);
        this.#maxs[slot] = Math.max(this.#maxs[slot]!, each);
      }
    }
    if (typeof sum === 'bigint') this.#spill(slot, sum);
    else if (sum !== undefined) {
      const next = this.#sums[slot]! + sum;
      if (next <= maxSafe && next >= -maxSafe) this.#sums[slot] = next;
      else this.#spill(slot, sum);
    }
  }

  /** Undefined when no row had a value. There is no sum of floats, which would tell in which order they came. */
  summary(slot: number, time: number): ColumnSummary | undefined {
    const type = this.#type;
    const count = this.#counts[slot]!;
    if (count === 0) return undefined;
    const known = { type, count, first: 0, firstTime: time, last: 0, lastTime: time };
    if (type === 'string') return { ...known, min: undefined, max: undefined, sum: undefined };
    const [least, most] = [this.#mins[slot]!, this.#maxs[slot]!];
    const wide = this.#wide.get(slot);
    if (wide === undefined) {
      const hasSum = type === 'integer' || type === 'unsigned';
      return { ...known, min: least, max: most, sum: hasSum ? this.#sums[slot]! : undefined };
    }
    const min = least < wide.min ? least : asScalar(wide.min);
    const max = most > wide.max ? most : asScalar(wide.max);
    const sum = wide.sum + BigInt(this.#sums[slot]!);
    const wrapped = type === 'unsigned' ? BigInt.asUintN(64, sum) : BigInt.asIntN(64, sum);
    return { ...known, min, max, sum: asScalar(wrapped) };
  }

  #addWide(
    slot: number,
    values: BigInt64Array | BigUint64Array,
    present: Uint8Array | undefined,
    lo: number,
    hi: number,
  ): void {
    for (let i = lo; i < hi; i++) {
      if (present !== undefined && present[i] === 0) continue;
      const value = values[i]!;
      this.#counts[slot]!++;
      this.#extend(slot, value, value, value);
    }
  }

  #extend(slot: number, min: bigint, max: bigint, sum: bigint): void {
    const wide = this.#wide.get(slot);
    if (wide === undefined) {
      this.#wide.set(slot, { min, max, sum });
      return;
    }
    if (min < wide.min) wide.min = min;
    if (max > wide.max) wide.max = max;
    wide.sum += sum;
  }

  /** A part of the sum that the double has no room for. Floats have no sum to be exact. */
  #spill(slot: number, part: number | bigint): void {
    if (this.#type !== 'integer' && this.#type !== 'unsigned') return;
    const wide = this.#wide.get(slot);
    if (wide !== undefined) wide.sum += BigInt(part);
    else {
      // No value is below or above these, so any value replaces them.
      const [min, max] = [2n ** 64n, -(2n ** 64n)];
      this.#wide.set(slot, { min, max, sum: BigInt(part) });
    }
  }
}

function ones(present: Uint8Array, lo: number, hi: number): number {
  let count = 0;
  for (let i = lo; i < hi; i++) count += present[i]!;
  return count;
}

/** Small integers are numbers. */
function asScalar(value: bigint): number | bigint {
  const small = Number(value);
  return Number.isSafeInteger(small) ? small : value;
}
