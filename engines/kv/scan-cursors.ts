// Scan positions that a hash cannot express: in an ordered table, and among many keys with the same hash. A client
// can choose such keys.

import { Eldest } from '../../universal-row/eldest.ts';

/** Cursors that are still known, of one table. */
const maxCursors = 4096;
/** Elements of one hash that a scan sees beyond its budget, before it continues from a saved position. */
export const sharedHashes = 16;

interface Place {
  readonly key: string;
  /** Number of the row whose elements are scanned; 0 where rows are. */
  readonly row: number;
}

export class ScanCursors {
  readonly #places = new Map<number, Place>();
  readonly #eldest = new Eldest(this.#places);
  #next = 1;

  /** A number from 1 on, below 2^32. */
  remember(key: string, row = 0): number {
    const cursor = this.#next;
    this.#next = (cursor % 0xffff_ffff) + 1;
    this.#places.delete(cursor);
    this.#places.set(cursor, { key, row });
    if (this.#places.size > maxCursors) this.#eldest.take();
    return cursor;
  }

  /** Where the scan continues; undefined for cursors that are not known, or are of another row. */
  keyOf(cursor: number, row = 0): string | undefined {
    const place = this.#places.get(cursor);
    return place?.row === row ? place.key : undefined;
  }
}
