// One field of many points, in typed arrays, for writes, memory and reads. There is no object per point.

import type { FieldType } from './field-type.ts';

/**
 * Values by row. Floats, booleans (0 or 1) and integers within ±(2^53 - 1) are in `numbers`. As soon as
 * one integer of the column is beyond that, all of them are in `wide` and `numbers` means nothing:
 * readers of integers check `wide` first. Strings are in `texts`.
 *
 * Arrays may be longer than the rows there are.
 */
export interface Column {
  readonly type: FieldType;
  readonly numbers: Float64Array;
  /** Signed or, in an unsigned column, unsigned 64-bit values. */
  readonly wide: BigInt64Array | BigUint64Array | undefined;
  /** String columns only. Decoded from UTF-8, invalid bytes as U+FFFD. */
  readonly texts: readonly string[] | undefined;
  /** 1 where the row has a value; undefined when every row has one. Elsewhere the values mean nothing. */
  readonly present: Uint8Array | undefined;
}

/**
 * Rows of one series, in the order of their times (descending in a descending scan). Times are whole
 * nanoseconds after `base`, exact because they stay within ±2^53. No two rows have the same time.
 */
export interface SeriesRows {
  readonly kind: 'rows';
  /** Unix seconds. */
  readonly base: number;
  readonly times: Float64Array;
  readonly count: number;
  /** As the scan's `fields`; undefined where no row has the field. A row has at least one of them. */
  readonly columns: readonly (Column | undefined)[];
}

/** Statistics of a run of rows, known without decoding them. */
export interface BlockSummary {
  readonly kind: 'summary';
  /** Unix seconds. */
  readonly base: number;
  /** Times of the earliest and the latest row, whatever the scan's direction. */
  readonly minTime: number;
  readonly maxTime: number;
  readonly count: number;
  /** As the scan's `fields`; undefined where no row has the field. */
  readonly columns: readonly (ColumnSummary | undefined)[];
}

/** Over the rows that have a value. Times are relative to the summary's base. */
export interface ColumnSummary {
  readonly type: FieldType;
  readonly count: number;
  /** Earliest and latest value, and when. */
  readonly first: Scalar;
  readonly firstTime: number;
  readonly last: Scalar;
  readonly lastTime: number;
  /** Numeric and boolean columns; undefined for strings. */
  readonly min: Scalar | undefined;
  readonly max: Scalar | undefined;
  /** Numeric columns; integers wrap at 64 bits. */
  readonly sum: number | bigint | undefined;
}

/** A float, boolean (0 or 1) or small integer; an integer beyond ±(2^53 - 1); a string. */
export type Scalar = number | bigint | string;
