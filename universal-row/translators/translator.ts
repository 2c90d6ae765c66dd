// A translator splits rows of one data type into records, for engines that store small pieces, and joins
// them again: reduce(map(row)) is the row. Every container has one meta record, whose sub-key is empty and
// whose value is the array [type, count, ...]; the row's attributes are those of the meta record. Parts that are
// written alone keep the attributes of that write.
//
// A row is joined only when all of its records are there. Missing, duplicate or foreign records are
// a `ReduceError`: a short row must never look like a whole one.

import { nameOf, sameScalar } from '../row-equality.ts';
import type { RecordKey, StoredRecord } from '../record.ts';
import type { RowAttributes, RowValue, URow, URowKey } from '../row.ts';
import { RowValueError, type Scalar } from '../scalar.ts';

/** Type names as TYPE answers them, except `sorted-set` for zset. */
type TranslatedType = 'string' | 'hash' | 'list' | 'set' | 'sorted-set' | 'stream';

export interface Translator {
  readonly type: TranslatedType;
  /** The kind of value it takes. */
  readonly kind: RowValue['kind'];
  /** The row's records, its own first. Throws `RowValueError` for a row of another kind. */
  map(row: URow): StoredRecord[];
  /** The row whose records these are, in any order. Throws `ReduceError`. */
  reduce(records: readonly StoredRecord[]): URow;
}

/**
 * `missing-meta`: no record with an empty sub-key. `missing-record`: fewer parts than the meta record
 * counts. `unexpected-record`: a part that is doubled, too many, or not of this type. `mixed-rows`:
 * records of more than one row.
 */
export type ReduceFailure = 'missing-meta' | 'missing-record' | 'unexpected-record' | 'mixed-rows';

/** Records that do not make up a row: expected of an engine that lost some, never of one that did not. */
export class ReduceError extends Error {
  override readonly name = 'ReduceError';
  readonly failure: ReduceFailure;

  constructor(failure: ReduceFailure, message: string) {
    super(message);
    this.failure = failure;
  }
}

export function wrongKind(type: TranslatedType, row: URow): RowValueError {
  return new RowValueError(`a ${row.value.kind} row is not a ${type}`);
}

/** The record of a part of the row, or of the row itself when `sub` is empty. */
export function partOf(
  row: URow,
  sub: readonly Scalar[],
  value: StoredRecord['value'],
): StoredRecord {
  return { key: { ...row.key, sub }, value, attrs: row.attrs };
}

export function metaRecord(row: URow, ...items: [type: TranslatedType, ...Scalar[]]): StoredRecord {
  return partOf(row, [], { kind: 'array', elements: items });
}

interface Pieces {
  readonly key: URowKey;
  readonly attrs: RowAttributes;
  /** Number of elements in the meta record. */
  readonly count: number;
  /** Values of the meta record after type and count. */
  readonly extra: readonly Scalar[];
  readonly parts: readonly StoredRecord[];
}

/** Tells the meta record from the parts, all of them different and of one row. */
export function takeApart(type: TranslatedType, records: readonly StoredRecord[]): Pieces {
  const { meta, parts } = splitOffMeta(records);
  if (typeOf(meta) !== type || meta.value.kind !== 'array') {
    throw new ReduceError('unexpected-record', `the meta record is not of a ${type}`);
  }
  const [, count, ...extra] = meta.value.elements;
  if (typeof count !== 'number' || !Number.isSafeInteger(count) || count < 0) {
    throw new ReduceError('unexpected-record', 'the meta record has no count');
  }
  const { hash, partition, range } = meta.key;
  return { key: { hash, partition, range }, attrs: meta.attrs, count, extra, parts };
}

/** Throws unless there are as many parts as `expected`. */
export function expectParts(parts: number, expected: number): void {
  if (parts < expected) {
    throw new ReduceError('missing-record', `${expected - parts} of ${expected} parts are missing`);
  }
  if (parts > expected) {
    throw new ReduceError('unexpected-record', `${parts} parts where ${expected} are counted`);
  }
}

/** The type that a row's own record says it has. */
export function typeOf(meta: StoredRecord): TranslatedType | undefined {
  if (meta.value.kind === 'primitive') return 'string';
  if (meta.value.kind !== 'array') return undefined;
  const [name] = meta.value.elements;
  return translatedTypes.find((type) => type === name);
}

const translatedTypes = ['hash', 'list', 'set', 'sorted-set', 'stream'] as const;

export function splitOffMeta(records: readonly StoredRecord[]): {
  meta: StoredRecord;
  parts: StoredRecord[];
} {
  const metas = records.filter((record) => record.key.sub.length === 0);
  const [meta] = metas;
  if (meta === undefined) throw new ReduceError('missing-meta', 'the row has no record of its own');
  if (metas.length > 1) throw new ReduceError('unexpected-record', 'two records without a sub-key');
  const seen = new Set<string>();
  const parts = records.filter((record) => record !== meta);
  for (const part of parts) {
    if (!sameRowKey(part.key, meta.key)) {
      throw new ReduceError('mixed-rows', 'records of more than one row');
    }
    seen.add(part.key.sub.map(nameOf).join(''));
  }
  if (seen.size < parts.length) throw new ReduceError('unexpected-record', 'a part is there twice');
  return { meta, parts };
}

function sameRowKey(a: RecordKey, b: RecordKey): boolean {
  if (a.hash !== b.hash) return false;
  return sameGroup(a.partition, b.partition) && sameGroup(a.range, b.range);
}

function sameGroup(a: readonly Scalar[], b: readonly Scalar[]): boolean {
  return a === b || (a.length === b.length && a.every((scalar, i) => sameScalar(scalar, b[i]!)));
}

/** A part that does not look as its type's parts do. */
export function strange(type: TranslatedType): ReduceError {
  return new ReduceError('unexpected-record', `a part is not one of a ${type}`);
}
