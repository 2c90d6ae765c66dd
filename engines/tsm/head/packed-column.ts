// A field of many rows as the log and the head hold it: only the values there are, in the narrowest
// numbers that are cheap to find.

import type { Column } from '../../../universal-row/series/column.ts';
import type { FieldType } from '../../../universal-row/series/field-type.ts';

/**
 * Booleans and small integers use the narrow types, floats doubles, and integers beyond 2^53 the
 * last one.
 */
export type Values = Int8Array | Int16Array | Int32Array | Float64Array | BigInt64Array;

/** Log encodings of the array types, ascending by range. Never change a number. */
export const Form = { i8: 0, i16: 1, i32: 2, f64: 3, i64: 4 } as const;
export type Form = (typeof Form)[keyof typeof Form];

/** Bytes of a value, by form. */
export const formBytes = [1, 2, 4, 8, 8] as const;

const kinds = [Int8Array, Int16Array, Int32Array, Float64Array, BigInt64Array] as const;

export function valuesOf(form: Form, count: number): Values {
  return new kinds[form](count);
}

export function valuesIn(form: Form, memory: ArrayBuffer, at: number, count: number): Values {
  return new kinds[form](memory, at, count);
}

/** The narrowest form that holds all whole numbers from `min` to `max`. */
function formFor(min: number, max: number): Form {
  if (min >= -0x80 && max <= 0x7f) return Form.i8;
  if (min >= -0x8000 && max <= 0x7fff) return Form.i16;
  if (min >= -0x8000_0000 && max <= 0x7fff_ffff) return Form.i32;
  return Form.f64;
}

/**
 * A `Column` for general readers, and its packed form for readers that know it. The values of a string column are
 * numbers of texts, as in PointColumn.
 */
export class PackedColumn implements Column {
  readonly type: FieldType;
  readonly form: Form;
  /** The values of the rows that have one, one after the other. */
  readonly values: Values;
  readonly count: number;
  /** Rows that have a value, ascending; undefined when all rows have one. */
  readonly rows: Uint32Array | undefined;
  /** All rows there are. */
  readonly rowCount: number;
  readonly texts = undefined;

  constructor(
    type: FieldType,
    form: Form,
    values: Values,
    count: number,
    rows: Uint32Array | undefined,
    rowCount: number,
  ) {
    this.type = type;
    this.form = form;
    this.values = values;
    this.count = count;
    this.rows = rows;
    this.rowCount = rowCount;
  }

  get numbers(): Float64Array {
    const { values, rows } = this;
    const numbers = new Float64Array(this.rowCount);
    if (this.form === Form.i64) return numbers;
    for (let k = 0; k < this.count; k++) {
      numbers[rows === undefined ? k : rows[k]!] = values[k] as number;
    }
    return numbers;
  }

  get wide(): BigInt64Array | BigUint64Array | undefined {
    if (this.form !== Form.i64) return undefined;
    const wide = new BigInt64Array(this.rowCount);
    for (let k = 0; k < this.count; k++) {
      wide[this.rows === undefined ? k : this.rows[k]!] = this.values[k] as bigint;
    }
    return this.type === 'unsigned' ? new BigUint64Array(wide.buffer) : wide;
  }

  get present(): Uint8Array | undefined {
    if (this.rows === undefined) return undefined;
    const present = new Uint8Array(this.rowCount);
    for (let k = 0; k < this.count; k++) present[this.rows[k]!] = 1;
    return present;
  }
}

/** The same of any column of `rowCount` rows. */
export function packColumn(column: Column, rowCount: number): PackedColumn {
  if (column instanceof PackedColumn) return column;
  const { type, present } = column;
  let rows: Uint32Array | undefined;
  let count = rowCount;
  if (present !== undefined) {
    rows = new Uint32Array(rowCount);
    count = 0;
    for (let row = 0; row < rowCount; row++) if (present[row] === 1) rows[count++] = row;
    if (count === rowCount) rows = undefined;
  }
  if (type !== 'string' && column.wide !== undefined) {
    const { wide } = column;
    const bits = new BigInt64Array(wide.buffer, wide.byteOffset, wide.length);
    const values = new BigInt64Array(count);
    for (let k = 0; k < count; k++) values[k] = bits[rows === undefined ? k : rows[k]!]!;
    return new PackedColumn(type, Form.i64, values, count, rows, rowCount);
  }
  const numbers = new Float64Array(count);
  for (let k = 0; k < count; k++) numbers[k] = column.numbers[rows === undefined ? k : rows[k]!]!;
  if (type === 'float') return new PackedColumn(type, Form.f64, numbers, count, rows, rowCount);
  const form = narrowest(numbers, count);
  const values = form === Form.f64 ? numbers : valuesOf(form, count);
  if (values !== numbers) (values as Int32Array).set(numbers);
  return new PackedColumn(type, form, values, count, rows, rowCount);
}

/** The narrowest form for whole numbers. */
export function narrowest(numbers: Float64Array, count: number): Form {
  let min = 0;
  let max = 0;
  for (let i = 0; i < count; i++) {
    const value = numbers[i]!;
    if (value < min) min = value;
    if (value > max) max = value;
  }
  return formFor(min, max);
}
