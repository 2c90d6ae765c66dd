// The rows of one measurement in a head, in the order they came. Each row knows the one before it of the
// same series, so that a series is read by walking its own rows.

import type { FieldType } from '../../../universal-row/series/field-type.ts';
import { ColumnPages } from './column-pages.ts';
import { Form, type PackedColumn, valuesOf } from './packed-column.ts';
import { type PagePool, pageRows, pageShift } from './page-pool.ts';

const offsetMask = pageRows - 1;
const firstPageRows = 64;

export interface HeadField {
  readonly type: FieldType;
  readonly pages: ColumnPages;
}

export class HeadTable {
  readonly measurement: number;
  /** Among the tables of the head, in the order they were made. */
  readonly ordinal: number;
  rows = 0;
  bytes = 0;
  /** By number. */
  readonly fields: (HeadField | undefined)[] = [];
  /** By page: nanoseconds after the start of the shard. */
  readonly times: Float64Array[] = [];
  /** By page: the row before it of the same series plus one; 0 for the first. */
  readonly previous: Int32Array[] = [];
  readonly #pool: PagePool;

  constructor(measurement: number, ordinal: number, pool: PagePool) {
    this.measurement = measurement;
    this.ordinal = ordinal;
    this.#pool = pool;
  }

  /** Room for the times and predecessors of so many more rows. */
  reserve(count: number): void {
    const end = this.rows + count;
    for (let page = this.rows >>> pageShift; page << pageShift < end; page++) {
      const needed = Math.min(pageRows, end - (page << pageShift));
      const times = this.times[page];
      if (times !== undefined && needed <= times.length) continue;
      let length = times?.length ?? firstPageRows;
      while (length < needed) length *= 2;
      this.#lengthen(page, length);
    }
  }

  #lengthen(page: number, length: number): void {
    const full = length === pageRows;
    const times = full ? this.#pool.take(Form.f64) : valuesOf(Form.f64, length);
    const previous = full ? this.#pool.take(Form.i32) : valuesOf(Form.i32, length);
    const old = this.times[page];
    if (old !== undefined) {
      (times as Float64Array).set(old);
      (previous as Int32Array).set(this.previous[page]!);
      this.bytes -= old.length * 12;
    }
    this.times[page] = times as Float64Array;
    this.previous[page] = previous as Int32Array;
    this.bytes += length * 12;
  }

  /** Values of rows yet to be counted; for strings, their places in the head's arena. */
  appendColumn(number: number, column: PackedColumn): void {
    let field = this.fields[number];
    if (field === undefined) {
      field = { type: column.type, pages: new ColumnPages(this.#pool) };
      while (this.fields.length <= number) this.fields.push(undefined);
      this.fields[number] = field;
    }
    const { pages } = field;
    this.bytes -= pages.bytes;
    const { form, values, count, rows } = column;
    if (rows === undefined) pages.append(this.rows, form, values, count);
    else pages.appendSome(this.rows, rows, form, values, count);
    this.bytes += pages.bytes;
  }

  timeOf(row: number): number {
    return this.times[row >>> pageShift]![row & offsetMask]!;
  }

  release(): void {
    for (const page of this.times) this.#pool.give(Form.f64, page);
    for (const page of this.previous) this.#pool.give(Form.i32, page);
    for (const field of this.fields) field?.pages.release();
    this.times.length = 0;
    this.previous.length = 0;
    this.fields.length = 0;
    this.rows = 0;
    this.bytes = 0;
  }
}
