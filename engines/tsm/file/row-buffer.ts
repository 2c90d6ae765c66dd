// Rows that wait to become a block. The arrays are reused for the next rows, regardless of their fields.

import type { Column } from '../../../universal-row/series/column.ts';
import type { FieldType } from '../../../universal-row/series/field-type.ts';
import type { Rows } from '../parts.ts';

type Wide = BigInt64Array | BigUint64Array;

class BufferedColumn {
  type: FieldType = 'float';
  numbers = new Float64Array(0);
  wide: Wide | undefined;
  texts: string[] = [];
  /** Zero where nothing was put. */
  present = new Uint8Array(0);
  /** Rows with a value. */
  count = 0;
  used = false;
}

export class RowBuffer {
  times = new Float64Array(0);
  count = 0;
  /** Approximate size of the strings, in UTF-16 units. */
  textUnits = 0;
  #bytes = 0;
  /** Field numbers in use, in no order. */
  #used: number[] = [];
  readonly #columns: (BufferedColumn | undefined)[] = [];

  /** Memory used, approximate; never decreases. */
  get bytes(): number {
    return this.#bytes;
  }

  append(rows: Rows, start: number, count: number): void {
    const end = this.count + count;
    if (end > this.times.length) {
      this.times = this.#grown(this.times, new Float64Array(roomFor(end)));
    }
    this.times.set(rows.times.subarray(start, start + count), this.count);
    rows.columns.forEach((column, field) => {
      if (column !== undefined) this.#append(field, column, start, count);
    });
    this.count = end;
  }

  /** Fields with a value in the first `count` rows, ascending. */
  fields(count: number): number[] {
    return this.#used
      .filter((field) => {
        const column = this.#columns[field]!;
        return column.count > 0 && column.present.subarray(0, count).includes(1);
      })
      .sort((a, b) => a - b);
  }

  column(field: number): Column {
    const column = this.#columns[field]!;
    // The last rows may have nothing of it.
    if (column.present.length < this.count) {
      column.present = this.#grown(column.present, new Uint8Array(roomFor(this.count)));
    }
    const { type, numbers, wide, texts, present, count } = column;
    return {
      type,
      numbers,
      wide,
      texts: type === 'string' ? texts : undefined,
      present: count === this.count ? undefined : present,
    };
  }

  /** All of it, as rows that another buffer takes. */
  rows(): Rows {
    const columns: (Column | undefined)[] = [];
    for (const field of this.#used) columns[field] = this.column(field);
    return { count: this.count, times: this.times, columns };
  }

  /** The first rows are done with. */
  drop(count: number): void {
    const left = this.count - count;
    this.times.copyWithin(0, count, this.count);
    for (const field of this.#used) this.#drop(this.#columns[field]!, count);
    this.count = left;
    if (left > 0) return;
    this.#used = [];
    this.textUnits = 0;
  }

  #drop(column: BufferedColumn, count: number): void {
    const all = this.count;
    const left = all - count;
    column.present.copyWithin(0, count, all).fill(0, left, all);
    column.count = 0;
    for (let i = 0; i < left; i++) column.count += column.present[i] ?? 0;
    if (left === 0) {
      column.wide = undefined;
      column.texts = [];
      column.used = false;
      return;
    }
    if (column.type === 'string') {
      for (let i = 0; i < count; i++) this.textUnits -= column.texts[i]?.length ?? 0;
      column.texts = column.texts.slice(count, all);
    } else if (column.wide !== undefined) column.wide.copyWithin(0, count, all);
    else column.numbers.copyWithin(0, count, all);
  }

  #append(field: number, from: Column, start: number, count: number): void {
    const at = this.count;
    const end = at + count;
    const to = this.#columnFor(field, from.type);
    if (to.present.length < end) to.present = this.#grown(to.present, new Uint8Array(roomFor(end)));
    const before = to.count;
    if (from.present === undefined) {
      to.present.fill(1, at, end);
      to.count += count;
    } else {
      for (let i = 0; i < count; i++) {
        const flag = from.present[start + i]! === 0 ? 0 : 1;
        to.present[at + i] = flag;
        to.count += flag;
      }
      if (to.count === before) return;
    }
    if (from.type === 'string') this.#appendTexts(to, from, start, count);
    else if (from.wide !== undefined || to.wide !== undefined) {
      appendWide(to, from, start, count, at);
    } else {
      if (to.numbers.length < end) {
        to.numbers = this.#grown(to.numbers, new Float64Array(roomFor(end)));
      }
      to.numbers.set(from.numbers.subarray(start, start + count), at);
    }
  }

  #grown<A extends Float64Array | Uint8Array>(from: A, to: A): A {
    to.set(from);
    this.#bytes += to.byteLength - from.byteLength;
    return to;
  }

  #columnFor(field: number, type: FieldType): BufferedColumn {
    let column = this.#columns[field];
    if (column === undefined) {
      column = new BufferedColumn();
      this.#columns[field] = column;
    }
    if (column.used) return column;
    column.used = true;
    this.#used.push(field);
    column.type = type;
    return column;
  }

  #appendTexts(to: BufferedColumn, from: Column, start: number, count: number): void {
    while (to.texts.length < this.count) to.texts.push('');
    for (let i = start; i < start + count; i++) {
      const text = from.present === undefined || from.present[i] === 1 ? from.texts![i]! : '';
      to.texts.push(text);
      this.textUnits += text.length;
    }
  }
}

function appendWide(
  to: BufferedColumn,
  from: Column,
  start: number,
  count: number,
  at: number,
): void {
  const end = at + count;
  const make = (n: number): Wide =>
    to.type === 'unsigned' ? new BigUint64Array(n) : new BigInt64Array(n);
  let { wide } = to;
  if (wide === undefined || wide.length < end) {
    const larger = make(roomFor(end));
    for (let i = 0; i < at; i++) {
      if (to.present[i] === 1) larger[i] = wide?.[i] ?? BigInt(to.numbers[i]!);
    }
    wide = larger;
    to.wide = wide;
  }
  for (let i = 0; i < count; i++) {
    if (to.present[at + i] === 1) {
      wide[at + i] = from.wide?.[start + i] ?? BigInt(from.numbers[start + i]!);
    }
  }
}

function roomFor(rows: number): number {
  return Math.max(64, 2 ** Math.ceil(Math.log2(rows)));
}
