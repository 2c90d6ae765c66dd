// What a table number stands for now: one generation of rows.

import { expiryPrefix, metaPrefix } from './key-layout.ts';
import type { KeyFilter } from './key-filter.ts';
import { RecordSpace } from './record-space.ts';

export class TableState {
  /** Number of the table: another one once it has changed places. */
  table: number;
  readonly generation: number;
  /** Keys lie on disk in their own order, not by hash. */
  readonly ordered: boolean;
  rows = 0;
  expiringRows = 0;
  /** Of keys and values, about. */
  bytes = 0;
  /** As they are on disk, or are about to be. */
  writtenBytes = 0;
  /** The generation is to be purged: nothing of it is read or written any more. */
  dropped = false;
  /** Keys that may exist, while all of them passed through this process. */
  filter: KeyFilter | undefined = undefined;
  readonly meta: RecordSpace;
  readonly expiry: RecordSpace;
  touchedBy = 0;
  /** What is read or written stays in memory only for as long as it is in use. */
  bypassesCache = false;

  constructor(table: number, generation: number, ordered: boolean) {
    this.table = table;
    this.generation = generation;
    this.ordered = ordered;
    this.meta = new RecordSpace('meta', this, metaPrefix(generation));
    this.expiry = new RecordSpace('expiry', this, expiryPrefix(generation));
  }
}
