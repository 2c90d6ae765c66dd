// Columns of values on their way through a statement: reading, copying and building them.

import type { Column } from '../../../../universal-row/series/column.ts';
import type { FieldType } from '../../../../universal-row/series/field-type.ts';
import type { Value } from '../result.ts';

/**
 * Rows in the order of a statement. Times are `base` Unix seconds and whole nanoseconds within ±2^53.
 * A vector from a stream may be read until that stream is asked again.
 */
export interface Chunk {
  readonly base: number;
  readonly times: Float64Array;
  readonly count: number;
  /** undefined where no row has a value. */
  readonly columns: readonly (Column | undefined)[];
}

/** Something was done, but there are no rows yet: ask again, with a look at the clock between. */
export const pending: unique symbol = Symbol('pending');

/** Rows piece by piece; undefined at the end. Each call does a bounded amount of work. */
export interface Stream {
  next(): Chunk | typeof pending | undefined;
}

export const noNumbers: Float64Array = new Float64Array(0);
export const chunkRows = 4096;

/**
 * Negative, zero or positive as a is before, at or after b. Exact for times near each other, for a sum
 * that small is one of the doubles; others are too far apart to be mistaken.
 */
export function compareTimes(aBase: number, a: number, bBase: number, b: number): number {
  return (aBase - bBase) * 1e9 + a - b;
}

export function bigTime(base: number, offset: number): bigint {
  return BigInt(base) * 1_000_000_000n + BigInt(offset);
}

/** Start of the whole second at or before a time. */
export function baseOf(time: bigint): number {
  const seconds = time / 1_000_000_000n;
  return Number(seconds * 1_000_000_000n > time ? seconds - 1n : seconds);
}

export function offsetFrom(base: number, time: bigint): number {
  return Number(time - BigInt(base) * 1_000_000_000n);
}

export function has(column: Column | undefined, row: number): column is Column {
  return column !== undefined && (column.present === undefined || column.present[row] === 1);
}

/** The value in a row that has one: a number also for booleans, a bigint when the column is wide. */
export function scalarAt(column: Column, row: number): number | bigint | string {
  if (column.wide !== undefined) return column.wide[row]!;
  if (column.texts !== undefined) return column.texts[row]!;
  return column.numbers[row]!;
}

/** The value as a double, for any stored type except strings. */
export function numberAt(column: Column, row: number): number {
  return column.wide === undefined ? column.numbers[row]! : Number(column.wide[row]!);
}

/** Value shown in an answer. NaN is null. */
export function valueAt(column: Column | undefined, row: number): Value {
  if (!has(column, row)) return null;
  if (column.texts !== undefined) return column.texts[row]!;
  if (column.wide !== undefined) {
    const value = column.wide[row]!;
    return value >= -maxSafe && value <= maxSafe ? Number(value) : value;
  }
  const value = column.numbers[row]!;
  if (column.type === 'boolean') return value !== 0;
  return Number.isNaN(value) ? null : value;
}

export const maxSafe = BigInt(Number.MAX_SAFE_INTEGER);

/** Setting the length of an array costs more than to add so many elements. */
const fewElements = 16;

/** An array of that length, to be filled. */
export function arrayOf<T>(length: number): T[] {
  const array: T[] = [];
  if (length > fewElements) array.length = length;
  return array;
}

export function repeated<T>(value: T, length: number): T[] {
  const array = arrayOf<T>(length);
  for (let i = 0; i < length; i++) array[i] = value;
  return array;
}

export function constantText(text: string, count: number): Column {
  const texts = repeated(text, count);
  return { type: 'string', numbers: noNumbers, wide: undefined, texts, present: undefined };
}

export function numberColumn(type: FieldType, numbers: Float64Array, present?: Uint8Array): Column {
  return { type, numbers, wide: undefined, texts: undefined, present };
}

/** The rows at `rows[0..count)`, in arrays of their own. A negative row has no value. */
export function gather(column: Column, rows: Int32Array, count: number): Column {
  let present: Uint8Array | undefined;
  const from = column.present;
  for (let i = 0; i < count; i++) {
    const row = rows[i]!;
    if (row >= 0 && (from === undefined || from[row] === 1)) continue;
    if (present === undefined) present = new Uint8Array(count).fill(1);
    present[i] = 0;
  }
  const { type } = column;
  if (column.texts !== undefined) {
    const texts = arrayOf<string>(count);
    for (let i = 0; i < count; i++) texts[i] = rows[i]! < 0 ? '' : column.texts[rows[i]!]!;
    return { type, numbers: noNumbers, wide: undefined, texts, present };
  }
  if (column.wide !== undefined) {
    const wide = type === 'unsigned' ? new BigUint64Array(count) : new BigInt64Array(count);
    for (let i = 0; i < count; i++) if (rows[i]! >= 0) wide[i] = column.wide[rows[i]!]!;
    return { type, numbers: noNumbers, wide, texts: undefined, present };
  }
  const numbers = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    const row = rows[i]!;
    if (row >= 0) numbers[i] = column.numbers[row]!;
  }
  return { type, numbers, wide: undefined, texts: undefined, present };
}

/** Rows `[from, to)`, sharing the arrays. */
export function slice(chunk: Chunk, from: number, to: number): Chunk {
  if (from === 0 && to === chunk.count) return chunk;
  return {
    base: chunk.base,
    times: chunk.times.subarray(from, to),
    count: to - from,
    columns: chunk.columns.map((column) => column && sliceColumn(column, from, to)),
  };
}

function sliceColumn(column: Column, from: number, to: number): Column {
  return {
    type: column.type,
    numbers: column.numbers.subarray(from, to),
    wide: column.wide?.subarray(from, to),
    texts: column.texts?.slice(from, to),
    present: column.present?.subarray(from, to),
  };
}

/** The column as another type: numbers become each other, integers by cutting. Others have no value. */
export function cast(column: Column, type: FieldType, count: number): Column | undefined {
  if (column.type === type) return column;
  const { present } = column;
  if (!isNumber(column.type) || !isNumber(type)) return undefined;
  if (type === 'float') {
    if (column.wide === undefined) return { ...column, type };
    const numbers = new Float64Array(count);
    for (let i = 0; i < count; i++) numbers[i] = Number(column.wide[i]!);
    return numberColumn('float', numbers, present);
  }
  const builder = new ColumnBuilder(type);
  for (let i = 0; i < count; i++) {
    if (!has(column, i)) builder.pushNull();
    else if (column.wide !== undefined) builder.pushBig(column.wide[i]!);
    else builder.pushBig(toInteger(column.numbers[i]!));
  }
  return builder.take();
}

const int64Min = -(2n ** 63n);

/**
 * Truncates a double to an integer as the processor does: values out of range become the lowest
 * integer.
 */
export function toInteger(value: number): bigint {
  if (!(value >= -(2 ** 63) && value < 2 ** 63)) return int64Min;
  return BigInt(Math.trunc(value));
}

export function isNumber(type: FieldType): boolean {
  return type !== 'string' && type !== 'boolean';
}

/** A column that grows row by row. Integers may be given as either kind; it finds out how to keep them. */
export class ColumnBuilder {
  readonly type: FieldType;
  count = 0;
  #numbers = noNumbers;
  #wide: BigInt64Array | BigUint64Array | undefined;
  #texts: string[] | undefined;
  #present: Uint8Array | undefined;
  #values = 0;

  constructor(type: FieldType) {
    this.type = type;
    if (type === 'string') this.#texts = [];
  }

  push(value: number | bigint | string): void {
    if (typeof value === 'number') this.pushNumber(value);
    else if (typeof value === 'bigint') this.pushBig(value);
    else {
      this.#grow();
      this.#mark(1);
      this.#texts![this.count++] = value;
    }
  }

  pushNumber(value: number): void {
    this.#grow();
    this.#mark(1);
    if (this.#wide === undefined) {
      if (this.type === 'integer' || this.type === 'unsigned') {
        // Beyond this a double may be a rounded integer; callers that care give a bigint.
        if (!Number.isSafeInteger(value)) {
          this.#widen();
          this.#wide![this.count++] = toInteger(value);
          return;
        }
        // An integer has no negative zero.
        this.#numbers[this.count++] = value + 0;
      } else this.#numbers[this.count++] = value;
    } else this.#wide[this.count++] = BigInt(value);
  }

  pushBig(value: bigint): void {
    if (this.#wide === undefined && value >= -maxSafe && value <= maxSafe) {
      this.pushNumber(Number(value));
      return;
    }
    this.#grow();
    this.#mark(1);
    if (this.#wide === undefined) this.#widen();
    this.#wide![this.count++] = value;
  }

  pushNull(): void {
    this.#grow();
    this.#mark(0);
    if (this.#texts !== undefined) this.#texts[this.count] = '';
    this.count++;
  }

  pushFrom(column: Column | undefined, row: number): void {
    if (!has(column, row)) this.pushNull();
    else this.push(scalarAt(column, row));
  }

  /** Values appended since the last take; undefined if all are null. The builder is empty again. */
  take(): Column | undefined {
    const { type } = this;
    const column: Column = {
      type,
      numbers: this.#numbers,
      wide: this.#wide,
      texts: this.#texts,
      present: this.#present,
    };
    const isEmpty = this.#values === 0;
    this.count = 0;
    this.#values = 0;
    this.#numbers = noNumbers;
    this.#wide = undefined;
    this.#present = undefined;
    this.#texts = type === 'string' ? [] : undefined;
    return isEmpty ? undefined : column;
  }

  #mark(present: 0 | 1): void {
    this.#values += present;
    if (this.#present !== undefined) this.#present[this.count] = present;
    else if (present === 0) {
      this.#present = new Uint8Array(Math.max(16, this.#capacity)).fill(1, 0, this.count);
    }
  }

  get #capacity(): number {
    if (this.#texts !== undefined) return this.#present?.length ?? this.count + 16;
    return this.#wide?.length ?? this.#numbers.length;
  }

  #grow(): void {
    const { count } = this;
    if (this.#texts === undefined && count >= this.#capacity) {
      const capacity = Math.max(16, count * 2);
      if (this.#wide === undefined) {
        const grown = new Float64Array(capacity);
        grown.set(this.#numbers);
        this.#numbers = grown;
      } else {
        const grown = this.#newWide(capacity);
        grown.set(this.#wide as BigInt64Array);
        this.#wide = grown;
      }
    }
    if (this.#present !== undefined && count >= this.#present.length) {
      const grown = new Uint8Array(Math.max(16, count * 2));
      grown.set(this.#present);
      this.#present = grown;
    }
  }

  #newWide(capacity: number): BigInt64Array | BigUint64Array {
    return this.type === 'unsigned' ? new BigUint64Array(capacity) : new BigInt64Array(capacity);
  }

  #widen(): void {
    const wide = this.#newWide(this.#numbers.length);
    for (let i = 0; i < this.count; i++) wide[i] = BigInt(this.#numbers[i]!);
    this.#wide = wide;
  }
}
