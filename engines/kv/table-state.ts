// State of the table at a table number: one generation of rows.

import { expiryPrefix, metaPrefix } from './key-layout.ts';
import { KeyFilter } from './key-filter.ts';
import { RecordSpace } from './record-space.ts';

export class TableState {
  /** Number of the table: another one once it has changed places. */
  table: number;
  readonly generation: number;
  /** Keys lie on disk in their own order, not by hash. */
  readonly ordered: boolean;
  rows = 0;
  expiringRows = 0;
  /** Size of keys and values, approximate. */
  bytes = 0;
  /** As they are on disk, or are about to be. */
  writtenBytes = 0;
  /** The generation will be purged: it is neither read nor written any more. */
  dropped = false;
  /** Keys that may exist, while all of them passed through this process. */
  filter: KeyFilter | undefined = undefined;
  readonly meta: RecordSpace;
  readonly expiry: RecordSpace;
  touchedBy = 0;
  /** Records of this table stay in memory only while they are in use. */
  bypassesCache = false;

  constructor(table: number, generation: number, ordered: boolean) {
    this.table = table;
    this.generation = generation;
    this.ordered = ordered;
    this.meta = new RecordSpace('meta', this, metaPrefix(generation));
    this.expiry = new RecordSpace('expiry', this, expiryPrefix(generation));
  }
}

// As a record: generation u32 | ordered u8 | rows u48 | expiring rows u48 | bytes u48, the last one not in old records.

export function readTableState(table: number, record: Buffer): TableState {
  const state = new TableState(table, record.readUInt32BE(0), record[4] === 1);
  state.rows = record.readUIntBE(5, 6);
  state.expiringRows = record.readUIntBE(11, 6);
  if (record.length > 17) state.bytes = state.writtenBytes = record.readUIntBE(17, 6);
  if (state.rows === 0) state.filter = new KeyFilter();
  return state;
}

export function tableStateBytes(state: TableState): Buffer {
  const record = Buffer.allocUnsafe(23);
  record.writeUInt32BE(state.generation, 0);
  record[4] = state.ordered ? 1 : 0;
  record.writeUIntBE(state.rows, 5, 6);
  record.writeUIntBE(state.expiringRows, 11, 6);
  record.writeUIntBE(state.bytes, 17, 6);
  return record;
}
