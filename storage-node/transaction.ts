// The rows as a running command sees them: an engine's table, with expired rows hidden, the table's
// properties enforced, and every write put into the log's open entry before it reaches the engine.

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
  type RowUse,
} from '../universal-row/rows.ts';
import type { Rng } from '../universal-row/environment.ts';
import type { Engine, RowTable } from '../engines/engine.ts';
import {
  dropDueFields,
  isTimedRowOver,
  setTimeOfTimedRow,
  timeOfTimedRow,
} from '../universal-row/timed-map.ts';
import type { AccessClock } from './eviction/access-clock.ts';
import { noRules, type TableRules, type TableRulesByNumber } from './table-rules.ts';

const otherPod = new CommandError(
  'ERR the databases of this command are of different models, and one command cannot change both',
);
const readOnlyTable = new CommandError("READONLY You can't write against a read only table.");

/** A value that grows by more is checked against the tenant's quota with its size. */
const largeGrowthBytes = 64 * 1024;

/** For what happens by itself. */
export const everything: TableSpan = { first: 0, count: Infinity };

/** A key that the running command changed: a `RowChange` in the making. */
export interface Touched extends RowChange {
  change: number;
}

export class Transaction implements Rows {
  now = 0;
  /** True while some key is watched or waited for: only then are changed keys collected. */
  observing = false;
  readonly touched: Touched[] = [];
  /** Where set, only changes of these rows are collected, unless a listener follows all. */
  isObserved: ((table: number, b: Buffer, s: number, n: number) => boolean) | undefined;
  /** Follows all changes; `observing` is true while there is one. */
  listener: ChangeListener | undefined;
  /** Notes when rows are used, where eviction goes by that; the running command counts as a use unless it says so. */
  clock: AccessClock | undefined;
  isUsing = true;
  /** Id of the client whose command runs. */
  client = 0;
  /** Called before all rows of a table go, or change places with another's. */
  beforeTableChange: ((tables: readonly number[]) => void) | undefined;
  /** Writes are impossible (the disk is full), so an expired row is hidden but stays. */
  frozen = false;
  /** Keys that reading commands found, and did not find. */
  hits = 0;
  misses = 0;
  /** Rows dropped because their time had come. */
  expiredRows = 0;
  /** Fields of rows that stayed. */
  expiredFields = 0;
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
  /** What was noted of the row that is being changed, and by which command. */
  private change: Touched | undefined;
  private by: ChangedBy | undefined;
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
    this.by = undefined;
    if (fresh || this.listener !== undefined) this.loggedRow = 0;
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
    // Nobody has set any for that of numbers, and tables of nobody are read-only.
    const rule = number === onceTable ? noRules : this.rules.get(number);
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
      if (!this.writing) this.#missed(b, s, n);
      return 0;
    }
    if (this.t.expiringRows !== 0 && this.#isExpired(row)) {
      this.#dropExpired(row);
      if (!this.writing) this.#missed(b, s, n);
      return 0;
    }
    if (!this.writing) this.hits++;
    if (this.clock !== undefined && this.isUsing) this.clock.touch(this.number, row, this.now);
    this.foundRow = row;
    this.fb = b;
    this.fs = s;
    this.fn = n;
    return row;
  }

  #missed(b: Buffer, s: number, n: number): void {
    this.misses++;
    if (this.listener?.wantsMisses === true) this.#touch(b, s, n, Change.missed);
  }

  #isExpired(row: Row): boolean {
    const at = this.t.expireAt(row);
    if (at === 0 || at > this.now) return false;
    return this.t.shape(row) !== Shape.timed || isTimedRowOver(this.t, row, this.now);
  }

  #dropExpired(row: Row): void {
    if (this.frozen) return;
    this.expiredRows++;
    this.drop(row);
    if (this.observing && this.change !== undefined) this.change.change = Change.expired;
  }

  /** Drops a row to make room. */
  evict(row: Row): void {
    this.drop(row);
    if (this.observing && this.change !== undefined) this.change.change = Change.evicted;
  }

  idleMs(row: Row): number {
    return this.clock === undefined ? 0 : this.clock.idleMs(this.number, row, this.now);
  }

  setUse(row: Row, use: RowUse): void {
    this.clock?.set(this.number, row, use, this.now);
  }

  frequency(row: Row): number | undefined {
    if (this.clock?.isFrequency !== true) return undefined;
    return this.clock.frequency(this.number, row, this.now);
  }

  /** Drops up to `limit` rows whose time has come, and as many fields of each that stays. For the pod's own clock. */
  dropExpiredRows(limit: number): void {
    const due: Row[] = [];
    this.t.expired(this.now, limit, (row) => {
      due.push(row);
    });
    for (const row of due) {
      if (this.#isExpired(row)) this.#dropExpired(row);
      else if (!this.frozen) this.expiredFields += dropDueFields(this, row, this.now, limit);
    }
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
    const at = this.t.expireAt(row);
    if (at === 0 || this.t.shape(row) !== Shape.timed) return at;
    return timeOfTimedRow(this.t, row);
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
    this.by = undefined;
    if (this.listener !== undefined) this.loggedRow = 0;
  }

  addScriptSteps(steps: number): void {
    // The script itself was looked for: one that fails is charged, too.
    this.work.lookups++;
    this.work.scriptSteps += steps;
  }

  // ---- writes

  /** Makes `row` the one that the next ops of the entry are about. */
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

  /** More of what the command did to the row that it changed last. */
  #note(change: number): void {
    if (this.change !== undefined) this.change.change |= change;
  }

  /** A row is about to be put in place of what is there, if anything. */
  #touchNew(b: Buffer, s: number, n: number, until: number): void {
    let change: number = Change.written;
    if (this.listener !== undefined) {
      const row = this.t.find(b, s, n);
      const isDue = row !== 0 && this.#isExpired(row);
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
    if (this.observing) this.#touchNew(b, s, n, until);
    const row = this.t.putValue(b, s, n, vb, vs, vn, until);
    if (this.clock !== undefined) this.clock.touch(this.number, row, this.now);
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
      // It may be for the next field only.
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
