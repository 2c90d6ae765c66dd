// Changes of a running command that the command itself can undo. An engine on disk, and an engine whose entries may
// be lost, have savepoints. Any other engine is wrapped by an engine that keeps undo records while they are needed.

import type { RecordBatchWriter } from '../universal-row/record-batch.ts';
import { RowWork } from '../universal-row/row-work.ts';
import type { BytesVisitor, ChangeMark, RowChanges } from '../universal-row/rows.ts';
import { localGroup } from '../engines/applied-indexes.ts';
import type { Engine, Savepoint } from '../engines/engine.ts';
import { AheadEngine } from './ahead/ahead-engine.ts';

/** The part of a transaction that undoing changes. */
interface UndoneTransaction {
  readonly work: RowWork;
  readonly touched: unknown[];
  expiredRows: number;
  refresh(): void;
  useEngine(engine: Engine): void;
}

interface Mark extends ChangeMark {
  readonly savepoint: Savepoint;
  readonly touched: number;
  readonly expiredRows: number;
  readonly work: RowWork;
}

export class TransactionChanges implements RowChanges {
  readonly #tx: UndoneTransaction;
  readonly #engine: Engine;
  readonly #writer: RecordBatchWriter;
  /** Around an engine without savepoints, since the first mark. */
  #undoing: AheadEngine | undefined;

  constructor(tx: UndoneTransaction, engine: Engine, writer: RecordBatchWriter) {
    this.#tx = tx;
    this.#engine = engine;
    this.#writer = writer;
  }

  mark(): Mark {
    const tx = this.#tx;
    if (this.#engine.savepoint === undefined && this.#undoing === undefined) {
      this.#undoing = new AheadEngine(this.#engine, localGroup);
      tx.useEngine(this.#undoing);
    } else tx.refresh();
    const work = new RowWork();
    work.copy(tx.work);
    return {
      logged: this.#writer.pos,
      savepoint: (this.#undoing ?? this.#engine).savepoint!(),
      touched: tx.touched.length,
      expiredRows: tx.expiredRows,
      work,
    };
  }

  undo(mark: ChangeMark): void {
    const { logged, savepoint, touched, expiredRows } = mark as Mark;
    const tx = this.#tx;
    (this.#undoing ?? this.#engine).rollbackTo!(savepoint);
    this.#writer.pos = logged;
    tx.touched.length = touched;
    tx.expiredRows = expiredRows;
    tx.refresh();
  }

  keep(): void {
    const undoing = this.#undoing;
    if (undoing === undefined) return;
    this.#undoing = undefined;
    undoing.keepOpen();
    this.#tx.useEngine(this.#engine);
  }

  records({ logged }: ChangeMark, to: BytesVisitor): void {
    to(this.#writer.buf, logged, this.#writer.pos - logged);
  }

  work(mark: ChangeMark): RowWork {
    const since = new RowWork();
    since.addSince((mark as Mark).work, this.#tx.work);
    since.logBytes += this.#writer.pos - mark.logged;
    return since;
  }
}
