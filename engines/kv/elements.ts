// An array row's elements: each a record under its position. Positions run from `head` on, so that both
// ends grow and shrink without moving anything; in the middle the shorter side moves.

import { copyBytes, type Slice } from '../../universal-row/bytes.ts';
import { assert } from '../../universal-row/assert.ts';
import type { BytesVisitor } from '../../universal-row/rows.ts';
import { elementKey } from './key-layout.ts';
import type { RowRecord } from './record-space.ts';
import type { RecordSpace } from './record-space.ts';
import type { RecordStore } from './record-store.ts';

export function readElement(
  store: RecordStore,
  sub: RecordSpace,
  row: RowRecord,
  index: number,
  out: Slice,
): boolean {
  if (index < 0 || index >= row.count) return false;
  const record = store.read(sub, elementKey(row.head + index));
  assert(record !== undefined, 'an array has a record for each of its positions');
  out.set(record.value, 0, record.value.length);
  return true;
}

export function eachElement(
  store: RecordStore,
  sub: RecordSpace,
  row: RowRecord,
  from: number,
  count: number,
  reverse: boolean,
  visit: BytesVisitor,
): void {
  if (from < 0 || from >= row.count || count <= 0) return;
  const n = Math.min(count, reverse ? from + 1 : row.count - from);
  const low = row.head + (reverse ? from + 1 - n : from);
  const see = ({ value }: { value: Buffer }): boolean | void => visit(value, 0, value.length);
  if (reverse) store.backward(sub, elementKey(low), elementKey(low + n), 0, n, see);
  else store.forward(sub, elementKey(low), elementKey(low + n), 0, n, see);
}

/** Writes a copy of the bytes at a position. */
export function writeElement(
  store: RecordStore,
  sub: RecordSpace,
  position: number,
  b: Buffer,
  s: number,
  n: number,
): void {
  const value = Buffer.allocUnsafe(n);
  copyBytes(value, 0, b, s, n);
  store.put(sub, elementKey(position), value, 0);
}

/**
 * Moves elements [from, from + count) by so many positions; the old positions keep their contents.
 */
function move(
  store: RecordStore,
  sub: RecordSpace,
  row: RowRecord,
  from: number,
  count: number,
  by: number,
): void {
  const values: Buffer[] = [];
  eachElement(store, sub, row, from, count, false, (b) => {
    values.push(b);
  });
  assert(values.length === count, 'an array has a record for each of its positions');
  for (let i = 0; i < count; i++) {
    store.put(sub, elementKey(row.head + from + i + by), values[i]!, 0);
  }
}

/** Opens a gap of one before `index`; the caller writes the element and counts it. Returns its position. */
export function openGap(
  store: RecordStore,
  sub: RecordSpace,
  row: RowRecord,
  index: number,
): { head: number; position: number } {
  if (index < row.count / 2) {
    move(store, sub, row, 0, index, -1);
    return { head: row.head - 1, position: row.head - 1 + index };
  }
  move(store, sub, row, index, row.count - index, 1);
  return { head: row.head, position: row.head + index };
}

/** Removes elements [index, index + count), not all there are, and returns the new head. */
export function closeGap(
  store: RecordStore,
  sub: RecordSpace,
  row: RowRecord,
  index: number,
  count: number,
): number {
  const behind = row.count - index - count;
  if (index < behind) {
    move(store, sub, row, 0, index, count);
    for (let i = 0; i < count; i++) store.remove(sub, elementKey(row.head + i));
    return row.head + count;
  }
  move(store, sub, row, index + count, behind, -count);
  for (let i = row.count - count; i < row.count; i++) {
    store.remove(sub, elementKey(row.head + i));
  }
  return row.head;
}
