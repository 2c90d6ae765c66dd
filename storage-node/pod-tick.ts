// The event-loop tick of a pod, shared by its commands, its maintenance and changes to whole
// tables. All writes of one tick go to the log together and have one time as `now`.

import type { Clock, Rng } from '../universal-row/environment.ts';
import { ReadFault } from '../universal-row/errors.ts';
import type { Outcome, RowObserver } from '../universal-row/executor.ts';
import type { ChangeListener } from '../universal-row/row-change.ts';
import { RowWork } from '../universal-row/row-work.ts';
import { localGroup } from '../engines/applied-indexes.ts';
import type { Engine } from '../engines/engine.ts';
import { AheadEngine } from './ahead/ahead-engine.ts';
import type { LongRuns } from './long-runs.ts';
import { PartitionMarks } from './partition-marks.ts';
import { Replica } from './replica.ts';
import { fullTickBytes, type PartitionLog } from './replicator/partition-log.ts';
import { RowObservers } from './row-observers.ts';
import type { TableRulesByNumber } from './table-rules.ts';
import { everything } from './row-view.ts';
import { Transaction } from './transaction.ts';

interface PodTickOptions {
  engine: Engine;
  log: PartitionLog;
  /** The log's number in the engine. */
  group: number | undefined;
  tables: TableRulesByNumber;
  clock: Clock;
  rng: Rng;
  runs: LongRuns;
  /** Makes a checkpoint soon, for the log to become shorter. */
  checkpoint: () => void;
}

/** Stands for the position of a tick that depends on state lost meanwhile. */
const lostTick = Number.MAX_SAFE_INTEGER;

export class PodTick {
  readonly engine: Engine;
  readonly log: PartitionLog;
  /** Set if the log may lose entries: the engine with undo records, and the pod's role in the log. */
  readonly ahead: AheadEngine | undefined;
  readonly replica: Replica | undefined;
  readonly marks: PartitionMarks | undefined;
  readonly tx: Transaction;
  readonly observers = new RowObservers();
  listener: ChangeListener | undefined;
  /** Work of uncharged commands, and of maintenance. */
  readonly unclaimed = new RowWork();
  now = 0;
  isOpen = false;
  /** Ticks so far. */
  count = 0;
  /** See `LocalPod.lastPosition`. */
  lastPosition = 0;
  /** Where the log's writer is when the tick is to end: its entry has room for one more command. */
  readonly fullAt: number;
  readonly #tables: TableRulesByNumber;
  readonly #clock: Clock;
  #keepsExpired = false;
  readonly #rng: Rng;
  readonly #runs: LongRuns;

  constructor({ engine, log, group, tables, clock, rng, runs, checkpoint }: PodTickOptions) {
    this.log = log;
    const { maxWriteBytes } = log;
    this.fullAt = maxWriteBytes === undefined ? Infinity : Math.min(maxWriteBytes, fullTickBytes);
    this.#tables = tables;
    this.#clock = clock;
    this.#rng = rng;
    this.#runs = runs;
    if (log.mayLose) {
      this.ahead = new AheadEngine(engine, group ?? localGroup);
      this.marks = new PartitionMarks(this.ahead);
      this.replica = this.#newReplica(this.ahead, checkpoint);
    }
    this.engine = this.ahead ?? engine;
    this.tx = new Transaction(this.engine, log.writer, tables, rng);
    this.tx.beforeTableChange = (changed) => this.#touchTables(changed, this.tx);
    if (this.replica !== undefined) log.listen(this.replica);
  }

  #newReplica(engine: AheadEngine, checkpoint: () => void): Replica {
    return new Replica({
      engine,
      checkpoint,
      runs: this.#runs,
      endTick: () => void this.end(),
      loseTick: () => this.#loseTick(),
      rowsReplaced: () => {
        this.tx.touched.length = 0;
        this.tx.refresh();
        this.marks?.changed();
        this.observers.all();
      },
    });
  }

  /**
   * The writes since the last end are about to be undone: the log, which is losing entries, gets
   * them with the others it loses.
   */
  #loseTick(): void {
    if (!this.#isUsed) return;
    this.isOpen = false;
    this.lastPosition = this.log.endTick(this.now);
    this.ahead!.assignPosition(this.lastPosition);
  }

  /** A tick is under way, perhaps of a change that no command has made. */
  get #isUsed(): boolean {
    return this.isOpen || this.ahead?.hasWritten === true;
  }

  /** For a command that takes many ticks. */
  newTransaction(writer: PartitionLog['writer'], client: number): Transaction {
    const tx = new Transaction(this.engine, writer, this.#tables, this.#rng);
    tx.beforeTableChange = (changed) => this.#touchTables(changed, tx);
    tx.now = this.now;
    // Millions of rows may change before its end, where all that was collected is told in one go.
    tx.observing = true;
    tx.isObserved = (table, b, s, n) => this.observers.has(table, b, s, n);
    tx.listener = this.listener;
    tx.clock = this.tx.clock;
    tx.client = client;
    tx.work = this.unclaimed;
    return tx;
  }

  /** See `Pod.keepExpired`. */
  get keepsExpired(): boolean {
    return this.#keepsExpired;
  }

  keepExpired(isKept: boolean): void {
    this.#keepsExpired = isKept;
    // The rest of a tick that is open drops them again.
    this.tx.frozen = this.writeFailure !== undefined;
  }

  get writeFailure(): Error | undefined {
    return this.log.failure ?? this.engine.failure;
  }

  // ---- the tick

  open(): void {
    this.isOpen = true;
    this.count++;
    const now = this.#clock.now();
    this.now = this.replica === undefined ? now : this.replica.time(now);
    this.tx.refresh();
    this.tx.frozen = this.writeFailure !== undefined;
  }

  committed(index: number): void {
    this.engine.commit(index);
    if (this.tx.touched.length !== 0) this.notify();
  }

  /**
   * Passes the writes to the log, and returns their position; -1 when no caller needs to wait for
   * one.
   */
  end(): number {
    // With a position of its own for all that was written since the last end: it may have to be undone.
    const servedAt = this.#isUsed ? this.now : undefined;
    this.isOpen = false;
    const position = this.log.endTick(servedAt);
    if (servedAt !== undefined) this.lastPosition = position;
    this.ahead?.assignPosition(position, this.log.pendingBytes ?? 0);
    this.engine.endTick();
    return position;
  }

  /** After commands that wrote much: later ones are of another entry. */
  endIfFull(): void {
    if (this.log.writer.pos > this.fullAt) this.end();
  }

  /** As `end`, but also -1 if the position is committed already, as it may be after reads only. */
  flush(): number {
    const position = this.end();
    return this.log.isCommitted?.(position) === true ? -1 : position;
  }

  /** As `flush`, for answers that are about to leave: those since the last call wait for the position. */
  endForAnswers(): number {
    const position = this.flush();
    return this.replica?.takeLoss() === true ? lostTick : position;
  }

  whenSettled(position: number, then: (outcome: Outcome) => void): void {
    if (position === lostTick) then('unknown');
    else this.log.whenSettled(position, then);
  }

  /** Resolves when all that was written is as safe on disk as the policy ever makes it. */
  async durable(): Promise<void> {
    const position = this.end();
    if (position >= 0) {
      const outcome = await new Promise((resolve) => this.whenSettled(position, resolve));
      if (outcome !== 'committed') throw new Error('the partition has lost its leader meanwhile');
    }
    if (this.log.fsyncPolicy !== 'no') await this.log.sync?.();
    else await this.log.written?.();
    if (this.writeFailure !== undefined) throw this.writeFailure;
  }

  /**
   * A change to a table that no client asked for. Returns its bytes in the log, or the fault after which it is to be
   * tried again.
   */
  changeTable(table: number, change: () => void): number | ReadFault {
    const { tx, log } = this;
    if (!this.isOpen) this.open();
    log.begin();
    const logged = log.writer.pos;
    tx.work = this.unclaimed;
    try {
      tx.client = 0;
      tx.begin(table, everything, undefined, false, this.now, true);
      change();
    } catch (error) {
      log.abandon();
      this.engine.rollback();
      tx.touched.length = 0;
      tx.refresh();
      if (error instanceof ReadFault) return error;
      throw error;
    }
    const logBytes = log.writer.pos - logged;
    const index = log.end();
    if (index !== 0) this.committed(index);
    return logBytes;
  }

  // ---- observers

  observe(table: number, key: Buffer, observer: RowObserver): void {
    this.observers.add(table, key, observer, this.#clock.now());
    this.tx.observing = true;
    this.#runs.observed(table, key);
  }

  unobserve(table: number, key: Buffer, observer: RowObserver): void {
    this.observers.remove(table, key, observer);
    this.tx.observing = this.isObserved;
  }

  follow(listener: ChangeListener | undefined): void {
    this.listener = listener;
    this.tx.listener = listener;
    this.tx.observing = this.isObserved;
    this.#runs.follow(listener);
  }

  get isObserved(): boolean {
    return this.listener !== undefined || this.observers.size !== 0;
  }

  takeObservers(table: number): ReturnType<RowObservers['take']> {
    const taken = this.observers.take(table);
    this.tx.observing = this.isObserved;
    return taken;
  }

  notify(): void {
    const touched = this.tx.touched.splice(0);
    this.listener?.rowsChanged(touched);
    this.observers.notify(touched);
  }

  /**
   * A table is about to be emptied, or to change places with another: an observed key changes if it is
   * in one of them.
   */
  #touchTables(tables: readonly number[], tx: Transaction): void {
    if (this.observers.size === 0) return;
    const { engine } = this;
    const isThere = (key: Buffer): boolean =>
      tables.some((one) => engine.table(one).find(key, 0, key.length) !== 0);
    tx.touched.push(...this.observers.touchedIn(tables, isThere));
  }
}
