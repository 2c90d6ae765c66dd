// Rows that a cursor or a compaction puts together from several sources. The arrays are its own, and are
// used again for the next rows.

import type { Column, Scalar } from '../../../universal-row/series/column.ts';
import type { FieldType } from '../../../universal-row/series/field-type.ts';
import type { Rows } from '../parts.ts';

// Below this many, a loop is faster than the view object that `set` and `fill` need.
const fewRows = 24;
const leastCapacity = 4;

export class RowBuffer {
  count = 0;
  times = new Float64Array(leastCapacity);
  readonly #columns: ColumnBuffer[];

  constructor(types: readonly FieldType[]) {
    this.#columns = types.map((type) => new ColumnBuffer(type));
  }

  clear(): void {
    this.count = 0;
    for (const column of this.#columns) column.clear();
  }

  /** Copies rows [lo, hi), last first when `reversed`. */
  append(rows: Rows, lo: number, hi: number, reversed: boolean): void {
    const n = hi - lo;
    this.#reserve(n);
    copyNumbers(this.times, this.count, rows.times, lo, n, reversed);
    for (let c = 0; c < this.#columns.length; c++) {
      const from = rows.columns[c];
      const into = this.#columns[c]!;
      if (from === undefined) into.appendAbsent(this.count, n);
      else into.append(this.count, from, lo, n, reversed);
    }
    this.count += n;
  }

  /** Adds a row without values, for `overlay` to fill. */
  appendRow(time: number): void {
    this.#reserve(1);
    this.times[this.count] = time;
    for (const column of this.#columns) column.appendAbsent(this.count, 1);
    this.count++;
  }

  /** Overlays a row's values over those of the row added last. */
  overlay(rows: Rows, row: number): void {
    for (let c = 0; c < this.#columns.length; c++) {
      const from = rows.columns[c];
      if (from === undefined || (from.present !== undefined && from.present[row] === 0)) continue;
      this.#columns[c]!.replace(this.count - 1, from, row);
    }
  }

  /** Sets a value of the row added last. */
  set(column: number, value: Scalar): void {
    this.#columns[column]!.set(this.count - 1, value);
  }

  /** As columns; undefined where no row has a value. */
  columns(): (Column | undefined)[] {
    return this.#columns.map((column) => column.finish(this.count));
  }

  rows(): Rows {
    return { count: this.count, times: this.times, columns: this.columns() };
  }

  #reserve(n: number): void {
    const needed = this.count + n;
    const capacity = this.times.length;
    if (needed <= capacity) return;
    const times = new Float64Array(Math.max(needed, capacity * 2));
    times.set(this.times);
    this.times = times;
    for (const column of this.#columns) column.grow(times.length);
  }
}

class ColumnBuffer {
  readonly #type: FieldType;
  #numbers = new Float64Array(leastCapacity);
  #wide: BigInt64Array | BigUint64Array | undefined;
  #texts: string[] | undefined;
  #present: Uint8Array | undefined;
  /** Rows that have a value. */
  #values = 0;

  constructor(type: FieldType) {
    this.#type = type;
    if (type === 'string') this.#texts = [];
  }

  clear(): void {
    this.#wide = undefined;
    this.#present = undefined;
    this.#values = 0;
  }

  grow(capacity: number): void {
    const numbers = new Float64Array(capacity);
    numbers.set(this.#numbers);
    this.#numbers = numbers;
    if (this.#present !== undefined) {
      const present = new Uint8Array(capacity);
      present.set(this.#present);
      this.#present = present;
    }
    if (this.#wide !== undefined) {
      const wide = this.#newWide(capacity);
      wide.set(this.#wide);
      this.#wide = wide;
    }
  }

  append(at: number, from: Column, lo: number, n: number, reversed: boolean): void {
    this.#appendPresence(at, from.present, lo, n, reversed);
    if (from.texts !== undefined) {
      const texts = this.#texts!;
      for (let i = 0; i < n; i++) texts[at + i] = from.texts[reversed ? lo + n - 1 - i : lo + i]!;
      return;
    }
    if (from.wide === undefined && this.#wide === undefined) {
      copyNumbers(this.#numbers, at, from.numbers, lo, n, reversed);
      return;
    }
    const wide = this.#widen(at);
    for (let i = 0; i < n; i++) {
      const row = reversed ? lo + n - 1 - i : lo + i;
      wide[at + i] = wideValue(from, row);
    }
  }

  appendAbsent(at: number, n: number): void {
    const present = this.#presenceBefore(at);
    fillBytes(present, 0, at, at + n);
    if (this.#texts !== undefined) for (let i = 0; i < n; i++) this.#texts[at + i] = '';
  }

  replace(at: number, from: Column, row: number): void {
    this.#mark(at);
    if (from.texts !== undefined) this.#texts![at] = from.texts[row]!;
    else if (from.wide === undefined && this.#wide === undefined) {
      this.#numbers[at] = from.numbers[row]!;
    } else this.#widen(at)[at] = wideValue(from, row);
  }

  set(at: number, value: Scalar): void {
    this.#mark(at);
    if (typeof value === 'string') this.#texts![at] = value;
    else if (typeof value === 'bigint') this.#widen(at)[at] = value;
    else if (this.#wide !== undefined) this.#wide[at] = BigInt(value);
    else this.#numbers[at] = value;
  }

  finish(count: number): Column | undefined {
    if (this.#values === 0) return undefined;
    return {
      type: this.#type,
      numbers: this.#numbers,
      wide: this.#wide,
      texts: this.#texts,
      present: this.#values === count ? undefined : this.#present,
    };
  }

  /** The row at `at` has a value. */
  #mark(at: number): void {
    if (this.#present === undefined || this.#present[at] === 1) return;
    this.#present[at] = 1;
    this.#values++;
  }

  #appendPresence(
    at: number,
    from: Uint8Array | undefined,
    lo: number,
    n: number,
    reversed: boolean,
  ): void {
    if (from === undefined) {
      if (this.#present !== undefined) fillBytes(this.#present, 1, at, at + n);
      this.#values += n;
      return;
    }
    const present = this.#presenceBefore(at);
    let values = 0;
    for (let i = 0; i < n; i++) {
      const has = from[reversed ? lo + n - 1 - i : lo + i]!;
      present[at + i] = has;
      values += has;
    }
    this.#values += values;
  }

  /** Presence array, valid for the rows before `at`. */
  #presenceBefore(at: number): Uint8Array {
    if (this.#present === undefined) {
      this.#present = new Uint8Array(this.#numbers.length);
      fillBytes(this.#present, 1, 0, at);
    }
    return this.#present;
  }

  /** Makes the column wide, the rows before `at` and `at` itself included. */
  #widen(at: number): BigInt64Array | BigUint64Array {
    if (this.#wide !== undefined) return this.#wide;
    const wide = this.#newWide(this.#numbers.length);
    const present = this.#present;
    for (let i = 0; i < at; i++) {
      if (present === undefined || present[i] === 1) wide[i] = BigInt(this.#numbers[i]!);
    }
    this.#wide = wide;
    return wide;
  }

  #newWide(capacity: number): BigInt64Array | BigUint64Array {
    return this.#type === 'unsigned' ? new BigUint64Array(capacity) : new BigInt64Array(capacity);
  }
}

/** A value that is there. */
export function scalarAt(column: Column, row: number): Scalar {
  if (column.texts !== undefined) return column.texts[row]!;
  return column.wide === undefined ? column.numbers[row]! : column.wide[row]!;
}

function wideValue(column: Column, row: number): bigint {
  if (column.wide !== undefined) return column.wide[row]!;
  // Where there is no value the number may be anything.
  if (column.present !== undefined && column.present[row] === 0) return 0n;
  return BigInt(column.numbers[row]!);
}

function copyNumbers(
  to: Float64Array,
  at: number,
  from: Float64Array,
  lo: number,
  n: number,
  reversed: boolean,
): void {
  if (reversed) for (let i = 0, j = lo + n - 1; i < n; i++, j--) to[at + i] = from[j]!;
  else if (n <= fewRows) for (let i = 0; i < n; i++) to[at + i] = from[lo + i]!;
  else to.set(from.subarray(lo, lo + n), at);
}

function fillBytes(bytes: Uint8Array, value: number, from: number, to: number): void {
  if (to - from <= fewRows) for (let i = from; i < to; i++) bytes[i] = value;
  else bytes.fill(value, from, to);
}
