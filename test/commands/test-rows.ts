// A stand-in for a pod's transaction around a table, for tests: tables by number, a clock, and rows
// that expire.

import type { Slice } from '../../universal-row/bytes.ts';
import { assert } from '../../universal-row/assert.ts';
import type {
  BytesVisitor,
  FieldVisitor,
  LexRange,
  RankedVisitor,
  Row,
  RowReads,
  Rows,
  RowWrites,
  ScoreRange,
} from '../../universal-row/rows.ts';
import { Shape } from '../../universal-row/rows.ts';
import {
  isTimedRowOver,
  setTimeOfTimedRow,
  timeOfTimedRow,
} from '../../universal-row/timed-map.ts';

/** Tables to run commands on: strict ones, or those of an engine that answers at once. */
export interface Tables {
  table(id: number): RowReads & RowWrites;
  swapTables(a: number, b: number): void;
  endCommand?(): void;
}

export class TestRows implements Rows {
  /** The clock; undefined is the machine's own. */
  fixedNow: number | undefined;
  now = 0;
  table = 0;
  readonly tableCount = 16;
  /** Whether the running command has written. */
  wrote = false;
  readonly #tables: Tables;
  #t: RowReads & RowWrites;

  constructor(tables: Tables) {
    this.#tables = tables;
    this.#t = tables.table(0);
  }

  begin(table: number): void {
    this.now = this.fixedNow ?? Date.now();
    this.wrote = false;
    this.useTable(table);
  }
  end(): void {
    this.#tables.endCommand?.();
  }

  random(): number {
    return Math.random();
  }
  useTable(table: number): void {
    assert(table >= 0 && table < this.tableCount, `table ${table} is out of range`);
    this.table = table;
    this.#t = this.#tables.table(table);
  }
  hasTable(table: number): boolean {
    return table >= 0 && table < this.tableCount;
  }
  swapTables(a: number, b: number): void {
    this.wrote = true;
    this.#tables.swapTables(a, b);
    this.useTable(this.table);
  }
  expect(first: number, last: number, step: number): void {
    assert(first >= 0 && last >= first && step >= 1, `expect ${first} ${last} ${step}`);
  }

  useArguments(): void {}
  addScriptSteps(): void {}

  #live(row: Row): boolean {
    if (row === 0) return false;
    const expireAt = this.#t.expireAt(row);
    if (expireAt === 0 || expireAt > this.now) return true;
    if (this.#t.shape(row) === Shape.timed && !isTimedRowOver(this.#t, row, this.now)) return true;
    this.#t.drop(row);
    return false;
  }

  find(b: Buffer, s: number, n: number): Row {
    const row = this.#t.find(b, s, n);
    return this.#live(row) ? row : 0;
  }
  scan(cursor: number, budget: number, visit: (row: Row) => void): number {
    const seen: Row[] = [];
    const next = this.#t.scan(cursor, budget, (row) => void seen.push(row));
    for (const row of seen) if (this.#live(row)) visit(row);
    return next;
  }
  anyRow(random: number): Row {
    for (;;) {
      const row = this.#t.anyRow(random);
      if (row === 0 || this.#live(row)) return row;
    }
  }

  rowCount(): number {
    return this.#t.rowCount();
  }
  key(row: Row, out: Slice): void {
    this.#t.key(row, out);
  }
  shape(row: Row): Shape {
    return this.#t.shape(row);
  }
  count(row: Row): number {
    return this.#t.count(row);
  }
  expireAt(row: Row): number {
    if (this.#t.shape(row) === Shape.timed) return timeOfTimedRow(this.#t, row);
    return this.#t.expireAt(row);
  }
  footprint(row: Row): number {
    return this.#t.footprint(row);
  }
  value(row: Row, out: Slice): void {
    this.#t.value(row, out);
  }
  field(row: Row, b: Buffer, s: number, n: number, out?: Slice): boolean {
    return this.#t.field(row, b, s, n, out);
  }
  fieldAt(row: Row, index: number, field: Slice, value: Slice): void {
    this.#t.fieldAt(row, index, field, value);
  }
  eachField(row: Row, visit: FieldVisitor): void {
    this.#t.eachField(row, visit);
  }
  scanFields(row: Row, cursor: number, budget: number, visit: FieldVisitor): number {
    return this.#t.scanFields(row, cursor, budget, visit);
  }
  score(row: Row, b: Buffer, s: number, n: number): number {
    return this.#t.score(row, b, s, n);
  }
  rank(row: Row, b: Buffer, s: number, n: number): number {
    return this.#t.rank(row, b, s, n);
  }
  eachByRank(row: Row, from: number, count: number, rev: boolean, visit: RankedVisitor): void {
    this.#t.eachByRank(row, from, count, rev, visit);
  }
  eachByScore(
    row: Row,
    range: ScoreRange,
    reverse: boolean,
    offset: number,
    limit: number,
    visit: RankedVisitor,
  ): void {
    this.#t.eachByScore(row, range, reverse, offset, limit, visit);
  }
  countByScore(row: Row, range: ScoreRange): number {
    return this.#t.countByScore(row, range);
  }
  eachByLex(
    row: Row,
    range: LexRange,
    reverse: boolean,
    offset: number,
    limit: number,
    visit: RankedVisitor,
  ): void {
    this.#t.eachByLex(row, range, reverse, offset, limit, visit);
  }
  countByLex(row: Row, range: LexRange): number {
    return this.#t.countByLex(row, range);
  }
  element(row: Row, index: number, out: Slice): boolean {
    return this.#t.element(row, index, out);
  }
  eachElement(row: Row, from: number, count: number, rev: boolean, visit: BytesVisitor): void {
    this.#t.eachElement(row, from, count, rev, visit);
  }

  putValue(
    b: Buffer,
    s: number,
    n: number,
    vb: Buffer,
    vs: number,
    vn: number,
    expireAt: number,
  ): Row {
    this.wrote = true;
    return this.#t.putValue(b, s, n, vb, vs, vn, expireAt);
  }
  reserveValue(b: Buffer, s: number, n: number, bytes: number, expireAt: number): Row {
    this.wrote = true;
    return this.#t.reserveValue(b, s, n, bytes, expireAt);
  }
  fillValue(offset: number, vb: Buffer, vs: number, vn: number): void {
    this.#t.fillValue(offset, vb, vs, vn);
  }
  patchValue(row: Row, offset: number, vb: Buffer, vs: number, vn: number): void {
    this.wrote = true;
    this.#t.patchValue(row, offset, vb, vs, vn);
  }
  create(b: Buffer, s: number, n: number, shape: Shape): Row {
    this.wrote = true;
    return this.#t.create(b, s, n, shape);
  }
  drop(row: Row): void {
    this.wrote = true;
    this.#t.drop(row);
  }
  setExpireAt(row: Row, expireAt: number): void {
    this.wrote = true;
    const isTimed = this.#t.shape(row) === Shape.timed;
    this.#t.setExpireAt(row, isTimed ? setTimeOfTimedRow(this.#t, row, expireAt) : expireAt);
  }
  rename(row: Row, b: Buffer, s: number, n: number): Row {
    this.wrote = true;
    return this.#t.rename(row, b, s, n);
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
    this.wrote = true;
    return this.#t.putField(row, fb, fs, fn, vb, vs, vn);
  }
  removeField(row: Row, b: Buffer, s: number, n: number): boolean {
    const removed = this.#t.removeField(row, b, s, n);
    this.wrote ||= removed;
    return removed;
  }
  putScore(row: Row, b: Buffer, s: number, n: number, score: number): boolean {
    this.wrote = true;
    return this.#t.putScore(row, b, s, n, score);
  }
  push(row: Row, atHead: boolean, b: Buffer, s: number, n: number): void {
    this.wrote = true;
    this.#t.push(row, atHead, b, s, n);
  }
  pop(row: Row, atHead: boolean): void {
    this.wrote = true;
    this.#t.pop(row, atHead);
  }
  setElement(row: Row, index: number, b: Buffer, s: number, n: number): void {
    this.wrote = true;
    this.#t.setElement(row, index, b, s, n);
  }
  insertElement(row: Row, index: number, b: Buffer, s: number, n: number): void {
    this.wrote = true;
    this.#t.insertElement(row, index, b, s, n);
  }
  removeElements(row: Row, index: number, count: number): void {
    this.wrote = true;
    this.#t.removeElements(row, index, count);
  }
  streamState(row: Row, out: Slice): void {
    this.#t.streamState(row, out);
  }
  streamRecord(row: Row, b: Buffer, s: number, n: number, out?: Slice): boolean {
    return this.#t.streamRecord(row, b, s, n, out);
  }
  eachStreamRecord(...args: Parameters<Rows['eachStreamRecord']>): void {
    this.#t.eachStreamRecord(...args);
  }
  setStreamState(row: Row, b: Buffer, s: number, n: number): void {
    this.wrote = true;
    this.#t.setStreamState(row, b, s, n);
  }
  addStreamRecord(...args: Parameters<Rows['addStreamRecord']>): void {
    this.wrote = true;
    this.#t.addStreamRecord(...args);
  }
  setStreamRecord(...args: Parameters<Rows['setStreamRecord']>): void {
    this.wrote = true;
    this.#t.setStreamRecord(...args);
  }
  removeStreamRecord(row: Row, b: Buffer, s: number, n: number): boolean {
    this.wrote = true;
    return this.#t.removeStreamRecord(row, b, s, n);
  }
  removeStreamRecords(row: Row, from: Buffer, to: Buffer): number {
    this.wrote = true;
    return this.#t.removeStreamRecords(row, from, to);
  }
  clear(): void {
    this.wrote = true;
    this.#t.clear();
  }
}
