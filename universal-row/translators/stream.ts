// A stream:   []      ['stream', count, state]
//             [key]   value                       one a record, in the order of their keys
//
// A record written alone touches no other. The state is all that a stream knows of itself beside its
// records (its last id, for one), so a stream without records is a row as well.

import type { StoredRecord } from '../record.ts';
import { compareScalars } from '../key-order.ts';
import type { URow } from '../row.ts';
import type { Scalar } from '../scalar.ts';
import {
  ReduceError,
  expectParts,
  metaRecord,
  partOf,
  strange,
  takeApart,
  wrongKind,
  type Translator,
} from './translator.ts';

const type = 'stream';

export const streamTranslator: Translator = {
  type,
  kind: 'stream',

  map(row: URow): StoredRecord[] {
    if (row.value.kind !== 'stream') throw wrongKind(type, row);
    const { state, records } = row.value;
    const parts = [metaRecord(row, type, records.length, state)];
    for (const [key, value] of records)
      parts.push(partOf(row, [key], { kind: 'primitive', value }));
    return parts;
  },

  reduce(parts: readonly StoredRecord[]): URow {
    const { key, attrs, count, extra, parts: stored } = takeApart(type, parts);
    const [state] = extra;
    if (state === undefined) {
      throw new ReduceError('unexpected-record', 'the meta record of a stream has no state');
    }
    expectParts(stored.length, count);
    const records = stored.map((part): [Scalar, Scalar] => {
      const [name, ...more] = part.key.sub;
      if (name === undefined || more.length > 0 || part.value.kind !== 'primitive') {
        throw strange(type);
      }
      return [name, part.value.value];
    });
    records.sort(([a], [b]) => compareScalars(a, b));
    return { key, value: { kind: 'stream', state, records }, attrs };
  },
};
