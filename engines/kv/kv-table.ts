// A table of rows as records: which records each operation on a row reads and writes.

import { assert } from '../../universal-row/assert.ts';
import { copyBytes, emptyBytes, type Slice } from '../../universal-row/bytes.ts';
import { ReadFault } from '../../universal-row/errors.ts';
import { Shape } from '../../universal-row/rows.ts';
import type {
  BytesVisitor,
  FieldVisitor,
  LexRange,
  RankedVisitor,
  Row,
  ScoreRange,
} from '../../universal-row/rows.ts';
import type { RowTable } from '../engine.ts';
import { closeGap, eachElement, openGap, readElement, writeElement } from './elements.ts';
import { KeyBytes } from './key-bytes.ts';
import {
  elementKey,
  expiryHeaderBytes,
  expiryKey,
  fieldHashKey,
  fieldHeaderBytes,
  fieldKey,
  hashKey,
  hashKeyBytes,
  hashOfFieldKey,
  hashOfMetaKey,
  lastKey,
  metaKey,
  orderKey,
  Part,
  partEnd,
  recordKey,
  rowHash,
  subPrefix,
  timeOfExpiryKey,
  trashKey,
} from './key-layout.ts';
import * as ranked from './ranked.ts';
import * as records from './stream-records.ts';
import { valueHeaderBytes, writeValueHeader } from './record.ts';
import { type KvRecord, RowRecord } from './record-space.ts';
import { RecordSpace } from './record-space.ts';
import type { RecordStore } from './record-store.ts';
import type { TableState } from './table-state.ts';

/** What a table asks of its engine. */
export interface TableHost {
  readonly store: RecordStore;
  newRowNumber(): number;
  /** The counts of this table are to be written. */
  tableChanged(table: number): void;
  /** Puts an empty generation in place of the table's. */
  replaceState(table: KvTable): void;
}

// Up to this many elements are deleted one by one with their row; more are left to the purge.
const fewElements = 16;
const maxCursors = 4096;
const scoreBytes = 8;
// A table's bytes on disk may be behind by so much.
const unwrittenBytes = 64 * 1024;
const maxFilterBytes = 64 * 1024 * 1024;

export class KvTable implements RowTable {
  readonly id: number;
  state: TableState;
  readonly #host: TableHost;
  readonly #store: RecordStore;
  /** Where scans of an ordered table go on: its keys have no position that fits a number. */
  readonly #cursors = new Map<number, string>();
  #nextCursor = 1;

  constructor(host: TableHost, id: number, state: TableState) {
    this.#host = host;
    this.#store = host.store;
    this.id = id;
    this.state = state;
  }

  // ---- rows

  find(b: Buffer, s: number, n: number): Row {
    const { meta, ordered } = this.state;
    const key = metaKey(ordered, b, s, n);
    const record = meta.records.get(key);
    if (record !== undefined) {
      this.#store.cache.touch(record);
      return record.present ? this.#store.cache.slotOf(record as RowRecord) : 0;
    }
    if (this.#isAbsent(key, b, s, n)) return 0;
    this.#store.misses++;
    throw new ReadFault(this.#store.loader.want(meta, key));
  }

  /** Starts reading the row unless it is in memory; what to wait for if so. */
  prefetch(b: Buffer, s: number, n: number): Promise<void> | undefined {
    const { meta, ordered } = this.state;
    const key = metaKey(ordered, b, s, n);
    if (meta.records.has(key) || this.#isAbsent(key, b, s, n)) return undefined;
    this.#store.misses++;
    return this.#store.loader.want(meta, key);
  }

  /** The row's record, if it is in memory, stays for a command that will run again. */
  keep(b: Buffer, s: number, n: number): void {
    const { meta, ordered } = this.state;
    const record = meta.records.get(metaKey(ordered, b, s, n));
    if (record !== undefined) this.#store.cache.keep(record);
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
    if (this.#isAbsent(key, b, s, n)) return this.#store.newRow(meta, key, true);
    this.#store.misses++;
    throw new ReadFault(this.#store.loader.want(meta, key));
  }

  #row(row: Row): RowRecord {
    const record = this.#store.cache.rowAt(row);
    assert(record !== undefined && record.present, 'a row handle is used while its row is there');
    return record;
  }

  #live(row: Row): RowRecord | undefined {
    const record = row === 0 ? undefined : this.#store.cache.rowAt(row);
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
    const b = Buffer.from(this.#row(row).key, 'latin1');
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
    const record = this.#row(row);
    return record.footprint() + record.bytes + record.count * (record.shape === 1 ? 0 : 40);
  }

  /** Before the table's counts change. */
  #touchCounts(): void {
    this.#host.tableChanged(this.id);
    this.#guardCounts();
  }

  /** They are as they were before if the command is undone. */
  #guardCounts(): void {
    const { state } = this;
    if (state.touchedBy === this.#store.journal.command) return;
    state.touchedBy = this.#store.journal.command;
    const { rows, expiringRows, bytes } = state;
    this.#store.journal.push({
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
      this.#host.tableChanged(this.id);
  }

  /** Counts a row that is about to be there, or frees the one before. */
  #arrive(row: RowRecord, b: Buffer, s: number, n: number): void {
    this.#touchCounts();
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

  /** Frees what belongs to a row: its sub-records and its expiry. */
  #leave(row: RowRecord): void {
    this.#addBytes(-payloadBytes(row));
    if (row.shape !== Shape.value && row.count > 0) this.#dropSub(row);
    if (row.sub !== undefined) this.#store.abandon(row.sub);
    row.sub = undefined;
    if (row.expireAt !== 0) this.#unlistExpiry(row);
  }

  #dropSub(row: RowRecord): void {
    const { sub } = row;
    if (sub === undefined || sub.onDisk) {
      this.#store.note({
        key: trashKey(row.number),
        value: emptyBytes,
        row: row.number,
        bytes: row.bytes,
      });
    }
    if (sub === undefined) return;
    sub.dropped = true;
    this.#store.journal.push({
      undo: () => {
        sub.dropped = false;
      },
    });
  }

  drop(row: Row): void {
    const record = this.#row(row);
    this.#touchCounts();
    this.#store.touchRow(record);
    this.#leave(record);
    this.#vanish(record);
  }

  /** The last element went, and took its record with it. */
  #dropEmpty(row: RowRecord): void {
    this.#touchCounts();
    this.#store.touchRow(row);
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
    this.#store.recount(row);
  }

  rename(row: Row, b: Buffer, s: number, n: number): Row {
    const from = this.#row(row);
    const to = this.#entry(b, s, n);
    if (to === from) return row;
    this.#store.touchRow(from);
    this.#store.touchRow(to);
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
    this.#store.recount(to);
    return this.#store.cache.slotOf(to);
  }

  // ---- expiry

  setExpireAt(row: Row, expireAt: number): void {
    const record = this.#row(row);
    if (record.expireAt === expireAt) return;
    this.#touchCounts();
    this.#store.touchRow(record);
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
    this.#store.put(this.state.expiry, key, emptyBytes, 0);
  }

  #unlistExpiry(row: RowRecord): void {
    const key = expiryKey(row.expireAt, row.key.slice(hashKeyBytes));
    this.#store.remove(this.state.expiry, key);
    row.expireAt = 0;
    this.state.expiringRows--;
  }

  expired(now: number, limit: number, visit: (row: Row) => void): void {
    if (this.state.expiringRows === 0 || limit <= 0) return;
    const keys: Buffer[] = [];
    this.#store.forward(this.state.expiry, '', lastKey, 0, limit + 1, ({ key }) => {
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
    this.#store.touchRow(row);
    this.#arrive(row, b, s, n);
    row.present = true;
    row.shape = Shape.value;
    row.number = 0;
    row.bytes = 0;
    row.expireAt = 0;
    if (expireAt !== 0) this.#listExpiry(row, expireAt);
    this.#addBytes(vn);
    this.#setValue(row, vb, vs, vn);
    return this.#store.cache.slotOf(row);
  }

  #setValue(row: RowRecord, b: Buffer, s: number, n: number): void {
    const at = valueHeaderBytes(row.expireAt);
    const value = Buffer.allocUnsafe(at + n);
    writeValueHeader(value, row.expireAt);
    copyBytes(value, at, b, s, n);
    row.value = value;
    row.valueStart = at;
    row.count = n;
    this.#store.recount(row);
  }

  value(row: Row, out: Slice): void {
    const record = this.#row(row);
    out.set(record.value, record.valueStart, record.count);
  }

  patchValue(row: Row, offset: number, vb: Buffer, vs: number, vn: number): void {
    const record = this.#row(row);
    this.#store.touchRow(record);
    const { value: old, valueStart: at, count } = record;
    const length = Math.max(count, offset + vn);
    const { spare } = record;
    let value: Buffer;
    if (offset === count && spare?.buffer === old.buffer && spare.length >= at + length) {
      // Appending behind what anyone looks at: earlier views of the buffer end where it begins.
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
    this.#store.recount(record);
  }

  // ---- containers

  create(b: Buffer, s: number, n: number, shape: Shape): Row {
    const row = this.#entry(b, s, n);
    this.#store.touchRow(row);
    this.#arrive(row, b, s, n);
    row.present = true;
    row.shape = shape;
    row.value = emptyBytes;
    row.number = this.#host.newRowNumber();
    row.expireAt = 0;
    row.count = 0;
    row.bytes = 0;
    row.head = 0;
    const sub = new RecordSpace('sub', this.state, subPrefix(row.number));
    sub.onDisk = false;
    row.sub = sub;
    this.#store.cache.addEmptyStretch(sub);
    this.#store.recount(row);
    return this.#store.cache.slotOf(row);
  }

  #grow(row: RowRecord, bytes: number): void {
    this.#store.touchRow(row);
    row.count++;
    this.#resize(row, bytes);
  }

  /** An element has grown by so much. */
  #resize(row: RowRecord, bytes: number): void {
    const before = row.bytes;
    row.bytes = Math.max(0, before + bytes);
    this.#addBytes(row.bytes - before);
  }

  #shrink(row: RowRecord, count: number, bytes: number): void {
    this.#store.touchRow(row);
    row.count -= count;
    this.#resize(row, -bytes);
    if (row.count === 0) this.#dropEmpty(row);
  }

  // ---- fields

  field(row: Row, b: Buffer, s: number, n: number, out?: Slice): boolean {
    const record = this.#row(row);
    const found = this.#store.read(this.#store.subOf(record), fieldKey(partOf(record), b, s, n));
    if (found === undefined) return false;
    out?.set(found.value, 0, found.value.length);
    return true;
  }

  fieldAt(row: Row, index: number, field: Slice, value: Slice): void {
    const record = this.#row(row);
    const part = partOf(record);
    const fromEnd = record.count - 1 - index;
    const see = (found: KvRecord): boolean => {
      const b = Buffer.from(found.key, 'latin1');
      field.set(b, fieldHeaderBytes, b.length - fieldHeaderBytes);
      value.set(found.value, 0, found.value.length);
      return true;
    };
    const sub = this.#store.subOf(record);
    const end = partEnd[part];
    if (index <= fromEnd) this.#store.forward(sub, part, end, index, index + 1, see);
    else this.#store.backward(sub, part, end, fromEnd, fromEnd + 1, see);
  }

  eachField(row: Row, visit: FieldVisitor): void {
    const record = this.#row(row);
    const part = partOf(record);
    const bytes = new KeyBytes();
    const sub = this.#store.subOf(record);
    this.#store.forward(sub, part, partEnd[part], 0, record.count, ({ key, value }) => {
      const n = key.length - fieldHeaderBytes;
      return visit(bytes.of(key), fieldHeaderBytes, n, value, 0, value.length);
    });
  }

  scanFields(row: Row, cursor: number, budget: number, visit: FieldVisitor): number {
    const record = this.#row(row);
    const part = partOf(record);
    if (cursor < 0 || cursor > 0xffffffff) return 0;
    const bytes = new KeyBytes();
    let seen = 0;
    let last = -1;
    let next = 0;
    const from = cursor === 0 ? part : fieldHashKey(part, cursor);
    const sub = this.#store.subOf(record);
    this.#store.forward(sub, from, partEnd[part], 0, budget + 1, ({ key, value }) => {
      // All fields of one hash go together, so that the hash is enough to go on from.
      const hash = hashOfFieldKey(key);
      if (seen >= budget && hash !== last) {
        next = hash;
        return true;
      }
      last = hash;
      seen++;
      const n = key.length - fieldHeaderBytes;
      return visit(bytes.of(key), fieldHeaderBytes, n, value, 0, value.length);
    });
    return next;
  }

  putField(
    row: Row,
    fb: Buffer,
    fs: number,
    fn: number,
    vb: Buffer,
    vs: number,
    vn: number,
  ): boolean {
    const record = this.#row(row);
    const sub = this.#store.subOf(record);
    const key = fieldKey(Part.field, fb, fs, fn);
    const old = this.#store.read(sub, key);
    const isNew = old === undefined;
    const oldBytes = old?.value.length ?? 0;
    // A member has nothing to overwrite.
    if (!isNew && record.shape === Shape.set) return false;
    let value = emptyBytes;
    if (vn > 0) {
      value = Buffer.allocUnsafe(vn);
      copyBytes(value, 0, vb, vs, vn);
    }
    this.#store.put(sub, key, value, 0);
    if (isNew) this.#grow(record, fn + vn);
    else if (vn !== oldBytes) {
      this.#store.touchRow(record);
      this.#resize(record, vn - oldBytes);
    }
    return isNew;
  }

  removeField(row: Row, b: Buffer, s: number, n: number): boolean {
    const record = this.#row(row);
    const sub = this.#store.subOf(record);
    const key = fieldKey(partOf(record), b, s, n);
    const found = this.#store.read(sub, key);
    if (found === undefined) return false;
    const { score, value } = found;
    this.#store.remove(sub, key);
    if (record.shape === Shape.ranked) this.#store.remove(sub, orderKey(score, b, s, n));
    this.#shrink(record, 1, n + (record.shape === Shape.ranked ? scoreBytes : value.length));
    return true;
  }

  // ---- ranked rows

  score(row: Row, b: Buffer, s: number, n: number): number {
    const found = this.#store.read(
      this.#store.subOf(this.#row(row)),
      fieldKey(Part.member, b, s, n),
    );
    return found === undefined ? NaN : found.score;
  }

  putScore(row: Row, b: Buffer, s: number, n: number, score: number): boolean {
    const record = this.#row(row);
    const sub = this.#store.subOf(record);
    const key = fieldKey(Part.member, b, s, n);
    const found = this.#store.read(sub, key);
    const stored = score === 0 ? 0 : score;
    if (found !== undefined) {
      if (found.score === stored) return false;
      this.#store.remove(sub, orderKey(found.score, b, s, n));
    }
    this.#store.put(sub, key, emptyBytes, stored);
    this.#store.put(sub, orderKey(stored, b, s, n), emptyBytes, 0);
    if (found === undefined) this.#grow(record, n + scoreBytes);
    return found === undefined;
  }

  rank(row: Row, b: Buffer, s: number, n: number): number {
    const score = this.score(row, b, s, n);
    if (Number.isNaN(score)) return -1;
    return ranked.rankOf(this.#store, this.#store.subOf(this.#row(row)), b, s, n, score);
  }

  eachByRank(row: Row, from: number, count: number, reverse: boolean, visit: RankedVisitor): void {
    const record = this.#row(row);
    const sub = this.#store.subOf(record);
    ranked.eachByRank(this.#store, sub, record.count, from, count, reverse, visit);
  }

  eachByScore(
    row: Row,
    range: ScoreRange,
    reverse: boolean,
    offset: number,
    limit: number,
    visit: RankedVisitor,
  ): void {
    const sub = this.#store.subOf(this.#row(row));
    ranked.eachByScore(this.#store, sub, range, reverse, offset, limit, visit);
  }

  countByScore(row: Row, range: ScoreRange): number {
    return ranked.countByScore(this.#store, this.#store.subOf(this.#row(row)), range);
  }

  eachByLex(
    row: Row,
    range: LexRange,
    reverse: boolean,
    offset: number,
    limit: number,
    visit: RankedVisitor,
  ): void {
    const sub = this.#store.subOf(this.#row(row));
    ranked.eachByLex(this.#store, sub, range, reverse, offset, limit, visit);
  }

  countByLex(row: Row, range: LexRange): number {
    return ranked.countByLex(this.#store, this.#store.subOf(this.#row(row)), range);
  }

  // ---- arrays

  element(row: Row, index: number, out: Slice): boolean {
    const record = this.#row(row);
    return readElement(this.#store, this.#store.subOf(record), record, index, out);
  }

  eachElement(row: Row, from: number, count: number, reverse: boolean, visit: BytesVisitor): void {
    const record = this.#row(row);
    eachElement(this.#store, this.#store.subOf(record), record, from, count, reverse, visit);
  }

  push(row: Row, atHead: boolean, b: Buffer, s: number, n: number): void {
    const record = this.#row(row);
    this.#store.touchRow(record);
    if (atHead) record.head--;
    const position = atHead ? record.head : record.head + record.count;
    writeElement(this.#store, this.#store.subOf(record), position, b, s, n);
    this.#grow(record, n);
  }

  pop(row: Row, atHead: boolean): void {
    this.removeElements(row, atHead ? 0 : this.#row(row).count - 1, 1);
  }

  setElement(row: Row, index: number, b: Buffer, s: number, n: number): void {
    const record = this.#row(row);
    const sub = this.#store.subOf(record);
    const position = record.head + index;
    const oldBytes = this.#store.read(sub, elementKey(position))?.value.length ?? 0;
    writeElement(this.#store, sub, position, b, s, n);
    if (n === oldBytes) return;
    this.#store.touchRow(record);
    this.#resize(record, n - oldBytes);
  }

  insertElement(row: Row, index: number, b: Buffer, s: number, n: number): void {
    const record = this.#row(row);
    const sub = this.#store.subOf(record);
    const { head, position } = openGap(this.#store, sub, record, index);
    this.#store.touchRow(record);
    record.head = head;
    writeElement(this.#store, sub, position, b, s, n);
    this.#grow(record, n);
  }

  removeElements(row: Row, index: number, count: number): void {
    const record = this.#row(row);
    const n = Math.min(count, record.count - index);
    if (n <= 0) return;
    const sub = this.#store.subOf(record);
    const bytes = Math.round((record.bytes / record.count) * n);
    if (n === record.count) {
      if (n > fewElements) {
        this.drop(row);
        return;
      }
      for (let i = 0; i < n; i++) this.#store.remove(sub, elementKey(record.head + i));
    } else {
      const head = closeGap(this.#store, sub, record, index, n);
      this.#store.touchRow(record);
      record.head = head;
    }
    this.#shrink(record, n, bytes);
  }

  // ---- streams

  streamState(row: Row, out: Slice): void {
    const { value } = this.#row(row);
    out.set(value, 0, value.length);
  }

  setStreamState(row: Row, b: Buffer, s: number, n: number): void {
    const record = this.#row(row);
    this.#store.touchRow(record);
    const state = Buffer.allocUnsafe(n);
    copyBytes(state, 0, b, s, n);
    record.value = state;
    this.#store.recount(record);
  }

  streamRecord(row: Row, b: Buffer, s: number, n: number, out?: Slice): boolean {
    const found = this.#store.read(this.#store.subOf(this.#row(row)), recordKey(b, s, n));
    if (found === undefined) return false;
    out?.set(found.value, 0, found.value.length);
    return true;
  }

  eachStreamRecord(
    row: Row,
    from: Buffer,
    to: Buffer,
    reverse: boolean,
    want: number,
    visit: FieldVisitor,
  ): void {
    const sub = this.#store.subOf(this.#row(row));
    records.each(this.#store, sub, from, to, reverse, want, visit);
  }

  addStreamRecord(
    row: Row,
    kb: Buffer,
    ks: number,
    kn: number,
    vb: Buffer,
    vs: number,
    vn: number,
  ): void {
    const record = this.#row(row);
    records.write(this.#store, this.#store.subOf(record), recordKey(kb, ks, kn), vb, vs, vn);
    this.#grow(record, kn + vn);
  }

  setStreamRecord(
    row: Row,
    kb: Buffer,
    ks: number,
    kn: number,
    vb: Buffer,
    vs: number,
    vn: number,
  ): void {
    const record = this.#row(row);
    const sub = this.#store.subOf(record);
    const key = recordKey(kb, ks, kn);
    const old = this.#store.read(sub, key);
    if (old === undefined) return;
    const more = vn - old.value.length;
    records.write(this.#store, sub, key, vb, vs, vn);
    if (more === 0) return;
    this.#store.touchRow(record);
    this.#resize(record, more);
  }

  removeStreamRecord(row: Row, b: Buffer, s: number, n: number): boolean {
    const record = this.#row(row);
    const sub = this.#store.subOf(record);
    const key = recordKey(b, s, n);
    const old = this.#store.read(sub, key);
    if (old === undefined) return false;
    this.#lose(record, 1, n + old.value.length);
    this.#store.remove(sub, key);
    return true;
  }

  removeStreamRecords(row: Row, from: Buffer, to: Buffer): number {
    const record = this.#row(row);
    const removed = records.removeRange(this.#store, this.#store.subOf(record), from, to);
    if (removed.records > 0) this.#lose(record, removed.records, removed.bytes);
    return removed.records;
  }

  /** As `#shrink`, of a row that stays when nothing is left in it. */
  #lose(row: RowRecord, count: number, bytes: number): void {
    this.#store.touchRow(row);
    row.count -= count;
    this.#resize(row, -bytes);
  }

  // ---- the whole table

  scan(cursor: number, budget: number, visit: (row: Row) => void): number {
    const { ordered, meta } = this.state;
    let from = '';
    if (cursor !== 0) {
      if (cursor < 0 || cursor >= 2 ** 48) return 0;
      // An unknown cursor begins again: nothing is missed.
      from = ordered ? (this.#cursors.get(cursor) ?? '') : hashKey(cursor);
    }
    const rows: RowRecord[] = [];
    let last = -1;
    let next = 0;
    this.#store.forward(meta, from, lastKey, 0, budget + 1, (record) => {
      const hash = hashOfMetaKey(record.key);
      if (rows.length >= budget && (ordered || hash !== last)) {
        next = ordered ? this.#remember(record.key) : hash;
        return true;
      }
      last = hash;
      rows.push(record as RowRecord);
      return false;
    });
    for (const row of rows) if (row.present) visit(this.#store.cache.slotOf(row));
    return next;
  }

  #remember(key: string): number {
    const cursor = this.#nextCursor++;
    this.#cursors.set(cursor, key);
    if (this.#cursors.size > maxCursors) {
      for (const eldest of this.#cursors.keys()) {
        this.#cursors.delete(eldest);
        break;
      }
    }
    return cursor;
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
    const from = ordered ? '' : hashKey(Math.floor(random * 2 ** 48));
    this.#store.forward(meta, from, lastKey, offset, offset + 1, see);
    if (found === undefined) this.#store.forward(meta, '', from, 0, 1, see);
    return found === undefined ? 0 : this.#store.cache.slotOf(found);
  }

  clear(): void {
    if (this.state.rows > 0) this.#host.replaceState(this);
  }
}

function keyBytes(row: RowRecord): number {
  return row.key.length - hashKeyBytes;
}

function payloadBytes(row: RowRecord): number {
  return row.shape === Shape.value ? row.count : row.bytes;
}

/** Where a field or member is looked up. */
function partOf(row: RowRecord): 'f' | 'z' {
  return row.shape === Shape.ranked ? Part.member : Part.field;
}
