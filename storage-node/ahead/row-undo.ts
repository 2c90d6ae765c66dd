// Undo records of changes to a row, as ops of the undo log.

import { emptyBytes, Slice } from '../../universal-row/bytes.ts';
import type { RecordBatchWriter } from '../../universal-row/record-batch.ts';
import { endOfRecords, Shape, type Row } from '../../universal-row/rows.ts';
import type { RowTable } from '../../engines/engine.ts';

/** Services a table needs from its engine. */
export interface AheadOwner {
  /** Where to write how to undo the next write. */
  undo(): RecordBatchWriter;
  /** Changes whenever earlier writes may be undone separately from later ones. */
  readonly era: number;
  /** Puts all rows of the table out of sight, so that they can come back. */
  hideRows(table: number): void;
}

export class RowUndo {
  /** The engine's table. */
  protected t: RowTable;
  protected readonly number: number;
  protected readonly owner: AheadOwner;
  protected readonly keyHeld = new Slice();
  protected readonly old = new Slice();
  /** How to restore all of this row is in the undo log already, so further writes to it need not be undone. */
  protected saved: Row = 0;
  #savedIn = 0;

  constructor(number: number, t: RowTable, owner: AheadOwner) {
    this.number = number;
    this.t = t;
    this.owner = owner;
  }

  /** Tables were swapped: another one has this number. */
  bind(t: RowTable): void {
    this.t = t;
    this.saved = 0;
  }

  protected isSaved(row: Row): boolean {
    return row === this.saved && this.#savedIn === this.owner.era;
  }

  protected wholeRowIsSaved(row: Row): void {
    this.saved = row;
    this.#savedIn = this.owner.era;
  }

  /** The undo log, at the ops of the row. */
  protected undo(row: Row): RecordBatchWriter {
    const key = this.keyHeld;
    const w = this.owner.undo();
    this.t.key(row, key);
    w.row(this.number, key.b, key.s, key.n);
    return w;
  }

  /** Saves the current row under the key, for any change of it. */
  protected save(row: Row, b: Buffer, s: number, n: number): void {
    if (row !== 0) {
      this.touchAll(row);
      this.restore(this.owner.undo(), row, b, s, n);
      return;
    }
    const w = this.owner.undo();
    w.row(this.number, b, s, n);
    w.drop();
  }

  protected saveRow(row: Row): void {
    const key = this.keyHeld;
    this.t.key(row, key);
    this.save(row, key.b, key.s, key.n);
  }

  /** Has all of the row in memory, so that its undo is never cut short by a read from disk. */
  protected touchAll(row: Row): void {
    const { t } = this;
    switch (t.shape(row)) {
      case Shape.value:
        return;
      case Shape.array:
        t.eachElement(row, 0, t.count(row), false, () => {});
        return;
      case Shape.ranked:
        t.eachByRank(row, 0, t.count(row), false, () => {});
        return;
      case Shape.map:
      case Shape.set:
        t.eachField(row, () => {});
        return;
      default:
        t.eachStreamRecord(row, emptyBytes, endOfRecords, false, t.count(row), () => {});
    }
  }

  protected restore(w: RecordBatchWriter, row: Row, b: Buffer, s: number, n: number): void {
    const { t } = this;
    const old = this.old;
    const shape = t.shape(row);
    const expireAt = t.expireAt(row);
    if (shape === Shape.value) {
      t.value(row, old);
      w.value(this.number, b, s, n, old.b, old.s, old.n, expireAt);
      return;
    }
    w.row(this.number, b, s, n);
    w.create(shape);
    if (expireAt !== 0) w.expire(expireAt);
    if (shape === Shape.array) {
      t.eachElement(row, 0, t.count(row), false, (eb, es, en) => w.push(false, eb, es, en));
    } else if (shape === Shape.ranked) {
      t.eachByRank(row, 0, t.count(row), false, (mb, ms, mn, score) => w.score(score, mb, ms, mn));
    } else if (shape === Shape.map || shape === Shape.set) {
      t.eachField(row, (fb, fs, fn, vb, vs, vn) => w.field(fb, fs, fn, vb, vs, vn));
    } else {
      t.streamState(row, old);
      w.streamState(old.b, old.s, old.n);
      t.eachStreamRecord(
        row,
        emptyBytes,
        endOfRecords,
        false,
        t.count(row),
        (kb, ks, kn, vb, vs, vn) => w.streamRecord(true, kb, ks, kn, vb, vs, vn),
      );
    }
  }

  /**
   * Whether all of the row is in the undo log. An empty row is saved whole, because removing what is added to it would remove the
   * row. Copies of large rows are empty for a while.
   */
  protected saveIfEmpty(row: Row): boolean {
    if (this.isSaved(row)) return true;
    if (this.t.count(row) > 0) return false;
    this.saveRow(row);
    this.wholeRowIsSaved(row);
    return true;
  }

  /** Whether the row is gone with its last element: then all of it is to be restored. */
  protected saveLast(row: Row, removed: number): boolean {
    if (this.isSaved(row)) return true;
    if (this.t.count(row) > removed) return false;
    this.saveRow(row);
    return true;
  }

  /** A row that is gone leaves its handle to another one. */
  protected hasShrunk(row: Row): void {
    if (row === this.saved && this.t.count(row) === 0) this.saved = 0;
  }
}
