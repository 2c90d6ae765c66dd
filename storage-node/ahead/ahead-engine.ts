// An engine whose last entries can still be undone: entries that a leader has evaluated and that are not known to be
// committed. Their undo records are kept by log position until the outcome is known. For replicated logs only: where
// no entry can be lost, pods use the engine directly.
//
// Only committed rows leave the engine. For a checkpoint, an export or a batch to disk, all
// uncommitted entries are undone, the state is taken, and they are redone, within one tick: undoing
// a write through this engine records its redo.

import type { Arguments } from '../../universal-row/arguments.ts';
import { assert } from '../../universal-row/assert.ts';
import { ReadFault } from '../../universal-row/errors.ts';
import { type MaybePromise, whenReady } from '../../universal-row/maybe-promise.ts';
import type { RecordBatchWriter } from '../../universal-row/record-batch.ts';
import { applyOps } from '../../engines/apply.ts';
import { applyWithFaults } from '../../engines/apply-with-faults.ts';
import type { Engine, EngineStats, Savepoint, SuspendedEntry } from '../../engines/engine.ts';
import { fullLogBytes } from '../replicator/partition-log.ts';
import { entryOpsAt } from '../replicator/tick-entry.ts';
import { AheadTable } from './ahead-table.ts';
import type { AheadOwner } from './row-undo.ts';
import { giveBack, UndoLog, type UndoPart } from './undo-log.ts';

/** Where rows of tables that were cleared are until that is committed: no client and no restore names these. */
const hiddenTables = { first: 0x7ffe_f000, count: 0x1000 } as const;

/** Writers wait while the undo records of uncommitted entries exceed this. */
const maxAheadBytes = 2 * 1024 * 1024;
/**
 * Longest time between two writes of committed rows to disk, in milliseconds, while uncommitted
 * entries are always pending.
 */
const writeEveryMs = 50;

interface AheadPosition {
  /** Infinity while the tick is under way. */
  position: number;
  undo: UndoPart;
}

interface AheadSuspended extends SuspendedEntry {
  readonly entry: SuspendedEntry | undefined;
  readonly undo: UndoLog;
}

export class AheadEngine implements Engine, AheadOwner {
  readonly model: string;
  readonly expectRows?: (
    table: number,
    args: Arguments,
    first: number,
    last: number,
    step: number,
  ) => void;
  era = 0;
  readonly #engine: Engine;
  readonly #group: number;
  readonly #canRollBack: boolean;
  readonly #tables = new Map<number, AheadTable>();
  /** Undo log of the open entry, and of the entries of this tick. */
  #open = new UndoLog();
  readonly #tick = new UndoLog();
  readonly #ahead: AheadPosition[] = [];
  /** Position of the current tick, while it is undone and redone for a state taken within it. */
  #openTick: AheadPosition | undefined = undefined;
  #aheadBytes = 0;
  /** Bytes of the log without an outcome, as of the end of the last tick; 0 once all of it is committed. */
  #pendingBytes = 0;
  readonly #hiddenInUse = new Set<number>();
  #nextHidden = 0;
  /** Entries put aside. */
  #suspended = 0;
  #drained: (() => void)[] = [];
  #writtenAt = 0;
  /** Undoing or doing again waits for rows from disk: nothing else may touch the engine. */
  #moving: Promise<void> | undefined = undefined;
  /** Committed while it does. */
  #committed: { position: number; index: number } | undefined = undefined;
  /** A row could not be read while writes were undone: the rows are no state of the log, and stay so until the next start. */
  #failure: Error | undefined = undefined;

  constructor(engine: Engine, group: number) {
    this.#engine = engine;
    this.#group = group;
    this.model = engine.model;
    // An engine on disk undoes its open entry by itself.
    this.#canRollBack = engine.expectRows !== undefined;
    if (engine.expectRows !== undefined) this.expectRows = engine.expectRows.bind(engine);
  }

  // ---- life

  open(): Promise<void> {
    return this.#engine.open();
  }

  async close(): Promise<void> {
    await this.#moving;
    try {
      if (this.#failure === undefined) await this.lost(-Infinity);
    } finally {
      await this.#engine.close();
    }
  }

  /** Resolves when rows may be touched again; undefined when they may be now. */
  get moving(): Promise<void> | undefined {
    return this.#moving;
  }

  // ---- tables

  table(id: number): AheadTable {
    let table = this.#tables.get(id);
    if (table === undefined) {
      table = new AheadTable(id, this.#engine.table(id), this);
      this.#tables.set(id, table);
    }
    return table;
  }

  holds(id: number): boolean {
    return this.#engine.holds(id);
  }

  tables(): number[] {
    const tables = this.#engine.tables();
    return this.#hiddenInUse.size === 0
      ? tables
      : tables.filter((table) => !this.#hiddenInUse.has(table));
  }

  swapTables(a: number, b: number): void {
    this.undo().swap(a, b);
    this.#engine.swapTables(a, b);
    this.#rebind(a);
    this.#rebind(b);
  }

  #rebind(id: number): void {
    this.#tables.get(id)?.bind(this.#engine.table(id));
  }

  forget(id: number): void {
    this.#tables.delete(id);
    this.#engine.forget?.(id);
  }

  undo(): RecordBatchWriter {
    return this.#open.begin();
  }

  hideRows(table: number): void {
    const { first, count } = hiddenTables;
    assert(this.#hiddenInUse.size < count, 'a number is left for rows that are out of sight');
    let hidden: number;
    do hidden = first + (this.#nextHidden++ % count);
    while (this.#hiddenInUse.has(hidden) || this.#engine.holds(hidden));
    this.#hiddenInUse.add(hidden);
    this.#open.hide(hidden);
    this.swapTables(table, hidden);
  }

  /** Releases hidden tables, which are either gone permanently or visible again. */
  #release(hidden: readonly number[]): void {
    for (const table of hidden) {
      if (this.#engine.holds(table)) this.#engine.table(table).clear();
      this.#closeEntry();
      this.#hiddenInUse.delete(table);
      this.#engine.forget?.(table);
    }
  }

  // ---- entries

  appliedIndexOf(group: number): number {
    return this.#engine.appliedIndexOf(group);
  }

  get appliedIndex(): number {
    return this.#engine.appliedIndex;
  }

  /** The entry is ahead of the commit, which alone moves the applied index. */
  commit(): void {
    this.era++;
    this.#closeEntry();
    if (this.#open.isEmpty) return;
    this.#engine.holdsBack = true;
    this.#aheadBytes += this.#open.bytes;
    this.#tick.takeAll(this.#open);
  }

  #closeEntry(): void {
    this.#engine.commit(this.#engine.appliedIndexOf(this.#group), this.#group);
  }

  rollback(): void {
    if (this.#canRollBack) this.#engine.rollback();
    this.#undoOpen(0);
  }

  /** Undoes the part that the engine has not undone by itself. */
  #undoOpen(mark: number): void {
    this.era++;
    const { bytes, starts, hidden } = this.#open.takeFrom(mark);
    if (this.#canRollBack) this.#rebindAll();
    else {
      for (let i = starts.length - 1; i >= 0; i--) {
        applyOps(this, bytes, starts[i]!, starts[i + 1] ?? bytes.length);
      }
      this.#open.takeFrom(mark);
      this.era++;
    }
    this.#release(hidden);
  }

  suspend(): AheadSuspended | undefined {
    this.era++;
    const entry = this.#engine.suspend?.();
    if (entry === undefined && this.#open.isEmpty) return undefined;
    const undo = this.#open;
    this.#open = new UndoLog();
    this.#suspended++;
    return { isSuspended: true, entry, undo };
  }

  resume(suspended: SuspendedEntry | undefined): void {
    this.era++;
    if (suspended === undefined) {
      this.#engine.resume?.(undefined);
      return;
    }
    const { entry, undo } = suspended as AheadSuspended;
    this.#suspended--;
    this.#engine.resume?.(entry);
    this.#open = undo;
  }

  savepoint(): Savepoint {
    this.era++;
    return { changes: this.#open.mark, within: this.#engine.savepoint?.() };
  }

  rollbackTo({ changes, within }: Savepoint): void {
    if (within !== undefined) this.#engine.rollbackTo!(within);
    this.#undoOpen(changes);
  }

  /**
   * Discards the undo records of the open entry. For a pod whose log loses nothing and whose engine cannot undo by
   * itself.
   */
  keepOpen(): void {
    this.#release(this.#open.clear());
  }

  // ---- uncommitted entries
  //

  /** Assigns the log position to this tick's writes; `pendingBytes` are those of `PartitionLog`. */
  assignPosition(position: number, pendingBytes = 0): void {
    this.#pendingBytes = pendingBytes;
    this.#letGo();
    if (this.#openTick !== undefined) {
      // The tick is in the list already. Nothing was written since: rows are being read.
      this.#openTick.position = position;
      this.#openTick = undefined;
    }
    if (this.#tick.isEmpty) return;
    this.#ahead.push({ position, undo: this.#tick.take() });
  }

  /** All entries up to `position` are committed: the state is that of entry `index`. */
  committed(position: number, index: number): void {
    // While rows are read, several may come.
    const upTo = Math.max(position, this.#committed?.position ?? -Infinity);
    this.#committed = { position: upTo, index };
    if (this.#moving === undefined) this.#settle();
  }

  #settle(): void {
    if (this.#committed === undefined || this.#failure !== undefined) return;
    const { position, index } = this.#committed;
    this.#committed = undefined;
    while (this.#ahead.length > 0 && this.#ahead[0]!.position <= position) {
      const { undo } = this.#ahead.shift()!;
      this.#aheadBytes -= undo.bytes.length;
      this.#release(undo.hidden);
      giveBack(undo);
    }
    this.#engine.commit(index, this.#group);
    if (this.#isLevel) {
      this.#pendingBytes = 0;
      this.#engine.holdsBack = false;
      this.#engine.endTick();
    }
    this.#letGo();
  }

  /** Undoes everything from `position` on. There must be no entry open or put aside. */
  lost(position: number): MaybePromise<void> {
    if (this.#moving !== undefined) return this.#moving.then(() => this.lost(position));
    if (this.#failure !== undefined) throw this.#failure;
    return this.#move(this.#undoFrom(position));
  }

  *#undoFrom(position: number): Generator<ReadFault, void> {
    if (!this.#tick.isEmpty) this.assignPosition(Infinity);
    while (this.#ahead.length > 0 && this.#ahead.at(-1)!.position >= position) {
      const last = this.#ahead.at(-1)!;
      yield* this.#revert(last.undo);
      this.#ahead.pop();
      this.#aheadBytes -= last.undo.bytes.length;
      this.#release(last.undo.hidden);
    }
    this.#engine.holdsBack = !this.#isLevel;
    this.#pendingBytes = 0;
    this.#letGo();
  }

  /** Applies a whole entry that another replica evaluated. */
  apply(entry: Buffer, index: number): MaybePromise<void> {
    if (this.#moving !== undefined) return this.#moving.then(() => this.apply(entry, index));
    if (this.#failure !== undefined) throw this.#failure;
    assert(this.#isLevel, 'nothing is ahead of what is applied');
    const done = applyWithFaults(this.#engine, entry, entryOpsAt, entry.length, index, this.#group);
    return whenReady(done, () => {
      this.#rebindAll();
      this.#engine.endTick();
    });
  }

  #rebindAll(): void {
    for (const id of this.#tables.keys()) this.#rebind(id);
  }

  /** No write is ahead of the commit. */
  get #isLevel(): boolean {
    return this.#ahead.length === 0 && this.#tick.isEmpty;
  }

  /** Something was written since the last end of a tick. */
  get hasWritten(): boolean {
    return !this.#tick.isEmpty;
  }

  get aheadBytes(): number {
    return this.#aheadBytes;
  }

  // ---- undoing, and doing again

  /** Undoes a part; the answer is how to do it again. */
  *#revert({ bytes, starts, hidden }: UndoPart): Generator<ReadFault, UndoPart> {
    assert(this.#open.isEmpty, 'no entry is open');
    for (let i = starts.length - 1; i >= 0; i--) {
      const { mark } = this.#open;
      for (;;) {
        this.era++;
        try {
          applyOps(this, bytes, starts[i]!, starts[i + 1] ?? bytes.length);
          break;
        } catch (error) {
          if (!(error instanceof ReadFault)) throw error;
          this.#open.takeFrom(mark);
          this.#engine.rollback();
          this.#rebindAll();
          yield error;
        }
      }
      this.#closeEntry();
    }
    this.era++;
    return { ...this.#open.takeFrom(0), hidden };
  }

  /**
   * Calls `take` while the engine holds committed rows only. In the same instant, unless rows have to be read from disk
   * first.
   */
  takeState<T>(take: () => T): MaybePromise<T> {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#suspended > 0) throw new Error('a long command is under way that has written');
    if (this.#isLevel) return take();
    return this.#move(this.#stateSteps(take));
  }

  *#stateSteps<T>(take: () => T): Generator<ReadFault, T> {
    if (!this.#tick.isEmpty) {
      this.#openTick = { position: Infinity, undo: this.#tick.takeFrom(0) };
      this.#ahead.push(this.#openTick);
    }
    for (const one of this.#ahead.toReversed()) one.undo = yield* this.#revert(one.undo);
    this.#engine.holdsBack = false;
    try {
      return take();
    } finally {
      // Set whatever the outcome, or rows committed later would be missing.
      this.#engine.holdsBack = true;
      for (const one of this.#ahead) one.undo = yield* this.#revert(one.undo);
      if (this.#openTick !== undefined) this.#tick.append(this.#ahead.pop()!.undo);
      this.#openTick = undefined;
      this.#countAhead();
    }
  }

  #countAhead(): void {
    this.#aheadBytes = this.#tick.bytes;
    for (const { undo } of this.#ahead) this.#aheadBytes += undo.bytes.length;
  }

  /** Runs the steps, at once unless they have to wait; the engine must not be used meanwhile. */
  #move<T>(steps: Generator<ReadFault, T>): MaybePromise<T> {
    assert(this.#moving === undefined, 'one move at a time');
    const { done, value } = steps.next();
    if (done === true) return value;
    const rest = this.#moveOn(steps, value);
    const ended = (): void => {
      this.#moving = undefined;
      this.#settle();
    };
    this.#moving = rest.then(ended, ended);
    return rest;
  }

  async #moveOn<T>(steps: Generator<ReadFault, T>, first: ReadFault): Promise<T> {
    let fault = first;
    for (;;) {
      try {
        await fault.ready;
      } catch (error) {
        // Rows are undone in part and cannot be restored: nothing of this state may reach the disk.
        this.#failure = error instanceof Error ? error : new Error(String(error));
        this.#engine.holdsBack = true;
        for (const resolve of this.#drained.splice(0)) resolve();
        throw error;
      }
      const { done, value } = steps.next();
      if (done === true) return value;
      fault = value;
    }
  }

  // ---- ticks and states on disk

  endTick(): void {
    this.#engine.endTick();
    if (this.#isLevel || this.#moving !== undefined || this.#suspended > 0) return;
    if (!this.#canRollBack || this.#failure !== undefined) return;
    const now = performance.now();
    if (now - this.#writtenAt < writeEveryMs) return;
    this.#writtenAt = now;
    void this.takeState(() => this.#engine.endTick());
  }

  get congested(): boolean {
    return this.#isFull || this.#engine.congested === true;
  }

  get #isFull(): boolean {
    return this.#aheadBytes > maxAheadBytes || this.#pendingBytes > fullLogBytes;
  }

  async drained(): Promise<void> {
    if (this.#isFull) {
      await new Promise<void>((resolve) => this.#drained.push(resolve));
    }
    if (this.#engine.congested === true) await this.#engine.drained!();
  }

  #letGo(): void {
    if (this.#isFull) return;
    for (const resolve of this.#drained.splice(0)) resolve();
  }

  get failure(): Error | undefined {
    return this.#failure ?? this.#engine.failure;
  }

  setCacheBypass(tables: ReadonlySet<number>): void {
    this.#engine.setCacheBypass?.(tables);
  }

  async checkpoint(): Promise<number> {
    while (!this.#isSettled) await this.#settled();
    // Kept from being awaited within: only the moment at which it begins matters.
    const { made } = await this.takeState(() => ({ made: this.#engine.checkpoint(this.#group) }));
    return made;
  }

  /** The rows that are committed, and the index that they are the state of. */
  async committedRows(
    wants?: (table: number) => boolean,
  ): Promise<{ index: number; batches: AsyncIterable<Buffer> }> {
    while (!this.#isSettled) await this.#settled();
    return this.takeState(() => ({
      index: this.#engine.appliedIndexOf(this.#group),
      batches: this.#engine.exportSnapshot(wants),
    }));
  }

  /** Must be checked again after each wait: of several waiting callers, the first may have begun. */
  get #isSettled(): boolean {
    return this.#moving === undefined && this.#engine.exporting === undefined;
  }

  /** An export that is under way would have the next one wait, and take another moment's rows. */
  async #settled(): Promise<void> {
    for (;;) {
      if (this.#moving !== undefined) await this.#moving;
      else if (this.#engine.exporting !== undefined) await this.#engine.exporting;
      else return;
    }
  }

  get exporting(): Promise<void> | undefined {
    return this.#engine.exporting;
  }

  exportSnapshot(wants?: (table: number) => boolean): AsyncIterable<Buffer> {
    const rows = this.committedRows(wants);
    rows.catch(() => {});
    return (async function* () {
      yield* (await rows).batches;
    })();
  }

  async importSnapshot(batches: AsyncIterable<Buffer>, index: number): Promise<void> {
    assert(this.#isLevel, 'nothing is ahead of what takes the place of all rows');
    this.#tables.clear();
    await this.#engine.importSnapshot(batches, index, this.#group);
  }

  background(budgetMs: number): boolean {
    return this.#moving === undefined && this.#engine.background(budgetMs);
  }

  stats(): EngineStats {
    return this.#engine.stats();
  }
}
