// The Universal Row: one structure for a row of any data model. A Redis key, a series of points, a
// wide column row and a document are all a key, a value and attributes; they differ in the kind of
// value.
//
//   Redis key       partition [key]                 primitive, map, set, ranked, array or stream
//   series          partition [measurement, tags]   range [times...], value columns
//   wide column     partition, range                columns of one value each
//   document        partition [collection, id]      document
//
// This is the structured form, for code that handles any row: translation, export, transfer. The path of
// a single command works on bytes in place (rows.ts) and never builds one.

import { partitionHash } from './partition-hash.ts';
import type { Scalar } from './scalar.ts';

export interface URowKey {
  /** Unsigned 64 bits: `partitionHash` of the partition group. */
  readonly hash: bigint;
  /** Decides the partition. */
  readonly partition: readonly Scalar[];
  /** Orders rows within a partition; often empty. */
  readonly range: readonly Scalar[];
}

export interface Primitive {
  readonly kind: 'primitive';
  readonly value: Scalar;
}

/** No two entries have the same field. Their order means nothing. */
interface MapContainer {
  readonly kind: 'map';
  readonly entries: readonly (readonly [field: Scalar, value: Scalar])[];
}

/** No two members are the same. Their order means nothing. */
interface SetContainer {
  readonly kind: 'set';
  readonly members: readonly Scalar[];
}

/** A set whose members each have a score, never NaN. Ordered by (score, member) wherever it is kept. */
interface RankedContainer {
  readonly kind: 'ranked';
  readonly members: readonly (readonly [member: Scalar, score: number])[];
}

interface ArrayContainer {
  readonly kind: 'array';
  readonly elements: readonly Scalar[];
}

/** Records in the order of their keys, no two with the same, beside a state of the row's own. */
interface StreamContainer {
  readonly kind: 'stream';
  readonly state: Scalar;
  readonly records: readonly (readonly [key: Scalar, value: Scalar])[];
}

export type Container =
  | MapContainer
  | SetContainer
  | RankedContainer
  | ArrayContainer
  | StreamContainer;

/** A column, one value a point or just one. `any` holds mixed values and gaps (null). */
export type Column =
  | { readonly type: 'float'; readonly values: Float64Array }
  | { readonly type: 'integer'; readonly values: BigInt64Array }
  | { readonly type: 'boolean'; readonly values: readonly boolean[] }
  | { readonly type: 'text'; readonly values: readonly string[] }
  | { readonly type: 'any'; readonly values: readonly Scalar[] };

/** Columns by name; their order means nothing. */
interface Columns {
  readonly kind: 'columns';
  readonly columns: ReadonlyMap<string, Column>;
}

/** A JSON-like tree, with bytes and 64-bit integers besides. A `Map` is safe with every field name. */
export type DocumentValue = Scalar | readonly DocumentValue[] | ReadonlyMap<string, DocumentValue>;

interface Document {
  readonly kind: 'document';
  readonly root: DocumentValue;
}

export type RowValue = Primitive | Container | Columns | Document;

/** Set by the system, never by a client. */
export interface RowAttributes {
  /** Grows with every write of the row. */
  readonly version: number;
  /** Milliseconds since 1970 of the last write. */
  readonly ts: number;
  /** Milliseconds since 1970 at which the row ceases to be; absent for never. Holds for all of the row. */
  readonly expireAt?: number;
}

export interface URow {
  readonly key: URowKey;
  readonly value: RowValue;
  readonly attrs: RowAttributes;
}

/** Deepest nesting of documents, and of a decoder's input. */
export const maxDocumentDepth = 128;

export function rowKey(partition: readonly Scalar[], range: readonly Scalar[] = []): URowKey {
  return { hash: partitionHash(partition), partition, range };
}
