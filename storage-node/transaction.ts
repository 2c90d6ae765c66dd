// The rows as a running command sees them: the reads of `RowView`, with the table's properties
// enforced, and every write encoded in the log's open entry before it reaches the engine.

import type { Arguments } from '../universal-row/arguments.ts';
import { Slice } from '../universal-row/bytes.ts';
import type { TableSpan } from '../universal-row/command.ts';
import { CommandError } from '../universal-row/errors.ts';
import {
  Change,
  type ChangedBy,
  type ChangeListener,
  type RowChange,
} from '../universal-row/row-change.ts';
import type { RecordBatchWriter } from '../universal-row/record-batch.ts';
import { onceTable } from '../universal-row/once.ts';
import { Shape, type Row, type Rows, type RowUse } from '../universal-row/rows.ts';
import type { Rng } from '../universal-row/environment.ts';
import type { Engine } from '../engines/engine.ts';
import { dropDueFields, setTimeOfTimedRow, timeOfTimedRow } from '../universal-row/timed-map.ts';
import { otherPod, readOnlyTable, RowView } from './row-view.ts';
import type { TableRulesByNumber } from './table-rules.ts';
import { TransactionChanges } from './transaction-changes.ts';

/** A value that grows by more is checked against the tenant's quota with its size. */
const largeGrowthBytes = 64 * 1024;

/** A key that the running command changed: a `RowChange` in the making. */
export interface Touched extends RowChange {
  dueAt?: number;
  change: number;
}

export class Transaction extends RowView implements Rows {
  /** True while some key is watched or waited for: only then are changed keys collected. */
  observing = false;
  readonly touched: Touched[] = [];
  /** Where set, only changes of these rows are collected, unless a listener follows all. */
  isObserved: ((table: number, b: Buffer, s: number, n: number) => boolean) | undefined;
  /** Follows all changes; `observing` is true while there is one. */
  listener: ChangeListener | undefined;
  /** Id of the client whose command runs. */
  client = 0;
  /** Called before all rows of a table go, or change places with another's. */
  beforeTableChange: ((tables: readonly number[]) => void) | undefined;
  /** Writes are impossible (the disk is full), so an expired row is hidden but stays. */
  frozen = false;
  /** Rows dropped because their time had come. */
  expiredRows = 0;
  /** Fields of rows that stayed. */
  expiredFields = 0;

  readonly changes: TransactionChanges;

  private readonly w: RecordBatchWriter;
  /** Note on the row being changed, and by which command. */
  private change: Touched | undefined;
  private by: ChangedBy | undefined;
  private readonly slice = new Slice();
  /** Where the bytes of the value that was reserved last are in the log's open entry. */
  #reservedAt = 0;

  constructor(engine: Engine, writer: RecordBatchWriter, rules: TableRulesByNumber, rng: Rng) {
    super(engine, rules, rng);
    this.w = writer;
    this.changes = new TransactionChanges(this, engine, writer);
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
    this.by = undefined;
    if (fresh || this.listener !== undefined) this.loggedRow = 0;
    this.foundRow = 0;
    if (table !== this.number) this.switchTo(table);
  }

  /** Has the tables of another engine, which is made around its own. */
  useEngine(engine: Engine): void {
    this.engine = engine;
    this.refresh();
  }

  useArguments(args: Arguments): void {
    this.args = args;
    this.by = undefined;
    if (this.listener !== undefined) this.loggedRow = 0;
  }

  // ---- rows whose time has come, and rows that make room

  protected override missed(b: Buffer, s: number, n: number): void {
    this.misses++;
    if (this.listener?.wantsMisses === true) this.#touch(b, s, n, Change.missed);
  }

  protected override dropExpired(row: Row): void {
    if (this.frozen) return;
    this.expiredRows++;
    const dueAt = this.t.expireAt(row);
    this.drop(row);
    if (!this.observing || this.change === undefined) return;
    this.change.change = Change.expired;
    this.change.dueAt = dueAt;
  }

  /** Drops a row to make room. */
  evict(row: Row): void {
    this.drop(row);
    if (this.observing && this.change !== undefined) this.change.change = Change.evicted;
  }

  /** Drops up to `limit` rows whose time has come, and as many fields of each that stays. For the pod's own clock. */
  dropExpiredRows(limit: number): void {
    const due: Row[] = [];
    this.t.expired(this.now, limit, (row) => {
      due.push(row);
    });
    for (const row of due) {
      if (this.isExpired(row)) this.dropExpired(row);
      else if (!this.frozen) this.expiredFields += dropDueFields(this, row, this.now, limit);
    }
  }

  setUse(row: Row, use: RowUse): void {
    this.clock?.set(this.number, row, use, this.now);
  }

  // ---- writes

  /** Makes `row` the subject of the next ops of the entry. */
  #log(row: Row): void {
    if (row === this.loggedRow) return;
    this.loggedRow = row;
    if (row === this.foundRow) {
      this.w.row(this.number, this.fb, this.fs, this.fn);
      if (this.observing) this.#touch(this.fb, this.fs, this.fn, Change.written);
    } else {
      const k = this.slice;
      this.t.key(row, k);
      this.w.row(this.number, k.b, k.s, k.n);
      if (this.observing) this.#touch(k.b, k.s, k.n, Change.written);
    }
  }

  #touch(b: Buffer, s: number, n: number, change: number): void {
    const { listener, args } = this;
    if (this.number === onceTable) {
      this.change = undefined;
      return;
    }
    if (listener === undefined && this.isObserved?.(this.number, b, s, n) === false) {
      this.change = undefined;
      return;
    }
    if (listener !== undefined && args !== undefined) {
      this.by ??= listener.describe(args, this.client);
    }
    const key = Buffer.from(b.subarray(s, s + n));
    this.change = { table: this.number, key, change, by: this.by };
    this.touched.push(this.change);
  }

  note(change: number): void {
    if (this.observing) this.#note(change);
  }

  /** Adds a kind of change to the row changed last. */
  #note(change: number): void {
    if (this.change !== undefined) this.change.change |= change;
  }

  /** A row is about to replace the existing one, if any. */
  #touchNew(b: Buffer, s: number, n: number, until: number): void {
    let change: number = Change.written;
    if (this.listener !== undefined) {
      const row = this.t.find(b, s, n);
      const isDue = row !== 0 && this.isExpired(row);
      if (isDue) this.#touch(b, s, n, Change.expired);
      if (row === 0 || isDue) change |= Change.created;
      if (until !== 0) change |= Change.expirySet;
    }
    this.#touch(b, s, n, change);
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

  /** Before a value of so many bytes is put; returns its expiry. */
  #checkPut(bytes: number, expireAt: number): number {
    const rule = this.rule;
    if (bytes > rule.maxRowBytes) this.#checkBytes(bytes);
    if (bytes > largeGrowthBytes) this.#checkRoom(bytes);
    this.work.values++;
    return expireAt === 0 && rule.ttlDefaultMs !== 0 ? this.now + rule.ttlDefaultMs : expireAt;
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
    const until = this.#checkPut(vn, expireAt);
    this.w.value(this.number, b, s, n, vb, vs, vn, until);
    if (this.observing) this.#touchNew(b, s, n, until);
    const row = this.t.putValue(b, s, n, vb, vs, vn, until);
    if (this.clock !== undefined) this.clock.touch(this.number, row, this.now);
    this.loggedRow = row;
    return row;
  }

  reserveValue(b: Buffer, s: number, n: number, bytes: number, expireAt: number): Row {
    const until = this.#checkPut(bytes, expireAt);
    this.#reservedAt = this.w.reserveValue(this.number, b, s, n, bytes, until);
    if (this.observing) this.#touchNew(b, s, n, until);
    const row = this.t.reserveValue(b, s, n, bytes, until);
    if (this.clock !== undefined) this.clock.touch(this.number, row, this.now);
    this.loggedRow = row;
    return row;
  }

  fillValue(offset: number, vb: Buffer, vs: number, vn: number): void {
    this.w.fill(this.#reservedAt + offset, vb, vs, vn);
    this.t.fillValue(offset, vb, vs, vn);
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
    if (this.observing) this.#touchNew(b, s, n, 0);
    const row = this.t.create(b, s, n, shape);
    if (this.clock !== undefined) this.clock.touch(this.number, row, this.now);
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
    if (this.observing) this.#note(Change.dropped);
    this.clock?.forget(this.number, row);
    this.w.drop();
    this.#forget();
    this.t.drop(row);
  }

  #emptied(row: Row): void {
    this.clock?.forget(this.number, row);
    if (this.observing) this.#note(Change.emptied);
    this.#forget();
  }

  /** The row is gone, and its handle may come back as another row. */
  #forget(): void {
    this.loggedRow = 0;
    this.foundRow = 0;
  }

  setExpireAt(row: Row, expireAt: number): void {
    let at = expireAt;
    let isOwn = true;
    if (this.t.shape(row) === Shape.timed) {
      // The time may be that of the next field only.
      isOwn = timeOfTimedRow(this.t, row) !== expireAt;
      at = setTimeOfTimedRow(this, row, expireAt);
      if (at === this.t.expireAt(row)) return;
    }
    this.work.fields++;
    this.#log(row);
    if (this.observing && isOwn) this.#note(at === 0 ? Change.expiryCleared : Change.expirySet);
    this.w.expire(at);
    this.t.setExpireAt(row, at);
  }

  rename(row: Row, b: Buffer, s: number, n: number): Row {
    this.work.fields++;
    this.#log(row);
    if (this.observing) this.#note(Change.renamedFrom);
    this.w.rename(b, s, n);
    if (this.observing) this.#touch(b, s, n, Change.renamedTo);
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
    if (this.t.count(row) === 0) this.#emptied(row);
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
    if (this.t.count(row) === 0) this.#emptied(row);
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
    if (this.t.count(row) === 0) this.#emptied(row);
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
    if (this.observing) this.#note(Change.trimmed);
    this.w.streamRemove(b, s, n);
    return this.t.removeStreamRecord(row, b, s, n);
  }

  removeStreamRecords(row: Row, from: Buffer, to: Buffer): number {
    this.work.seeks++;
    this.#log(row);
    if (this.observing) this.#note(Change.trimmed);
    this.w.streamCut(from, to);
    const removed = this.t.removeStreamRecords(row, from, to);
    this.work.removed += removed;
    return removed;
  }

  clear(): void {
    if (this.observing) this.beforeTableChange?.([this.number]);
    this.w.clear(this.number);
    this.#forget();
    this.listener?.tablesChanged([this.number]);
    this.clock?.clear(this.number);
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
    this.listener?.tablesChanged([one, other]);
    this.clock?.swap(one, other);
    this.refresh();
  }
}
