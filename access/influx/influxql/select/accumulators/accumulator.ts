// Aggregates of one group of rows, by bucket. Buckets are numbered slots in the order they first appear.

import type { Column, ColumnSummary } from '../../../../../universal-row/series/column.ts';
import type { FieldType } from '../../../../../universal-row/series/field-type.ts';
import type { RunMemory } from '../context.ts';
import type { Chunk } from '../vector.ts';
import { ColumnBuilder, has, scalarAt } from '../vector.ts';

/** Rows of one series that all have a value, ascending or descending in time. */
export interface DenseRows {
  readonly base: number;
  readonly times: Float64Array;
  readonly count: number;
  readonly column: Column;
  /** Chunk and row the values come from; undefined when unchanged. */
  readonly chunk: Chunk;
  readonly rowIds: Int32Array | undefined;
}

/** Result of a call, point by point in the order of the answer. */
export interface Points {
  readonly count: number;
  /** Of each point: its index in the requested list of slots. */
  readonly places: Int32Array;
  /** Times of the points as seconds and nanoseconds, if they differ from the bucket's time. */
  readonly times: { readonly bases: Float64Array; readonly offsets: Float64Array } | undefined;
  readonly column: Column | undefined;
  /** Other columns of the chosen rows. */
  readonly aux: readonly (Column | undefined)[];
}

export interface Accumulator {
  /** Slots up to `slots - 1` are going to be used. */
  grow(slots: number): void;
  /** Rows `[from, to)` are all in the slot's bucket. */
  add(slot: number, rows: DenseRows, from: number, to: number): void;
  /** Rows that only a summary is known of. */
  addSummary(slot: number, summary: ColumnSummary, base: number): void;
  /** Begins the next series; `tag` reads its tags. */
  startSeries(tag: (name: string) => string): void;
  /** After the last row. */
  finish(): void;
  /** `slots` in the order of the answer. Slots without a value give no point. */
  points(slots: Int32Array): Points;
}

export interface AccumulatorOptions {
  readonly type: FieldType;
  /** Type of the results. */
  readonly resultType: FieldType;
  readonly parameter: number | undefined;
  readonly tags: readonly string[];
  /** Points keep the time of the row they were taken from. */
  readonly keepsTime: boolean;
  /** Columns of the chunks whose values are returned with each point, and their types. */
  readonly aux: readonly { readonly index: number; readonly type: FieldType }[];
  readonly hasInterval: boolean;
  readonly memory: RunMemory;
}

/** Values by slot, of any number of slots. */
export function grown(values: Float64Array, slots: number): Float64Array<ArrayBuffer> {
  if (values.length >= slots) return values as Float64Array<ArrayBuffer>;
  const more = new Float64Array(Math.max(slots, values.length * 2, 16));
  more.set(values);
  return more;
}

export type Scalar = number | bigint | string;

/** Values of other columns in the rows that were chosen, by slot. */
export class AuxValues {
  readonly #columns: AccumulatorOptions['aux'];
  readonly #values: (Scalar | undefined)[][];

  constructor(columns: AccumulatorOptions['aux']) {
    this.#columns = columns;
    this.#values = columns.map(() => []);
  }

  set(slot: number, rows: DenseRows, row: number): void {
    if (this.#columns.length === 0) return;
    const from = rows.rowIds === undefined ? row : rows.rowIds[row]!;
    this.#columns.forEach(({ index }, i) => {
      const column = rows.chunk.columns[index];
      this.#values[i]![slot] = has(column, from) ? scalarAt(column, from) : undefined;
    });
  }

  columns(slots: readonly number[]): (Column | undefined)[] {
    return this.#columns.map(({ type }, i) => {
      const builder = new ColumnBuilder(type);
      for (const slot of slots) {
        const value = this.#values[i]![slot];
        if (value === undefined) builder.pushNull();
        else builder.push(value);
      }
      return builder.take();
    });
  }
}

/** Makes the points of calls with at most one point a slot. */
export function pointsOf(
  slots: Int32Array,
  type: FieldType,
  valueOf: (slot: number) => Scalar | undefined,
): { readonly found: number[]; readonly points: Points } {
  const builder = new ColumnBuilder(type);
  const places: number[] = [];
  const found: number[] = [];
  for (let i = 0; i < slots.length; i++) {
    const value = valueOf(slots[i]!);
    if (value === undefined) continue;
    builder.push(value);
    places.push(i);
    found.push(slots[i]!);
  }
  const points: Points = {
    count: found.length,
    places: Int32Array.from(places),
    times: undefined,
    column: builder.take(),
    aux: [],
  };
  return { found, points };
}
