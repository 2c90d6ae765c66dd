// A string is its own record: sub-key [], value the primitive.

import type { StoredRecord } from '../record.ts';
import type { URow } from '../row.ts';
import { ReduceError, partOf, splitOffMeta, wrongKind, type Translator } from './translator.ts';

const type = 'string';

export const stringTranslator: Translator = {
  type,
  kind: 'primitive',

  map(row: URow): StoredRecord[] {
    if (row.value.kind !== 'primitive') throw wrongKind(type, row);
    return [partOf(row, [], row.value)];
  },

  reduce(records: readonly StoredRecord[]): URow {
    const { meta, parts } = splitOffMeta(records);
    if (parts.length > 0) throw new ReduceError('unexpected-record', 'a string has no parts');
    if (meta.value.kind !== 'primitive') {
      throw new ReduceError('unexpected-record', 'the record is not a string');
    }
    const { hash, partition, range } = meta.key;
    return { key: { hash, partition, range }, value: meta.value, attrs: meta.attrs };
  },
};
