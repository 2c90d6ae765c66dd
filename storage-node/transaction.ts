// The rows as a running command sees them: an engine's table, with expired rows hidden, the table's
// properties enforced, and every write put into the log's open entry before it reaches the engine.

import type { Arguments } from '../universal-row/arguments.ts';
import { Slice } from '../universal-row/bytes.ts';
import type { TableSpan } from '../universal-row/command.ts';
import { CommandError } from '../universal-row/errors.ts';
import type { RecordBatchWriter } from '../universal-row/record-batch.ts';
import { RowWork } from '../universal-row/row-work.ts';
import {
  Shape,
  type BytesVisitor,
  type FieldVisitor,
  type LexRange,
  type RankedVisitor,
  type Row,
  type Rows,
  type ScoreRange,
} from '../universal-row/rows.ts';
import type { Rng } from '../universal-row/environment.ts';
import type { Engine, RowTable } from '../engines/engine.ts';
import { noRules, type TableRules, type TableRulesByNumber } from './table-rules.ts';

const otherPod = new CommandError(
  'ERR the databases of this command are of different models, and one command cannot change both',
);
const readOnlyTable = new CommandError("READONLY You can't write against a read only table.");

/** For what happens by itself. */
/** A value that grows by more is checked against the tenant's quota with its size. */
const largeGrowthBytes = 64 * 1024;

export const everything: TableSpan = { first: 0, count: Infinity };

/** A key that the running command changed. */
export interface Touched {
  table: number;
  key: Buffer;
}

export class Transaction implements Rows {
  now = 0;
  /** True while some key is watched or waited for: only then are changed keys collected. */
  observing = false;
  readonly touched: Touched[] = [];
  /** Called before all rows of a table go, or change places with another's. */
  beforeTableChange: ((tables: readonly number[]) => void) | undefined;
  /** Writes are impossible (the disk is full), so an expired row is hidden but stays. */
  frozen = false;
  /** Keys that reading commands found, and did not find. */
  hits = 0;
  misses = 0;
  /** Rows dropped because their time had come. */
  expiredRows = 0;
  /** Where the running command's work is added up. */
  work = new RowWork();

  /** The words of the running command. */
  private args: Arguments | undefined;
  private readonly engine: Engine;
  private readonly w: RecordBatchWriter;
  private readonly rng: Rng;
  private readonly rules: TableRulesByNumber;
  private span: TableSpan = everything;
  /** Of the table in use, as the log and the engine know it. */
  private number = 0;
  private t: RowTable;
  private rule: TableRules;
  private writing = false;
  // The row that the ops of the open entry are about just now, and the key found last.
  private loggedRow: Row = 0;
  private foundRow: Row = 0;
  private fb: Buffer = Buffer.alloc(0);
  private fs = 0;
  private fn = 0;
  private readonly slice = new Slice();

  constructor(engine: Engine, writer: RecordBatchWriter, rules: TableRulesByNumber, rng: Rng) {
    this.engine = engine;
    this.w = writer;
    this.rules = rules;
    this.rng = rng;
    this.rule = rules.get(this.number) ?? noRules;
    this.t = engine.table(this.number);
  }

  /** As the command knows the table in use: within its span. */
  get table(): number {
    return this.number - this.span.first;
  }

  get tableCount(): number {
    return this.span.count;
  }

  /** Starts a command. `fresh` is false for the second and later commands of one log entry. */
  begin(
    table: number,
    span: TableSpan,
    args: Arguments | undefined,
    writing: boolean,
    now: number,
    fresh: boolean,
  ): void {
    this.span = span;
    this.args = args;
    this.writing = writing;
    this.now = now;
    if (fresh) this.loggedRow = 0;
    this.foundRow = 0;
    if (table !== this.number) this.#switchTo(table);
  }

  /** Looks tables up again after a swap. */
  refresh(): void {
    this.t = this.engine.table(this.number);
    const rule = this.rules.get(this.number);
    if (rule !== undefined) this.rule = rule;
    this.foundRow = 0;
    this.loggedRow = 0;
  }

  hasTable(table: number): boolean {
    return this.rules.get(this.span.first + table) !== undefined;
  }

  useTable(table: number): void {
    const number = this.span.first + table;
    if (number !== this.number) this.#switchTo(number);
  }

  #switchTo(number: number): void {
    const rule = this.rules.get(number);
    if (rule === undefined) throw otherPod;
    if (this.writing && rule.readOnly) throw readOnlyTable;
    this.number = number;
    this.rule = rule;
    this.t = this.engine.table(number);
    this.foundRow = 0;
    this.loggedRow = 0;
  }

  random(): number {
    return this.rng.next();
  }

  // ---- reads

  find(b: Buffer, s: number, n: number): Row {
    this.work.lookups++;
    const row = this.t.find(b, s, n);
    if (row === 0) {
      if (!this.writing) this.misses++;
      return 0;
    }
    if (this.t.expiringRows !== 0 && this.#isExpired(row)) {
      if (!this.writing) this.misses++;
      this.#dropExpired(row);
      return 0;
    }
    if (!this.writing) this.hits++;
    this.foundRow = row;
    this.fb = b;
    this.fs = s;
    this.fn = n;
    return row;
  }

  #isExpired(row: Row): boolean {
    const at = this.t.expireAt(row);
    return at !== 0 && at <= this.now;
  }

  #dropExpired(row: Row): void {
    if (this.frozen) return;
    this.expiredRows++;
    this.drop(row);
  }

  /** Drops up to `limit` rows whose time has come; returns how many. For the pod's own clock. */
  dropExpiredRows(limit: number): number {
    const due: Row[] = [];
    this.t.expired(this.now, limit, (row) => {
      due.push(row);
    });
    for (const row of due) this.#dropExpired(row);
    return due.length;
  }

  rowCount(): number {
    return this.t.rowCount();
  }

  key(row: Row, out: Slice): void {
    this.t.key(row, out);
  }

  shape(row: Row): Shape {
    return row === 0 ? Shape.none : this.t.shape(row);
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

  value(row: Row, out: Slice): void {
    this.t.value(row, out);
    this.#read(out.n);
  }

  #read(bytes: number): void {
    const { work } = this;
    work.reads++;
    work.readBytes += bytes;
  }

  field(row: Row, b: Buffer, s: number, n: number, out?: Slice): boolean {
    const found = this.t.field(row, b, s, n, out);
    this.#read(found && out !== undefined ? out.n : n);
    return found;
  }

  fieldAt(row: Row, index: number, field: Slice, value: Slice): void {
    this.t.fieldAt(row, index, field, value);
    this.#read(field.n + value.n);
  }

  eachField(row: Row, visit: FieldVisitor): void {
    this.#walkFields(row, Infinity);
    this.t.eachField(row, visit);
  }

  #walkFields(row: Row, most: number): void {
    const { t, work } = this;
    const count = Math.min(most, t.count(row));
    const shape = t.shape(row);
    if (shape === Shape.map) work.fieldsWalked += count;
    else if (shape === Shape.ranked) work.scoresWalked += count;
    else work.walked += count;
  }

  scanFields(row: Row, cursor: number, budget: number, visit: FieldVisitor): number {
    this.#walkFields(row, budget);
    return this.t.scanFields(row, cursor, budget, visit);
  }

  score(row: Row, b: Buffer, s: number, n: number): number {
    this.#read(n);
    return this.t.score(row, b, s, n);
  }

  rank(row: Row, b: Buffer, s: number, n: number): number {
    this.work.seeks++;
    this.#read(n);
    return this.t.rank(row, b, s, n);
  }

  eachByRank(row: Row, from: number, count: number, reverse: boolean, visit: RankedVisitor): void {
    this.work.seeks++;
    this.work.scoresWalked += Math.max(0, Math.min(count, this.t.count(row) - from));
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
    this.work.seeks++;
    this.t.eachByScore(row, range, reverse, offset, limit, this.#counted(visit));
  }

  countByScore(row: Row, range: ScoreRange): number {
    this.work.seeks++;
    this.#read(0);
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
    this.work.seeks++;
    this.t.eachByLex(row, range, reverse, offset, limit, this.#counted(visit));
  }

  /** How many are within a range is known only once they were seen. */
  #counted(visit: RankedVisitor): RankedVisitor {
    const { work } = this;
    return (b, s, n, score) => {
      work.scoresWalked++;
      return visit(b, s, n, score);
    };
  }

  countByLex(row: Row, range: LexRange): number {
    this.work.seeks++;
    this.#read(0);
    return this.t.countByLex(row, range);
  }

  element(row: Row, index: number, out: Slice): boolean {
    const found = this.t.element(row, index, out);
    this.#read(found ? out.n : 0);
    return found;
  }

  eachElement(row: Row, from: number, count: number, reverse: boolean, visit: BytesVisitor): void {
    const there = reverse ? from + 1 : this.t.count(row) - from;
    this.work.arrayWalked += Math.max(0, Math.min(count, there));
    this.t.eachElement(row, from, count, reverse, visit);
  }

  streamState(row: Row, out: Slice): void {
    this.t.streamState(row, out);
    this.#read(out.n);
  }

  streamRecord(row: Row, b: Buffer, s: number, n: number, out?: Slice): boolean {
    const found = this.t.streamRecord(row, b, s, n, out);
    this.#read(found && out !== undefined ? out.n : n);
    return found;
  }

  eachStreamRecord(
    row: Row,
    from: Buffer,
    to: Buffer,
    reverse: boolean,
    want: number,
    visit: FieldVisitor,
  ): void {
    const { work } = this;
    work.seeks++;
    // How many there are is known only once they were seen.
    this.t.eachStreamRecord(row, from, to, reverse, want, (kb, ks, kn, vb, vs, vn) => {
      work.fieldsWalked++;
      return visit(kb, ks, kn, vb, vs, vn);
    });
  }

  scan(cursor: number, budget: number, visit: (row: Row) => void): number {
    this.work.walked += Math.min(budget, this.t.rowCount());
    if (this.t.expiringRows === 0) return this.t.scan(cursor, budget, visit);
    return this.t.scan(cursor, budget, (row) => {
      // An expired row is only hidden here: dropping rows would disturb the walk.
      if (!this.#isExpired(row)) visit(row);
    });
  }

  anyRow(random: number): Row {
    this.work.lookups++;
    let row = this.t.anyRow(random);
    // Expired rows are dropped as they are met, so this ends; while frozen it gives up in the end.
    for (let tries = 0; row !== 0 && this.t.expiringRows !== 0 && this.#isExpired(row); tries++) {
      this.#dropExpired(row);
      if (tries > 1000) return 0;
      row = this.t.anyRow(this.rng.next());
    }
    return row;
  }

  expect(first: number, last: number, step: number): void {
    if (this.engine.expectRows === undefined) return;
    this.engine.expectRows(this.number, this.args!, first, last, step);
  }

  useArguments(args: Arguments): void {
    this.args = args;
  }

  // ---- writes

  /** Makes `row` the one that the next ops of the entry are about. */
  #log(row: Row): void {
    if (row === this.loggedRow) return;
    this.loggedRow = row;
    if (row === this.foundRow) {
      this.w.row(this.number, this.fb, this.fs, this.fn);
      if (this.observing) this.#touch(this.fb, this.fs, this.fn);
    } else {
      const k = this.slice;
      this.t.key(row, k);
      this.w.row(this.number, k.b, k.s, k.n);
      if (this.observing) this.#touch(k.b, k.s, k.n);
    }
  }

  #touch(b: Buffer, s: number, n: number): void {
    this.touched.push({ table: this.number, key: Buffer.from(b.subarray(s, s + n)) });
  }

  #checkBytes(bytes: number): void {
    if (bytes > this.rule.maxRowBytes) {
      throw new CommandError(
        `ERR row too large: ${bytes} bytes, the table's maxRowBytes is ${this.rule.maxRowBytes}`,
      );
    }
  }

  /** Before memory is taken for it: the quota was checked for a command of unknown size. */
  #checkRoom(bytes: number): void {
    const full = this.rule.quota?.refusal(bytes);
    if (full !== undefined) throw new CommandError(full);
  }

  /** A value that grows to `bytes`. One that was created empty for this is dropped when it may not. */
  #checkPatch(row: Row, length: number, bytes: number): void {
    try {
      this.#checkBytes(bytes);
      this.#checkRoom(bytes - length);
    } catch (error) {
      if (length === 0) this.drop(row);
      throw error;
    }
  }

  /** As `#checkBytes`. A container that is still empty goes: there is no such row. */
  #checkGrowth(row: Row, bytes: number): void {
    const footprint = this.t.footprint(row) + bytes;
    if (footprint <= this.rule.maxRowBytes) return;
    if (this.t.count(row) === 0) this.drop(row);
    this.#checkBytes(footprint);
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
    const rule = this.rule;
    if (vn > rule.maxRowBytes) this.#checkBytes(vn);
    if (vn > largeGrowthBytes) this.#checkRoom(vn);
    this.work.values++;
    const until =
      expireAt === 0 && rule.ttlDefaultMs !== 0 ? this.now + rule.ttlDefaultMs : expireAt;
    this.w.value(this.number, b, s, n, vb, vs, vn, until);
    if (this.observing) this.#touch(b, s, n);
    const row = this.t.putValue(b, s, n, vb, vs, vn, until);
    this.loggedRow = row;
    return row;
  }

  patchValue(row: Row, offset: number, vb: Buffer, vs: number, vn: number): void {
    const length = this.t.count(row);
    if (offset + vn > this.rule.maxRowBytes || offset + vn - length > largeGrowthBytes) {
      this.#checkPatch(row, length, offset + vn);
    }
    this.work.values++;
    this.#log(row);
    this.w.patch(offset, vb, vs, vn);
    this.t.patchValue(row, offset, vb, vs, vn);
  }

  create(b: Buffer, s: number, n: number, shape: Shape): Row {
    this.w.row(this.number, b, s, n);
    this.w.create(shape);
    if (this.observing) this.#touch(b, s, n);
    const row = this.t.create(b, s, n, shape);
    this.loggedRow = row;
    this.foundRow = row;
    this.fb = b;
    this.fs = s;
    this.fn = n;
    if (this.rule.ttlDefaultMs !== 0) this.setExpireAt(row, this.now + this.rule.ttlDefaultMs);
    return row;
  }

  drop(row: Row): void {
    this.work.removed++;
    this.#log(row);
    this.w.drop();
    this.#forget();
    this.t.drop(row);
  }

  /** The row is gone, and its handle may come back as another row. */
  #forget(): void {
    this.loggedRow = 0;
    this.foundRow = 0;
  }

  setExpireAt(row: Row, expireAt: number): void {
    this.work.fields++;
    this.#log(row);
    this.w.expire(expireAt);
    this.t.setExpireAt(row, expireAt);
  }

  rename(row: Row, b: Buffer, s: number, n: number): Row {
    this.work.fields++;
    this.#log(row);
    this.w.rename(b, s, n);
    if (this.observing) this.#touch(b, s, n);
    this.#forget();
    return this.t.rename(row, b, s, n);
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
    if (this.rule.maxRowBytes !== Infinity) this.#checkGrowth(row, fn + vn);
    this.work.fields++;
    this.#log(row);
    this.w.field(fb, fs, fn, vb, vs, vn);
    return this.t.putField(row, fb, fs, fn, vb, vs, vn);
  }

  removeField(row: Row, b: Buffer, s: number, n: number): boolean {
    this.work.removed++;
    if (!this.t.field(row, b, s, n)) return false;
    this.#log(row);
    this.w.unfield(b, s, n);
    this.t.removeField(row, b, s, n);
    if (this.t.count(row) === 0) this.#forget();
    return true;
  }

  putScore(row: Row, b: Buffer, s: number, n: number, score: number): boolean {
    if (this.rule.maxRowBytes !== Infinity) this.#checkGrowth(row, n + 8);
    this.work.scores++;
    this.#log(row);
    this.w.score(score, b, s, n);
    return this.t.putScore(row, b, s, n, score);
  }

  push(row: Row, atHead: boolean, b: Buffer, s: number, n: number): void {
    if (this.rule.maxRowBytes !== Infinity) this.#checkGrowth(row, n);
    this.work.elements++;
    this.#log(row);
    this.w.push(atHead, b, s, n);
    this.t.push(row, atHead, b, s, n);
  }

  pop(row: Row, atHead: boolean): void {
    this.work.removed++;
    this.#log(row);
    this.w.pop(atHead);
    this.t.pop(row, atHead);
    if (this.t.count(row) === 0) this.#forget();
  }

  setElement(row: Row, index: number, b: Buffer, s: number, n: number): void {
    if (this.rule.maxRowBytes !== Infinity) this.#checkGrowth(row, n);
    this.work.elements++;
    this.#log(row);
    this.w.element(index, b, s, n);
    this.t.setElement(row, index, b, s, n);
  }

  insertElement(row: Row, index: number, b: Buffer, s: number, n: number): void {
    if (this.rule.maxRowBytes !== Infinity) this.#checkGrowth(row, n);
    this.work.elements++;
    this.#log(row);
    this.w.insert(index, b, s, n);
    this.t.insertElement(row, index, b, s, n);
  }

  removeElements(row: Row, index: number, count: number): void {
    this.work.removed += count;
    this.#log(row);
    this.w.remove(index, count);
    this.t.removeElements(row, index, count);
    if (this.t.count(row) === 0) this.#forget();
  }

  setStreamState(row: Row, b: Buffer, s: number, n: number): void {
    this.work.fields++;
    this.#log(row);
    this.w.streamState(b, s, n);
    this.t.setStreamState(row, b, s, n);
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
    if (this.rule.maxRowBytes !== Infinity) this.#checkGrowth(row, kn + vn);
    this.work.fields++;
    this.#log(row);
    this.w.streamRecord(true, kb, ks, kn, vb, vs, vn);
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
    this.work.fields++;
    this.#log(row);
    this.w.streamRecord(false, kb, ks, kn, vb, vs, vn);
    this.t.setStreamRecord(row, kb, ks, kn, vb, vs, vn);
  }

  removeStreamRecord(row: Row, b: Buffer, s: number, n: number): boolean {
    this.work.removed++;
    if (!this.t.streamRecord(row, b, s, n)) return false;
    this.#log(row);
    this.w.streamRemove(b, s, n);
    return this.t.removeStreamRecord(row, b, s, n);
  }

  removeStreamRecords(row: Row, from: Buffer, to: Buffer): number {
    this.work.seeks++;
    this.#log(row);
    this.w.streamCut(from, to);
    const removed = this.t.removeStreamRecords(row, from, to);
    this.work.removed += removed;
    return removed;
  }

  clear(): void {
    if (this.observing) this.beforeTableChange?.([this.number]);
    this.w.clear(this.number);
    this.#forget();
    this.t.clear();
  }

  swapTables(a: number, b: number): void {
    const one = this.span.first + a;
    const other = this.span.first + b;
    const first = this.rules.get(one);
    const second = this.rules.get(other);
    if (first === undefined || second === undefined) throw otherPod;
    if (first.readOnly || second.readOnly) throw readOnlyTable;
    if (this.observing) this.beforeTableChange?.([one, other]);
    this.w.swap(one, other);
    this.engine.swapTables(one, other);
    this.refresh();
  }
}
