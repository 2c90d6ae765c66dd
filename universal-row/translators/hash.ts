// A hash:   []        ['hash', count]
//           [field]   value               one a field

import type { StoredRecord } from '../record.ts';
import type { URow } from '../row.ts';
import type { Scalar } from '../scalar.ts';
import {
  expectParts,
  metaRecord,
  partOf,
  strange,
  takeApart,
  wrongKind,
  type Translator,
} from './translator.ts';

const type = 'hash';

export const hashTranslator: Translator = {
  type,
  kind: 'map',

  map(row: URow): StoredRecord[] {
    if (row.value.kind !== 'map') throw wrongKind(type, row);
    const { entries } = row.value;
    const records = [metaRecord(row, type, entries.length)];
    for (const [field, value] of entries) {
      records.push(partOf(row, [field], { kind: 'primitive', value }));
    }
    return records;
  },

  reduce(records: readonly StoredRecord[]): URow {
    const { key, attrs, count, parts } = takeApart(type, records);
    const entries = parts.map((part): [Scalar, Scalar] => {
      const [field, ...more] = part.key.sub;
      if (field === undefined || more.length > 0 || part.value.kind !== 'primitive') {
        throw strange(type);
      }
      return [field, part.value.value];
    });
    expectParts(parts.length, count);
    return { key, value: { kind: 'map', entries }, attrs };
  },
};
