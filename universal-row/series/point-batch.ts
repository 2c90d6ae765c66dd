// Points on their way in, column-shaped: for each measurement the series, times and field columns of its
// points in the order they came. The adapter fills a batch, the engine takes it, and it is used again.

import type { BatchIdentity } from './batch-identity.ts';
import type { FieldType } from './field-type.ts';
import type { SeriesCache } from './series-cache.ts';

/**
 * A column being filled. The `row`-th point's value is `numbers[row]` for floats, booleans (0 or 1),
 * integers within ±(2^53 - 1); once one integer is beyond, every row's is `wide[row]` (the bits of an
 * unsigned one). For strings `numbers[row]` is n: the bytes are the batch's `text` from `textEnds[n - 1]`
 * (0 for the first) to `textEnds[n]`.
 */
export interface PointColumn {
  readonly field: string;
  readonly type: FieldType;
  numbers: Float64Array;
  wide: BigInt64Array | undefined;
  /** 1 where the point has the field; undefined while all have. */
  present: Uint8Array | undefined;
  /** Points that have the field. */
  count: number;
}

/** The points of one measurement. A field written with two types has two columns; a point has one of them. */
export interface PointGroup {
  readonly measurement: string;
  rows: number;
  /** By row: the series, as a handle of the batch's `cache`. */
  series: Uint32Array;
  /** By row: nanoseconds after the batch's `baseSeconds`, a whole number within ±2^53. */
  times: Float64Array;
  columns: PointColumn[];
}

/** A later point of the same series and time overwrites an earlier one, field by field. */
export interface PointBatch {
  /** Resolves the groups' `series`; valid while `cache.generation` equals `generation`. */
  readonly cache: SeriesCache;
  readonly generation: number;
  /** Unix seconds. */
  readonly baseSeconds: number;
  /** Points in all groups. */
  readonly rows: number;
  readonly groups: readonly PointGroup[];
  /** The bytes of all strings. */
  readonly text: Buffer;
  readonly textEnds: Uint32Array;
  /** Undefined for a batch that is given to a leader once. */
  identity?: BatchIdentity | undefined;
}
