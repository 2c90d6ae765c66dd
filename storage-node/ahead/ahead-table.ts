// A table whose writes can be undone: before each write, its undo record goes to the undo log. Reads are those of the
// engine.

import type { Slice } from '../../universal-row/bytes.ts';
import {
  Shape,
  type BytesVisitor,
  type FieldVisitor,
  type LexRange,
  type RankedVisitor,
  type Row,
  type ScoreRange,
} from '../../universal-row/rows.ts';
import type { RowTable } from '../../engines/engine.ts';
import { RowUndo } from './row-undo.ts';

export class AheadTable extends RowUndo implements RowTable {
  putValue(
    b: Buffer,
    s: number,
    n: number,
    vb: Buffer,
    vs: number,
    vn: number,
    expireAt: number,
  ): Row {
    const row = this.t.find(b, s, n);
    if (row === 0 || !this.isSaved(row)) this.save(row, b, s, n);
    const put = this.t.putValue(b, s, n, vb, vs, vn, expireAt);
    this.wholeRowIsSaved(put);
    return put;
  }

  reserveValue(b: Buffer, s: number, n: number, bytes: number, expireAt: number): Row {
    const row = this.t.find(b, s, n);
    if (row === 0 || !this.isSaved(row)) this.save(row, b, s, n);
    const put = this.t.reserveValue(b, s, n, bytes, expireAt);
    this.wholeRowIsSaved(put);
    return put;
  }

  fillValue(offset: number, vb: Buffer, vs: number, vn: number): void {
    this.t.fillValue(offset, vb, vs, vn);
  }

  create(b: Buffer, s: number, n: number, shape: Shape): Row {
    const row = this.t.find(b, s, n);
    if (row === 0 || !this.isSaved(row)) this.save(row, b, s, n);
    const created = this.t.create(b, s, n, shape);
    this.wholeRowIsSaved(created);
    return created;
  }

  patchValue(row: Row, offset: number, vb: Buffer, vs: number, vn: number): void {
    if (!this.isSaved(row)) {
      const { t } = this;
      if (offset + vn > t.count(row)) {
        this.saveRow(row);
        this.wholeRowIsSaved(row);
      } else {
        const old = this.old;
        const w = this.undo(row);
        t.value(row, old);
        w.patch(offset, old.b, old.s + offset, vn);
      }
    }
    this.t.patchValue(row, offset, vb, vs, vn);
  }

  drop(row: Row): void {
    if (!this.isSaved(row)) this.saveRow(row);
    this.saved = 0;
    this.t.drop(row);
  }

  setExpireAt(row: Row, expireAt: number): void {
    if (!this.isSaved(row)) this.undo(row).expire(this.t.expireAt(row));
    this.t.setExpireAt(row, expireAt);
  }

  rename(row: Row, b: Buffer, s: number, n: number): Row {
    const { t } = this;
    const there = t.find(b, s, n);
    if (there === row) return row;
    const key = Buffer.from(b.subarray(s, s + n));
    if (there !== 0) this.touchAll(there);
    const w = this.owner.undo();
    const from = this.keyHeld;
    t.key(row, from);
    w.row(this.number, key, 0, n);
    w.rename(from.b, from.s, from.n);
    if (there !== 0) this.restore(w, there, key, 0, n);
    this.saved = 0;
    return t.rename(row, key, 0, n);
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
    const { t } = this;
    if (!this.saveIfEmpty(row)) {
      const old = this.old;
      const isThere = t.field(row, fb, fs, fn, old);
      const w = this.undo(row);
      if (isThere) {
        t.field(row, fb, fs, fn, old);
        w.field(fb, fs, fn, old.b, old.s, old.n);
      } else w.unfield(fb, fs, fn);
    }
    return t.putField(row, fb, fs, fn, vb, vs, vn);
  }

  removeField(row: Row, b: Buffer, s: number, n: number): boolean {
    const { t } = this;
    const old = this.old;
    const isRanked = t.shape(row) === Shape.ranked;
    if (!t.field(row, b, s, n, isRanked ? undefined : old)) return false;
    if (!this.saveLast(row, 1)) {
      const w = this.undo(row);
      if (isRanked) w.score(t.score(row, b, s, n), b, s, n);
      else {
        t.field(row, b, s, n, old);
        w.field(b, s, n, old.b, old.s, old.n);
      }
    }
    t.removeField(row, b, s, n);
    this.hasShrunk(row);
    return true;
  }

  putScore(row: Row, b: Buffer, s: number, n: number, score: number): boolean {
    const { t } = this;
    if (!this.saveIfEmpty(row)) {
      const old = t.score(row, b, s, n);
      const w = this.undo(row);
      if (Number.isNaN(old)) w.unfield(b, s, n);
      else w.score(old, b, s, n);
    }
    return t.putScore(row, b, s, n, score);
  }

  push(row: Row, atHead: boolean, b: Buffer, s: number, n: number): void {
    if (!this.saveIfEmpty(row)) this.undo(row).pop(atHead);
    this.t.push(row, atHead, b, s, n);
  }

  pop(row: Row, atHead: boolean): void {
    const { t } = this;
    if (!this.saveLast(row, 1)) {
      const old = this.old;
      const index = atHead ? 0 : t.count(row) - 1;
      t.element(row, index, old);
      const w = this.undo(row);
      t.element(row, index, old);
      w.push(atHead, old.b, old.s, old.n);
    }
    t.pop(row, atHead);
    this.hasShrunk(row);
  }

  setElement(row: Row, index: number, b: Buffer, s: number, n: number): void {
    const { t } = this;
    if (!this.isSaved(row)) {
      const old = this.old;
      t.element(row, index, old);
      const w = this.undo(row);
      t.element(row, index, old);
      w.element(index, old.b, old.s, old.n);
    }
    t.setElement(row, index, b, s, n);
  }

  insertElement(row: Row, index: number, b: Buffer, s: number, n: number): void {
    if (!this.saveIfEmpty(row)) this.undo(row).remove(index, 1);
    this.t.insertElement(row, index, b, s, n);
  }

  removeElements(row: Row, index: number, count: number): void {
    const { t } = this;
    const removed = Math.min(count, t.count(row) - index);
    if (removed > 0 && !this.saveLast(row, removed)) {
      t.eachElement(row, index, removed, false, () => {});
      const w = this.undo(row);
      let at = index;
      const isTail = index + removed === t.count(row);
      t.eachElement(row, index, removed, false, (b, s, n) => {
        if (isTail) w.push(false, b, s, n);
        else w.insert(at++, b, s, n);
      });
    }
    t.removeElements(row, index, count);
    this.hasShrunk(row);
  }

  setStreamState(row: Row, b: Buffer, s: number, n: number): void {
    const { t } = this;
    if (!this.isSaved(row)) {
      const old = this.old;
      const w = this.undo(row);
      t.streamState(row, old);
      w.streamState(old.b, old.s, old.n);
    }
    t.setStreamState(row, b, s, n);
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
    if (!this.isSaved(row)) this.undo(row).streamRemove(kb, ks, kn);
    this.t.addStreamRecord(row, kb, ks, kn, vb, vs, vn);
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
    if (!this.isSaved(row)) this.#saveRecord(row, kb, ks, kn, false);
    this.t.setStreamRecord(row, kb, ks, kn, vb, vs, vn);
  }

  #saveRecord(row: Row, b: Buffer, s: number, n: number, isNew: boolean): void {
    const { t } = this;
    const old = this.old;
    if (!t.streamRecord(row, b, s, n, old)) return;
    const w = this.undo(row);
    t.streamRecord(row, b, s, n, old);
    w.streamRecord(isNew, b, s, n, old.b, old.s, old.n);
  }

  removeStreamRecord(row: Row, b: Buffer, s: number, n: number): boolean {
    if (!this.isSaved(row)) this.#saveRecord(row, b, s, n, true);
    return this.t.removeStreamRecord(row, b, s, n);
  }

  removeStreamRecords(row: Row, from: Buffer, to: Buffer): number {
    const { t } = this;
    if (!this.isSaved(row)) {
      const count = t.count(row);
      t.eachStreamRecord(row, from, to, false, count, () => {});
      const w = this.undo(row);
      t.eachStreamRecord(row, from, to, false, count, (kb, ks, kn, vb, vs, vn) =>
        w.streamRecord(true, kb, ks, kn, vb, vs, vn),
      );
    }
    return t.removeStreamRecords(row, from, to);
  }

  clear(): void {
    this.saved = 0;
    if (this.t.rowCount() > 0) this.owner.hideRows(this.number);
  }

  // ---- reads

  get expiringRows(): number {
    return this.t.expiringRows;
  }
  storedBytes(): number {
    return this.t.storedBytes();
  }
  expired(now: number, limit: number, visit: (row: Row) => void): void {
    this.t.expired(now, limit, visit);
  }
  find(b: Buffer, s: number, n: number): Row {
    return this.t.find(b, s, n);
  }
  rowCount(): number {
    return this.t.rowCount();
  }
  key(row: Row, out: Slice): void {
    this.t.key(row, out);
  }
  shape(row: Row): Shape {
    return this.t.shape(row);
  }
  count(row: Row): number {
    return this.t.count(row);
  }
  expireAt(row: Row): number {
    return this.t.expireAt(row);
  }
  footprint(row: Row): number {
    return this.t.footprint(row);
  }
  scan(cursor: number, budget: number, visit: (row: Row) => void): number {
    return this.t.scan(cursor, budget, visit);
  }
  anyRow(random: number): Row {
    return this.t.anyRow(random);
  }
  value(row: Row, out: Slice): void {
    this.t.value(row, out);
  }
  field(row: Row, b: Buffer, s: number, n: number, out?: Slice): boolean {
    return this.t.field(row, b, s, n, out);
  }
  fieldAt(row: Row, index: number, field: Slice, value: Slice): void {
    this.t.fieldAt(row, index, field, value);
  }
  eachField(row: Row, visit: FieldVisitor): void {
    this.t.eachField(row, visit);
  }
  scanFields(row: Row, cursor: number, budget: number, visit: FieldVisitor): number {
    return this.t.scanFields(row, cursor, budget, visit);
  }
  score(row: Row, b: Buffer, s: number, n: number): number {
    return this.t.score(row, b, s, n);
  }
  rank(row: Row, b: Buffer, s: number, n: number): number {
    return this.t.rank(row, b, s, n);
  }
  eachByRank(row: Row, from: number, count: number, reverse: boolean, visit: RankedVisitor): void {
    this.t.eachByRank(row, from, count, reverse, visit);
  }
  eachByScore(
    row: Row,
    range: ScoreRange,
    reverse: boolean,
    offset: number,
    limit: number,
    visit: RankedVisitor,
  ): void {
    this.t.eachByScore(row, range, reverse, offset, limit, visit);
  }
  countByScore(row: Row, range: ScoreRange): number {
    return this.t.countByScore(row, range);
  }
  eachByLex(
    row: Row,
    range: LexRange,
    reverse: boolean,
    offset: number,
    limit: number,
    visit: RankedVisitor,
  ): void {
    this.t.eachByLex(row, range, reverse, offset, limit, visit);
  }
  countByLex(row: Row, range: LexRange): number {
    return this.t.countByLex(row, range);
  }
  element(row: Row, index: number, out: Slice): boolean {
    return this.t.element(row, index, out);
  }
  eachElement(row: Row, from: number, count: number, reverse: boolean, visit: BytesVisitor): void {
    this.t.eachElement(row, from, count, reverse, visit);
  }
  streamState(row: Row, out: Slice): void {
    this.t.streamState(row, out);
  }
  streamRecord(row: Row, b: Buffer, s: number, n: number, out?: Slice): boolean {
    return this.t.streamRecord(row, b, s, n, out);
  }
  eachStreamRecord(
    row: Row,
    from: Buffer,
    to: Buffer,
    reverse: boolean,
    want: number,
    visit: FieldVisitor,
  ): void {
    this.t.eachStreamRecord(row, from, to, reverse, want, visit);
  }
}
