// A stream's records: each under its own key, so that they lie on disk in the stream's order.

import { copyBytes } from '../../universal-row/bytes.ts';
import type { FieldVisitor } from '../../universal-row/rows.ts';
import { KeyBytes } from './key-bytes.ts';
import { recordHeaderBytes, recordKey } from './key-layout.ts';
import type { RecordSpace } from './record-space.ts';
import type { RecordStore } from './record-store.ts';

export function each(
  store: RecordStore,
  sub: RecordSpace,
  from: Uint8Array,
  to: Uint8Array,
  reverse: boolean,
  want: number,
  visit: FieldVisitor,
): void {
  const low = recordKey(from, 0, from.length);
  const high = recordKey(to, 0, to.length);
  if (low >= high) return;
  const bytes = new KeyBytes();
  const see = ({ key, value }: { key: string; value: Buffer }): boolean | void => {
    const n = key.length - recordHeaderBytes;
    return visit(bytes.of(key), recordHeaderBytes, n, value, 0, value.length);
  };
  if (reverse) store.backward(sub, low, high, 0, want, see);
  else store.forward(sub, low, high, 0, want, see);
}

/** Writes a copy of the bytes under a key. */
export function write(
  store: RecordStore,
  sub: RecordSpace,
  key: string,
  b: Buffer,
  s: number,
  n: number,
): void {
  const value = Buffer.allocUnsafe(n);
  copyBytes(value, 0, b, s, n);
  store.put(sub, key, value, 0);
}

/** Removes records with from <= key < to, and returns their number and size. */
export function removeRange(
  store: RecordStore,
  sub: RecordSpace,
  from: Uint8Array,
  to: Uint8Array,
): { records: number; bytes: number } {
  const low = recordKey(from, 0, from.length);
  const high = recordKey(to, 0, to.length);
  const keys: string[] = [];
  let bytes = 0;
  // All records are read before the first is removed: misses occur before any change.
  store.forward(sub, low, high, 0, Infinity, ({ key, value }) => {
    keys.push(key);
    bytes += key.length - recordHeaderBytes + value.length;
  });
  for (const key of keys) store.remove(sub, key);
  return { records: keys.length, bytes };
}
