// The rows of a table as records, and their counters. A row's own record holds its value, or its
// number of elements; `KvContainers` has the elements.

import { assert } from '../../universal-row/assert.ts';
import { copyBytes, emptyBytes, type Slice } from '../../universal-row/bytes.ts';
import { ReadFault } from '../../universal-row/errors.ts';
import { Shape } from '../../universal-row/rows.ts';
import type { Row } from '../../universal-row/rows.ts';
import { expiryKey, hashKeyBytes, metaKey, rowHash, subPrefix, trashKey } from './key-layout.ts';
import { valueHeaderBytes, writeValueHeader } from './record.ts';
import { type RowRecord, RecordSpace } from './record-space.ts';
import type { RecordStore } from './record-store.ts';
import type { TableState } from './table-state.ts';

/** Services a table needs from its engine. */
export interface TableHost {
  readonly store: RecordStore;
  newRowNumber(): number;
  /** The counts of this table are to be written. */
  tableChanged(table: number): void;
  /** Puts an empty generation in place of the table's. */
  replaceState(table: KvRows): void;
}

// A table's bytes on disk may be behind by so much.
const unwrittenBytes = 64 * 1024;
const maxFilterBytes = 64 * 1024 * 1024;

export class KvRows {
  readonly id: number;
  state: TableState;
  protected readonly host: TableHost;
  protected readonly store: RecordStore;
  /** Of `reserveValue`. */
  #reserved: RowRecord | undefined;

  constructor(host: TableHost, id: number, state: TableState) {
    this.host = host;
    this.store = host.store;
    this.id = id;
    this.state = state;
  }

  // ---- rows

  find(b: Buffer, s: number, n: number): Row {
    const { meta, ordered } = this.state;
    const key = metaKey(ordered, b, s, n);
    const record = meta.records.get(key);
    if (record !== undefined) {
      this.store.cache.touch(record);
      return record.present ? this.store.cache.slotOf(record as RowRecord) : 0;
    }
    if (this.#isAbsent(key, b, s, n)) return 0;
    this.store.misses++;
    throw new ReadFault(this.store.loader.want(meta, key));
  }

  /** Starts reading the row unless it is cached; returns the promise to wait for if so. */
  prefetch(b: Buffer, s: number, n: number): Promise<void> | undefined {
    const { meta, ordered } = this.state;
    const key = metaKey(ordered, b, s, n);
    if (meta.records.has(key) || this.#isAbsent(key, b, s, n)) return undefined;
    this.store.misses++;
    return this.store.loader.want(meta, key);
  }

  /** The row's record, if it is in memory, stays for a command that will run again. */
  keep(b: Buffer, s: number, n: number): void {
    const { meta, ordered } = this.state;
    const record = meta.records.get(metaKey(ordered, b, s, n));
    if (record !== undefined) this.store.cache.keep(record);
  }

  /** Whether a key without a record in memory is known not to exist. */
  #isAbsent(key: string, b: Buffer, s: number, n: number): boolean {
    const { filter, meta } = this.state;
    if (filter !== undefined && !filter.mayHold(rowHash(b, s, n))) return true;
    return meta.stretches.length > 0 && meta.stretchAt(key) !== undefined;
  }

  /** The record of a row to be written, whether there is such a row or not. */
  #entry(b: Buffer, s: number, n: number): RowRecord {
    const { meta, ordered } = this.state;
    const key = metaKey(ordered, b, s, n);
    const record = meta.records.get(key);
    if (record !== undefined) return record as RowRecord;
    if (this.#isAbsent(key, b, s, n)) return this.store.newRow(meta, key, true);
    this.store.misses++;
    throw new ReadFault(this.store.loader.want(meta, key));
  }

  protected row(row: Row): RowRecord {
    const record = this.store.cache.rowAt(row);
    assert(record !== undefined && record.present, 'a row handle is used while its row is there');
    return record;
  }

  #live(row: Row): RowRecord | undefined {
    const record = row === 0 ? undefined : this.store.cache.rowAt(row);
    return record !== undefined && record.present && !record.space.table.dropped
      ? record
      : undefined;
  }

  rowCount(): number {
    return this.state.rows;
  }

  get expiringRows(): number {
    return this.state.expiringRows;
  }

  key(row: Row, out: Slice): void {
    const b = Buffer.from(this.row(row).key, 'latin1');
    out.set(b, hashKeyBytes, b.length - hashKeyBytes);
  }

  shape(row: Row): Shape {
    return this.#live(row)?.shape ?? Shape.none;
  }

  count(row: Row): number {
    return this.#live(row)?.count ?? 0;
  }

  expireAt(row: Row): number {
    return this.#live(row)?.expireAt ?? 0;
  }

  footprint(row: Row): number {
    const record = this.row(row);
    return record.footprint() + record.bytes + record.count * (record.shape === 1 ? 0 : 40);
  }

  /** Before the table's counts change. */
  protected touchCounts(): void {
    this.host.tableChanged(this.id);
    this.#guardCounts();
  }

  /** They are as they were before if the command is undone. */
  #guardCounts(): void {
    const { state } = this;
    if (state.touchedBy === this.store.journal.command) return;
    state.touchedBy = this.store.journal.command;
    const { rows, expiringRows, bytes } = state;
    this.store.journal.push({
      undo: () => {
        state.rows = rows;
        state.expiringRows = expiringRows;
        state.bytes = bytes;
      },
    });
  }

  storedBytes(): number {
    return this.state.bytes;
  }

  #addBytes(bytes: number): void {
    this.#guardCounts();
    const { state } = this;
    // A table from before there was a count begins at 0.
    state.bytes = Math.max(0, state.bytes + bytes);
    // Not a record of the table for each element: they are about right on disk.
    if (Math.abs(state.bytes - state.writtenBytes) > unwrittenBytes)
      this.host.tableChanged(this.id);
  }

  /** Counts a new row, or frees the contents of the row that is replaced. */
  #arrive(row: RowRecord, b: Buffer, s: number, n: number): void {
    this.touchCounts();
    if (row.present) {
      this.#leave(row);
      return;
    }
    this.#addBytes(keyBytes(row));
    this.state.rows++;
    const { filter } = this.state;
    if (filter === undefined) return;
    filter.add(rowHash(b, s, n));
    if (filter.bytes > maxFilterBytes) this.state.filter = undefined;
  }

  /** Frees a row's sub-records and its expiry. */
  #leave(row: RowRecord): void {
    this.#addBytes(-payloadBytes(row));
    if (row.shape !== Shape.value && row.count > 0) this.#dropSub(row);
    if (row.sub !== undefined) this.store.abandon(row.sub);
    row.sub = undefined;
    if (row.expireAt !== 0) this.#unlistExpiry(row);
  }

  #dropSub(row: RowRecord): void {
    const { sub } = row;
    if (sub === undefined || sub.onDisk) {
      this.store.note({
        key: trashKey(row.number),
        value: emptyBytes,
        row: row.number,
        bytes: row.bytes,
      });
    }
    if (sub === undefined) return;
    sub.dropped = true;
    this.store.journal.push({
      undo: () => {
        sub.dropped = false;
      },
    });
  }

  drop(row: Row): void {
    const record = this.row(row);
    this.touchCounts();
    this.store.touchRow(record);
    this.#leave(record);
    this.#vanish(record);
  }

  /** The last element went, and took its record with it. */
  #dropEmpty(row: RowRecord): void {
    this.touchCounts();
    this.store.touchRow(row);
    row.count = 0;
    row.bytes = 0;
    this.#leave(row);
    this.#vanish(row);
  }

  #vanish(row: RowRecord): void {
    row.present = false;
    row.shape = Shape.none;
    row.count = 0;
    row.expireAt = 0;
    row.value = emptyBytes;
    this.state.rows--;
    this.#addBytes(-keyBytes(row));
    this.store.recount(row);
  }

  rename(row: Row, b: Buffer, s: number, n: number): Row {
    const from = this.row(row);
    const to = this.#entry(b, s, n);
    if (to === from) return row;
    this.store.touchRow(from);
    this.store.touchRow(to);
    this.#arrive(to, b, s, n);
    const { expireAt } = from;
    if (expireAt !== 0) this.#unlistExpiry(from);
    to.present = true;
    to.shape = from.shape;
    to.value = from.value;
    to.valueStart = from.valueStart;
    to.number = from.number;
    to.count = from.count;
    to.bytes = from.bytes;
    to.head = from.head;
    to.sub = from.sub;
    to.expireAt = 0;
    if (expireAt !== 0) this.#listExpiry(to, expireAt);
    from.sub = undefined;
    this.#vanish(from);
    this.store.recount(to);
    return this.store.cache.slotOf(to);
  }

  // ---- expiry

  setExpireAt(row: Row, expireAt: number): void {
    const record = this.row(row);
    if (record.expireAt === expireAt) return;
    this.touchCounts();
    this.store.touchRow(record);
    if (record.expireAt !== 0) this.#unlistExpiry(record);
    if (expireAt !== 0) this.#listExpiry(record, expireAt);
    if (record.shape === Shape.value) {
      const { value, valueStart, count } = record;
      this.#setValue(record, value, valueStart, count);
    }
  }

  #listExpiry(row: RowRecord, expireAt: number): void {
    row.expireAt = expireAt;
    this.state.expiringRows++;
    const key = expiryKey(expireAt, row.key.slice(hashKeyBytes));
    this.store.put(this.state.expiry, key, emptyBytes, 0);
  }

  #unlistExpiry(row: RowRecord): void {
    const key = expiryKey(row.expireAt, row.key.slice(hashKeyBytes));
    this.store.remove(this.state.expiry, key);
    row.expireAt = 0;
    this.state.expiringRows--;
  }

  // ---- values

  putValue(
    b: Buffer,
    s: number,
    n: number,
    vb: Buffer,
    vs: number,
    vn: number,
    expireAt: number,
  ): Row {
    const row = this.#entry(b, s, n);
    this.store.touchRow(row);
    this.#arrive(row, b, s, n);
    row.present = true;
    row.shape = Shape.value;
    row.number = 0;
    row.bytes = 0;
    row.expireAt = 0;
    if (expireAt !== 0) this.#listExpiry(row, expireAt);
    this.#addBytes(vn);
    this.#setValue(row, vb, vs, vn);
    return this.store.cache.slotOf(row);
  }

  #setValue(row: RowRecord, b: Buffer, s: number, n: number): void {
    const at = valueHeaderBytes(row.expireAt);
    const value = Buffer.allocUnsafe(at + n);
    writeValueHeader(value, row.expireAt);
    copyBytes(value, at, b, s, n);
    row.value = value;
    row.valueStart = at;
    row.count = n;
    this.store.recount(row);
  }

  reserveValue(b: Buffer, s: number, n: number, bytes: number, expireAt: number): Row {
    // None of its bytes are copied.
    const row = this.putValue(b, s, n, emptyBytes, 0, bytes, expireAt);
    this.#reserved = this.row(row);
    return row;
  }

  /** In place: no command has seen the buffer. */
  fillValue(offset: number, vb: Buffer, vs: number, vn: number): void {
    const { value, valueStart, count } = this.#reserved!;
    assert(offset + vn <= count, 'a value is filled within its size');
    copyBytes(value, valueStart + offset, vb, vs, vn);
    if (offset + vn === count) this.#reserved = undefined;
  }

  value(row: Row, out: Slice): void {
    const record = this.row(row);
    out.set(record.value, record.valueStart, record.count);
  }

  patchValue(row: Row, offset: number, vb: Buffer, vs: number, vn: number): void {
    const record = this.row(row);
    this.store.touchRow(record);
    const { value: old, valueStart: at, count } = record;
    const length = Math.max(count, offset + vn);
    const { spare } = record;
    let value: Buffer;
    if (offset === count && spare?.buffer === old.buffer && spare.length >= at + length) {
      // Appends behind the end of all earlier views of the buffer, so those stay unchanged.
      value = spare.subarray(0, at + length);
    } else {
      const capacity = offset === count ? Math.ceil((at + length) * 1.5) : at + length;
      record.spare = Buffer.allocUnsafeSlow(capacity);
      value = record.spare.subarray(0, at + length);
      old.copy(value, 0, 0, at + count);
      if (offset > count) value.fill(0, at + count, at + offset);
    }
    copyBytes(value, at + offset, vb, vs, vn);
    record.value = value;
    record.count = length;
    this.#addBytes(length - count);
    this.store.recount(record);
  }

  // ---- containers

  create(b: Buffer, s: number, n: number, shape: Shape): Row {
    const row = this.#entry(b, s, n);
    this.store.touchRow(row);
    this.#arrive(row, b, s, n);
    row.present = true;
    row.shape = shape;
    row.value = emptyBytes;
    row.number = this.host.newRowNumber();
    row.expireAt = 0;
    row.count = 0;
    row.bytes = 0;
    row.head = 0;
    const sub = new RecordSpace('sub', this.state, subPrefix(row.number));
    sub.onDisk = false;
    row.sub = sub;
    this.store.cache.addEmptyStretch(sub);
    this.store.recount(row);
    return this.store.cache.slotOf(row);
  }

  protected grow(row: RowRecord, bytes: number): void {
    this.store.touchRow(row);
    row.count++;
    this.resize(row, bytes);
  }

  /** An element has grown by so much. */
  protected resize(row: RowRecord, bytes: number): void {
    const before = row.bytes;
    row.bytes = Math.max(0, before + bytes);
    this.#addBytes(row.bytes - before);
  }

  protected shrink(row: RowRecord, count: number, bytes: number): void {
    this.store.touchRow(row);
    row.count -= count;
    this.resize(row, -bytes);
    if (row.count === 0) this.#dropEmpty(row);
  }
}

function keyBytes(row: RowRecord): number {
  return row.key.length - hashKeyBytes;
}

function payloadBytes(row: RowRecord): number {
  return row.shape === Shape.value ? row.count : row.bytes;
}
