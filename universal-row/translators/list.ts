// A list:   []           ['list', count, head]
//           [position]   element                 one an element, at head, head + 1, ...
//
// Positions only grow towards the tail and may be negative, so a push at either end writes one element
// and the meta record, and renumbers nothing.

import type { StoredRecord } from '../record.ts';
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

const type = 'list';

export const listTranslator: Translator = {
  type,
  kind: 'array',

  map(row: URow): StoredRecord[] {
    if (row.value.kind !== 'array') throw wrongKind(type, row);
    const { elements } = row.value;
    const head = 0;
    const records = [metaRecord(row, type, elements.length, head)];
    for (const [i, value] of elements.entries()) {
      records.push(partOf(row, [head + i], { kind: 'primitive', value }));
    }
    return records;
  },

  reduce(records: readonly StoredRecord[]): URow {
    const { key, attrs, count, extra, parts } = takeApart(type, records);
    const [head] = extra;
    if (typeof head !== 'number' || !Number.isSafeInteger(head)) {
      throw new ReduceError('unexpected-record', 'the meta record of a list has no head');
    }
    const byPosition = new Map<number, Scalar>();
    for (const part of parts) {
      const [position, ...more] = part.key.sub;
      if (typeof position !== 'number' || more.length > 0 || part.value.kind !== 'primitive') {
        throw strange(type);
      }
      byPosition.set(position, part.value.value);
    }
    expectParts(parts.length, count);
    const elements: Scalar[] = [];
    for (let i = 0; i < count; i++) {
      const element = byPosition.get(head + i);
      if (element === undefined) {
        throw new ReduceError('missing-record', `no element at position ${head + i}`);
      }
      elements.push(element);
    }
    return { key, value: { kind: 'array', elements }, attrs };
  },
};
