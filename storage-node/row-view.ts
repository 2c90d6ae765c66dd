// The rows as a running command reads them: an engine's table with expired rows hidden, and the
// cost of reads counted. `Transaction` adds the writes.

import type { Arguments } from '../universal-row/arguments.ts';
import type { Slice } from '../universal-row/bytes.ts';
import type { TableSpan } from '../universal-row/command.ts';
import { CommandError } from '../universal-row/errors.ts';
import { onceTable } from '../universal-row/once.ts';
import { RowWork } from '../universal-row/row-work.ts';
import {
  Shape,
  type BytesVisitor,
  type FieldVisitor,
  type LexRange,
  type RankedVisitor,
  type Row,
  type ScoreRange,
} from '../universal-row/rows.ts';
import type { Rng } from '../universal-row/environment.ts';
import type { Engine, RowTable } from '../engines/engine.ts';
import { isTimedRowOver, timeOfTimedRow } from '../universal-row/timed-map.ts';
import type { AccessClock } from './eviction/access-clock.ts';
import { noRules, type TableRules, type TableRulesByNumber } from './table-rules.ts';

export const otherPod = new CommandError(
  'ERR the databases of this command are of different models, and one command cannot change both',
);
export const readOnlyTable = new CommandError(
  "READONLY You can't write against a read only table.",
);

/** Span for maintenance. */
export const everything: TableSpan = { first: 0, count: Infinity };

export abstract class RowView {
  now = 0;
  /** Notes when rows are used, where eviction goes by that; the running command counts as a use unless it says so. */
  clock: AccessClock | undefined;
  isUsing = true;
  /** Keys that reading commands found, and did not find. */
  hits = 0;
  misses = 0;
  /** Where the running command's work is added up. */
  work = new RowWork();

  /** The words of the running command. */
  protected args: Arguments | undefined;
  protected engine: Engine;
  protected readonly rng: Rng;
  protected readonly rules: TableRulesByNumber;
  protected span: TableSpan = everything;
  /** Number of the current table in the log and the engine. */
  protected number = 0;
  protected t: RowTable;
  protected rule: TableRules;
  protected writing = false;
  /** The row that the ops of the open entry are about just now. */
  protected loggedRow: Row = 0;
  /** The row found last, and its key. */
  protected foundRow: Row = 0;
  protected fb: Buffer = Buffer.alloc(0);
  protected fs = 0;
  protected fn = 0;

  constructor(engine: Engine, rules: TableRulesByNumber, rng: Rng) {
    this.engine = engine;
    this.rules = rules;
    this.rng = rng;
    this.rule = rules.get(this.number) ?? noRules;
    this.t = engine.table(this.number);
  }

  /** A reading command has found no row for a key. */
  protected abstract missed(b: Buffer, s: number, n: number): void;

  protected abstract dropExpired(row: Row): void;

  /** As the command knows the table in use: within its span. */
  get table(): number {
    return this.number - this.span.first;
  }

  get tableCount(): number {
    return this.span.count;
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
    if (number !== this.number) this.switchTo(number);
  }

  protected switchTo(number: number): void {
    // The table of write numbers has no rules, and unknown tables are read-only.
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

  find(b: Buffer, s: number, n: number): Row {
    this.work.lookups++;
    const row = this.t.find(b, s, n);
    if (row === 0) {
      if (!this.writing) this.missed(b, s, n);
      return 0;
    }
    if (this.t.expiringRows !== 0 && this.isExpired(row)) {
      this.dropExpired(row);
      if (!this.writing) this.missed(b, s, n);
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

  protected isExpired(row: Row): boolean {
    const at = this.t.expireAt(row);
    if (at === 0 || at > this.now) return false;
    return this.t.shape(row) !== Shape.timed || isTimedRowOver(this.t, row, this.now);
  }

  idleMs(row: Row): number {
    return this.clock === undefined ? 0 : this.clock.idleMs(this.number, row, this.now);
  }

  frequency(row: Row): number | undefined {
    if (this.clock?.isFrequency !== true) return undefined;
    return this.clock.frequency(this.number, row, this.now);
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
      if (!this.isExpired(row)) visit(row);
    });
  }

  anyRow(random: number): Row {
    this.work.lookups++;
    let row = this.t.anyRow(random);
    // Expired rows are dropped as they are met, so this ends; while frozen it gives up in the end.
    for (let tries = 0; row !== 0 && this.t.expiringRows !== 0 && this.isExpired(row); tries++) {
      this.dropExpired(row);
      if (tries > 1000) return 0;
      row = this.t.anyRow(this.rng.next());
    }
    return row;
  }

  expect(first: number, last: number, step: number): void {
    if (this.engine.expectRows === undefined) return;
    this.engine.expectRows(this.number, this.args!, first, last, step);
  }

  addScriptSteps(steps: number): void {
    // The script itself counts as a lookup. A script that fails is charged, too.
    this.work.lookups++;
    this.work.scriptSteps += steps;
  }
}
