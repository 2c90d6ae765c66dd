// Container elements as records under their row: maps, sets, ranked rows, arrays and streams.

import { copyBytes, emptyBytes, type Slice } from '../../universal-row/bytes.ts';
import { Shape } from '../../universal-row/rows.ts';
import type {
  BytesVisitor,
  FieldVisitor,
  LexRange,
  RankedVisitor,
  Row,
  ScoreRange,
} from '../../universal-row/rows.ts';
import { closeGap, eachElement, openGap, readElement, writeElement } from './elements.ts';
import { KeyBytes } from './key-bytes.ts';
import {
  elementKey,
  fieldHashKey,
  fieldHeaderBytes,
  fieldKey,
  hashOfFieldKey,
  orderKey,
  Part,
  partEnd,
  recordKey,
} from './key-layout.ts';
import { KvRows } from './kv-rows.ts';
import * as ranked from './ranked.ts';
import * as records from './stream-records.ts';
import type { KvRecord, RowRecord } from './record-space.ts';
import { ScanCursors, sharedHashes } from './scan-cursors.ts';

// Up to this many elements are deleted one by one with their row; more are left to the purge.
const fewElements = 16;
const scoreBytes = 8;
/** Cursors of scans of fields below it are hashes; others are saved positions. */
const hashes = 2 ** 32;

export class KvContainers extends KvRows {
  protected readonly cursors = new ScanCursors();

  // ---- fields

  field(row: Row, b: Buffer, s: number, n: number, out?: Slice): boolean {
    const record = this.row(row);
    const found = this.store.read(this.store.subOf(record), fieldKey(partOf(record), b, s, n));
    if (found === undefined) return false;
    out?.set(found.value, 0, found.value.length);
    return true;
  }

  fieldAt(row: Row, index: number, field: Slice, value: Slice): void {
    const record = this.row(row);
    const part = partOf(record);
    const fromEnd = record.count - 1 - index;
    const see = (found: KvRecord): boolean => {
      const b = Buffer.from(found.key, 'latin1');
      field.set(b, fieldHeaderBytes, b.length - fieldHeaderBytes);
      value.set(found.value, 0, found.value.length);
      return true;
    };
    const sub = this.store.subOf(record);
    const end = partEnd[part];
    if (index <= fromEnd) this.store.forward(sub, part, end, index, index + 1, see);
    else this.store.backward(sub, part, end, fromEnd, fromEnd + 1, see);
  }

  eachField(row: Row, visit: FieldVisitor): void {
    const record = this.row(row);
    const part = partOf(record);
    const bytes = new KeyBytes();
    const sub = this.store.subOf(record);
    this.store.forward(sub, part, partEnd[part], 0, record.count, ({ key, value }) => {
      const n = key.length - fieldHeaderBytes;
      return visit(bytes.of(key), fieldHeaderBytes, n, value, 0, value.length);
    });
  }

  scanFields(row: Row, cursor: number, budget: number, visit: FieldVisitor): number {
    const record = this.row(row);
    const part = partOf(record);
    const bytes = new KeyBytes();
    let seen = 0;
    let last = -1;
    let next = 0;
    const from = this.#placeOf(record, part, cursor);
    const sub = this.store.subOf(record);
    this.store.forward(sub, from, partEnd[part], 0, budget + 1, ({ key, value }) => {
      // Fields of one hash go together, so that the hash is enough to continue from, unless they are many.
      const hash = hashOfFieldKey(key);
      if (seen >= budget && hash !== last) {
        next = hash;
        return true;
      }
      if (seen >= budget + sharedHashes) {
        next = hashes + this.cursors.remember(key, record.number);
        return true;
      }
      last = hash;
      seen++;
      const n = key.length - fieldHeaderBytes;
      return visit(bytes.of(key), fieldHeaderBytes, n, value, 0, value.length);
    });
    return next;
  }

  /** The first key of a scan. Where a cursor is not known it begins again: nothing is missed. */
  #placeOf(record: RowRecord, part: 'f' | 'z', cursor: number): string {
    if (cursor <= 0) return part;
    if (cursor < hashes) return fieldHashKey(part, cursor);
    return this.cursors.keyOf(cursor - hashes, record.number) ?? part;
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
    const record = this.row(row);
    const sub = this.store.subOf(record);
    const key = fieldKey(Part.field, fb, fs, fn);
    const old = this.store.read(sub, key);
    const isNew = old === undefined;
    const oldBytes = old?.value.length ?? 0;
    // A member has nothing to overwrite.
    if (!isNew && record.shape === Shape.set) return false;
    let value = emptyBytes;
    if (vn > 0) {
      value = Buffer.allocUnsafe(vn);
      copyBytes(value, 0, vb, vs, vn);
    }
    this.store.put(sub, key, value, 0);
    if (isNew) this.grow(record, fn + vn);
    else if (vn !== oldBytes) {
      this.store.touchRow(record);
      this.resize(record, vn - oldBytes);
    }
    return isNew;
  }

  removeField(row: Row, b: Buffer, s: number, n: number): boolean {
    const record = this.row(row);
    const sub = this.store.subOf(record);
    const key = fieldKey(partOf(record), b, s, n);
    const found = this.store.read(sub, key);
    if (found === undefined) return false;
    const { score, value } = found;
    this.store.remove(sub, key);
    if (record.shape === Shape.ranked) this.store.remove(sub, orderKey(score, b, s, n));
    this.shrink(record, 1, n + (record.shape === Shape.ranked ? scoreBytes : value.length));
    return true;
  }

  // ---- ranked rows

  score(row: Row, b: Buffer, s: number, n: number): number {
    const found = this.store.read(this.store.subOf(this.row(row)), fieldKey(Part.member, b, s, n));
    return found === undefined ? NaN : found.score;
  }

  putScore(row: Row, b: Buffer, s: number, n: number, score: number): boolean {
    const record = this.row(row);
    const sub = this.store.subOf(record);
    const key = fieldKey(Part.member, b, s, n);
    const found = this.store.read(sub, key);
    const stored = score === 0 ? 0 : score;
    if (found !== undefined) {
      if (found.score === stored) return false;
      this.store.remove(sub, orderKey(found.score, b, s, n));
    }
    this.store.put(sub, key, emptyBytes, stored);
    this.store.put(sub, orderKey(stored, b, s, n), emptyBytes, 0);
    if (found === undefined) this.grow(record, n + scoreBytes);
    return found === undefined;
  }

  rank(row: Row, b: Buffer, s: number, n: number): number {
    const score = this.score(row, b, s, n);
    if (Number.isNaN(score)) return -1;
    return ranked.rankOf(this.store, this.store.subOf(this.row(row)), b, s, n, score);
  }

  eachByRank(row: Row, from: number, count: number, reverse: boolean, visit: RankedVisitor): void {
    const record = this.row(row);
    const sub = this.store.subOf(record);
    ranked.eachByRank(this.store, sub, record.count, from, count, reverse, visit);
  }

  eachByScore(
    row: Row,
    range: ScoreRange,
    reverse: boolean,
    offset: number,
    limit: number,
    visit: RankedVisitor,
  ): void {
    const sub = this.store.subOf(this.row(row));
    ranked.eachByScore(this.store, sub, range, reverse, offset, limit, visit);
  }

  countByScore(row: Row, range: ScoreRange): number {
    return ranked.countByScore(this.store, this.store.subOf(this.row(row)), range);
  }

  eachByLex(
    row: Row,
    range: LexRange,
    reverse: boolean,
    offset: number,
    limit: number,
    visit: RankedVisitor,
  ): void {
    const sub = this.store.subOf(this.row(row));
    ranked.eachByLex(this.store, sub, range, reverse, offset, limit, visit);
  }

  countByLex(row: Row, range: LexRange): number {
    return ranked.countByLex(this.store, this.store.subOf(this.row(row)), range);
  }

  // ---- arrays

  element(row: Row, index: number, out: Slice): boolean {
    const record = this.row(row);
    return readElement(this.store, this.store.subOf(record), record, index, out);
  }

  eachElement(row: Row, from: number, count: number, reverse: boolean, visit: BytesVisitor): void {
    const record = this.row(row);
    eachElement(this.store, this.store.subOf(record), record, from, count, reverse, visit);
  }

  push(row: Row, atHead: boolean, b: Buffer, s: number, n: number): void {
    const record = this.row(row);
    this.store.touchRow(record);
    if (atHead) record.head--;
    const position = atHead ? record.head : record.head + record.count;
    writeElement(this.store, this.store.subOf(record), position, b, s, n);
    this.grow(record, n);
  }

  pop(row: Row, atHead: boolean): void {
    this.removeElements(row, atHead ? 0 : this.row(row).count - 1, 1);
  }

  setElement(row: Row, index: number, b: Buffer, s: number, n: number): void {
    const record = this.row(row);
    const sub = this.store.subOf(record);
    const position = record.head + index;
    const oldBytes = this.store.read(sub, elementKey(position))?.value.length ?? 0;
    writeElement(this.store, sub, position, b, s, n);
    if (n === oldBytes) return;
    this.store.touchRow(record);
    this.resize(record, n - oldBytes);
  }

  insertElement(row: Row, index: number, b: Buffer, s: number, n: number): void {
    const record = this.row(row);
    const sub = this.store.subOf(record);
    const { head, position } = openGap(this.store, sub, record, index);
    this.store.touchRow(record);
    record.head = head;
    writeElement(this.store, sub, position, b, s, n);
    this.grow(record, n);
  }

  removeElements(row: Row, index: number, count: number): void {
    const record = this.row(row);
    const n = Math.min(count, record.count - index);
    if (n <= 0) return;
    const sub = this.store.subOf(record);
    const bytes = Math.round((record.bytes / record.count) * n);
    if (n === record.count) {
      if (n > fewElements) {
        this.drop(row);
        return;
      }
      for (let i = 0; i < n; i++) this.store.remove(sub, elementKey(record.head + i));
    } else {
      const head = closeGap(this.store, sub, record, index, n);
      this.store.touchRow(record);
      record.head = head;
    }
    this.shrink(record, n, bytes);
  }

  // ---- streams

  streamState(row: Row, out: Slice): void {
    const { value } = this.row(row);
    out.set(value, 0, value.length);
  }

  setStreamState(row: Row, b: Buffer, s: number, n: number): void {
    const record = this.row(row);
    this.store.touchRow(record);
    const state = Buffer.allocUnsafe(n);
    copyBytes(state, 0, b, s, n);
    record.value = state;
    this.store.recount(record);
  }

  streamRecord(row: Row, b: Buffer, s: number, n: number, out?: Slice): boolean {
    const found = this.store.read(this.store.subOf(this.row(row)), recordKey(b, s, n));
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
    const sub = this.store.subOf(this.row(row));
    records.each(this.store, sub, from, to, reverse, want, visit);
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
    const record = this.row(row);
    records.write(this.store, this.store.subOf(record), recordKey(kb, ks, kn), vb, vs, vn);
    this.grow(record, kn + vn);
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
    const record = this.row(row);
    const sub = this.store.subOf(record);
    const key = recordKey(kb, ks, kn);
    const old = this.store.read(sub, key);
    if (old === undefined) return;
    const more = vn - old.value.length;
    records.write(this.store, sub, key, vb, vs, vn);
    if (more === 0) return;
    this.store.touchRow(record);
    this.resize(record, more);
  }

  removeStreamRecord(row: Row, b: Buffer, s: number, n: number): boolean {
    const record = this.row(row);
    const sub = this.store.subOf(record);
    const key = recordKey(b, s, n);
    const old = this.store.read(sub, key);
    if (old === undefined) return false;
    this.#lose(record, 1, n + old.value.length);
    this.store.remove(sub, key);
    return true;
  }

  removeStreamRecords(row: Row, from: Buffer, to: Buffer): number {
    const record = this.row(row);
    const removed = records.removeRange(this.store, this.store.subOf(record), from, to);
    if (removed.records > 0) this.#lose(record, removed.records, removed.bytes);
    return removed.records;
  }

  /** As `#shrink`, of a row that stays when nothing is left in it. */
  #lose(row: RowRecord, count: number, bytes: number): void {
    this.store.touchRow(row);
    row.count -= count;
    this.resize(row, -bytes);
  }
}

/** Where a field or member is looked up. */
function partOf(row: RowRecord): 'f' | 'z' {
  return row.shape === Shape.ranked ? Part.member : Part.field;
}
