// Every translator, found by the row's kind or by the row's own record.

import type { StoredRecord } from '../record.ts';
import type { URow } from '../row.ts';
import { RowValueError } from '../scalar.ts';
import { hashTranslator } from './hash.ts';
import { listTranslator } from './list.ts';
import { setTranslator } from './set.ts';
import { sortedSetTranslator } from './sorted-set.ts';
import { streamTranslator } from './stream.ts';
import { stringTranslator } from './string.ts';
import { ReduceError, typeOf, type Translator } from './translator.ts';

export const translators: readonly Translator[] = [
  stringTranslator,
  hashTranslator,
  listTranslator,
  setTranslator,
  sortedSetTranslator,
  streamTranslator,
];

/** The records of a row. Throws `RowValueError` when no translator takes its kind. */
export function mapRow(row: URow): StoredRecord[] {
  const translator = translators.find((candidate) => candidate.kind === row.value.kind);
  if (translator === undefined) {
    throw new RowValueError(`no translator takes a ${row.value.kind} row`);
  }
  return translator.map(row);
}

/** The row whose records these are. Throws `ReduceError` unless they are all of it and nothing else. */
export function reduceRecords(records: readonly StoredRecord[]): URow {
  const meta = records.find((record) => record.key.sub.length === 0);
  if (meta === undefined) throw new ReduceError('missing-meta', 'the row has no record of its own');
  const type = typeOf(meta);
  const translator = translators.find((candidate) => candidate.type === type);
  if (translator === undefined)
    throw new ReduceError('unexpected-record', 'a row of no known type');
  return translator.reduce(records);
}
