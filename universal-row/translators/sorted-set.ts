// A sorted set:   []                     ['sorted-set', count]
//                 ['m', member]          score                   the member's score
//                 ['s', score, member]   null                    members in order of (score, member)

import type { StoredRecord } from '../record.ts';
import { nameOf } from '../row-equality.ts';
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

const type = 'sorted-set';
const byMember = 'm';
const byScore = 's';

export const sortedSetTranslator: Translator = {
  type,
  kind: 'ranked',

  map(row: URow): StoredRecord[] {
    if (row.value.kind !== 'ranked') throw wrongKind(type, row);
    const { members } = row.value;
    const records = [metaRecord(row, type, members.length)];
    for (const [member, score] of members) {
      records.push(
        partOf(row, [byMember, member], { kind: 'primitive', value: score }),
        partOf(row, [byScore, score, member], { kind: 'primitive', value: null }),
      );
    }
    return records;
  },

  reduce(records: readonly StoredRecord[]): URow {
    const { key, attrs, count, parts } = takeApart(type, records);
    const members: [Scalar, number][] = [];
    const scores = new Map<string, number>();
    for (const { key: partKey, value } of parts) {
      if (value.kind !== 'primitive') throw strange(type);
      const [list, ...sub] = partKey.sub;
      if (list === byMember && sub.length === 1 && typeof value.value === 'number') {
        members.push([sub[0]!, value.value]);
      } else if (list === byScore && sub.length === 2 && typeof sub[0] === 'number') {
        scores.set(nameOf(sub[1]!), sub[0]);
      } else {
        throw strange(type);
      }
    }
    expectParts(parts.length, count * 2);
    for (const [member, score] of members) {
      if (!Object.is(scores.get(nameOf(member)), score)) {
        throw new ReduceError('missing-record', 'a member is not listed under its score');
      }
    }
    expectParts(members.length, count);
    return { key, value: { kind: 'ranked', members }, attrs };
  },
};
