// A set:   []         ['set', count]
//          [member]   null              one a member

import type { StoredRecord } from '../record.ts';
import type { URow } from '../row.ts';
import {
  expectParts,
  metaRecord,
  partOf,
  strange,
  takeApart,
  wrongKind,
  type Translator,
} from './translator.ts';

const type = 'set';

export const setTranslator: Translator = {
  type,
  kind: 'set',

  map(row: URow): StoredRecord[] {
    if (row.value.kind !== 'set') throw wrongKind(type, row);
    const { members } = row.value;
    const records = [metaRecord(row, type, members.length)];
    for (const member of members) {
      records.push(partOf(row, [member], { kind: 'primitive', value: null }));
    }
    return records;
  },

  reduce(records: readonly StoredRecord[]): URow {
    const { key, attrs, count, parts } = takeApart(type, records);
    const members = parts.map((part) => {
      const [member, ...more] = part.key.sub;
      const empty = part.value.kind === 'primitive' && part.value.value === null;
      if (member === undefined || more.length > 0 || !empty) throw strange(type);
      return member;
    });
    expectParts(parts.length, count);
    return { key, value: { kind: 'set', members }, attrs };
  },
};
