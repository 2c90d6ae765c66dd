// A table of rows as records: which records each operation on a row reads and writes. This class
// has the operations on the whole table; its base classes have those on rows and elements.

import type { Arguments } from '../../universal-row/arguments.ts';
import { ReadFault } from '../../universal-row/errors.ts';
import type { RowTable } from '../engine.ts';
import type { Row } from '../../universal-row/rows.ts';
import {
  expiryHeaderBytes,
  hashKey,
  hashOfMetaKey,
  lastKey,
  timeOfExpiryKey,
} from './key-layout.ts';
import { KvContainers } from './kv-containers.ts';
import type { KvRecord, RowRecord } from './record-space.ts';
import { sharedHashes } from './scan-cursors.ts';

/** Cursors below it are hashes; others are saved positions. */
const hashes = 2 ** 48;

export class KvTable extends KvContainers implements RowTable {
  expired(now: number, limit: number, visit: (row: Row) => void): void {
    if (this.state.expiringRows === 0 || limit <= 0) return;
    const keys: Buffer[] = [];
    this.store.forward(this.state.expiry, '', lastKey, 0, limit + 1, ({ key }) => {
      if (timeOfExpiryKey(key) > now) return true;
      keys.push(Buffer.from(key.slice(expiryHeaderBytes), 'latin1'));
      return keys.length >= limit;
    });
    this.#prefetchAll(keys);
    for (const key of keys) {
      const row = this.find(key, 0, key.length);
      if (row !== 0) visit(row);
    }
  }

  /** Lets all that is missing be read together before the first miss is thrown. */
  #prefetchAll(keys: readonly Buffer[]): void {
    for (const key of keys) void this.prefetch(key, 0, key.length);
  }

  scan(cursor: number, budget: number, visit: (row: Row) => void): number {
    const { ordered, meta } = this.state;
    const from = this.#placeOf(cursor);
    const rows: RowRecord[] = [];
    let last = -1;
    let next = 0;
    this.store.forward(meta, from, lastKey, 0, budget + 1, (record) => {
      const hash = hashOfMetaKey(record.key);
      if (rows.length >= budget) {
        if (ordered) next = this.cursors.remember(record.key);
        else if (hash !== last) next = hash;
        else if (rows.length >= budget + sharedHashes) {
          next = hashes + this.cursors.remember(record.key);
        }
        if (next !== 0) return true;
      }
      last = hash;
      rows.push(record as RowRecord);
      return false;
    });
    for (const row of rows) if (row.present) visit(this.store.cache.slotOf(row));
    return next;
  }

  /** The first key of a scan. Where a cursor is not known it begins again: nothing is missed. */
  #placeOf(cursor: number): string {
    if (cursor <= 0) return '';
    if (this.state.ordered) return this.cursors.keyOf(cursor) ?? '';
    return cursor < hashes ? hashKey(cursor) : (this.cursors.keyOf(cursor - hashes) ?? '');
  }

  anyRow(random: number): Row {
    const { ordered, meta, rows } = this.state;
    if (rows === 0) return 0;
    let found: RowRecord | undefined;
    const see = (record: KvRecord): boolean => {
      found = record as RowRecord;
      return true;
    };
    const offset = ordered ? Math.floor(random * Math.min(rows, 1000)) : 0;
    const from = ordered ? '' : hashKey(Math.floor(random * hashes));
    this.store.forward(meta, from, lastKey, offset, offset + 1, see);
    if (found === undefined) this.store.forward(meta, '', from, 0, 1, see);
    return found === undefined ? 0 : this.store.cache.slotOf(found);
  }

  clear(): void {
    if (this.state.rows > 0) this.host.replaceState(this);
  }

  /** See `KvEngine.expectRows`. */
  expect(args: Arguments, first: number, last: number, step: number): void {
    let ready: Set<Promise<void>> | undefined;
    for (let i = first; i <= last; i += step) {
      const promise = this.prefetch(args.buf, args.starts[i]!, args.lens[i]!);
      if (promise !== undefined) (ready ??= new Set()).add(promise);
    }
    if (ready === undefined) return;
    // While the others are read these must not go, or the command would never have all of them.
    for (let i = first; i <= last; i += step) this.keep(args.buf, args.starts[i]!, args.lens[i]!);
    throw new ReadFault(Promise.all(ready).then(() => {}));
  }
}
