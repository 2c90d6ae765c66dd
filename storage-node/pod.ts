// A pod: one engine, one log, one thread. Its commands are in pod-commands.ts.

import type { ReadBounds, TableSpan } from '../universal-row/command.ts';
import type { Outcome as LogOutcome, RowObserver } from '../universal-row/executor.ts';
import type { LocalPod } from '../contracts/local-pod.ts';
import type { Engine } from '../engines/engine.ts';
import type { TaskCostRow } from './flows/command-flows.ts';
import type { BackgroundWork, TableRows } from './background-work.ts';
import type { LogPins } from './backup/log-pins.ts';
import { Checkpoints } from './checkpoints.ts';
import type { EvictionPolicy } from './eviction/evictor.ts';
import { PodCommands } from './pod-commands.ts';
import type { PodOptions } from './pod-options.ts';
import type { PartitionMarks } from './partition-marks.ts';
import { PodTick } from './pod-tick.ts';
import { PodMaintenance } from './pod-maintenance.ts';
import type { LogRole, PartitionLog } from './replicator/partition-log.ts';
import type { ChangeListener } from '../universal-row/row-change.ts';
import { tableFreed } from './table-waits.ts';
import { dropTables, swapTables } from './whole-tables.ts';

/** See `Pod.parts`. */
interface PodParts {
  readonly engine: Engine;
  readonly log: PartitionLog;
  readonly pins: LogPins | undefined;
  readonly background: BackgroundWork | undefined;
}

export class Pod extends PodCommands implements LocalPod {
  readonly #maintenance: PodMaintenance;
  readonly #pins: LogPins | undefined;
  readonly #background: BackgroundWork | undefined;
  readonly #checkpoints: Checkpoints;

  constructor(options: PodOptions) {
    super(options);
    this.#pins = options.pins;
    this.#background = options.background;
    this.stats.lastCheckpointIndex = this.log.lastIndex;
    this.#checkpoints = new Checkpoints({
      engine: this.engine,
      log: options.log,
      clock: options.clock,
      everyBytes: options.checkpointBytes,
      stats: this.stats,
      report: options.report,
      ready: () => this.whole().then(() => this.isWhole),
      begun: () => this.#checkpointBegun(),
    });
    this.#maintenance = new PodMaintenance({
      tick: this.tick,
      memory: this.memory,
      holds: this.holds,
      tables: options.tables,
      checkpoints: this.#checkpoints,
      clock: options.clock,
      report: options.report,
      background: options.background,
      admission: options.admission,
      steps: options.steps,
    });
  }

  /** Role of this replica in its log; always the leader where there is one copy. */
  get role(): LogRole {
    return this.replica?.role ?? 'leader';
  }

  /** States of partitions that are copied or are copies; undefined without several replicas. */
  get marks(): PartitionMarks | undefined {
    return this.tick.marks;
  }

  /** The replica that leads, where there are several; 0 while none is known. */
  get leader(): number {
    return this.replica?.leader ?? 0;
  }

  /** To be waited for before rows are touched without a command. */
  get rowsReady(): Promise<void> | undefined {
    return this.replica?.ready;
  }

  /** Commands wait, as the role is about to change. */
  get isPaused(): boolean {
    return this.replica?.isPaused === true;
  }

  /** See `LocalPod.isShut`. */
  get isShut(): boolean {
    return this.replica?.isShut === true;
  }

  /** Number of times the log has undone writes of this pod. */
  get losses(): number {
    return this.replica?.losses ?? 0;
  }

  get lastPosition(): number {
    return this.tick.lastPosition;
  }

  /** Begins the work that happens by itself: expiry, reclaiming, checkpoints. */
  start(): void {
    this.#maintenance.start();
  }

  /**
   * One round of maintenance: expiry, freeing, the memory limit, and a checkpoint when one is due.
   */
  maintain(): void {
    this.#maintenance.maintain();
  }

  get maxMemoryBytes(): number {
    return this.memory.maxBytes;
  }

  /** Holds for the next command on. */
  set maxMemoryBytes(bytes: number) {
    this.memory.maxBytes = bytes;
  }

  /** While set, expired rows are hidden and kept. Only writing commands drop the expired rows that they meet. */
  keepExpired(isKept: boolean): void {
    this.tick.keepExpired(isKept);
  }

  /** Which rows are dropped when there is no room, and of how many of them the best. */
  setEviction(policy: EvictionPolicy, samples: number): void {
    this.memory.setEviction(policy, samples);
  }

  /** Rows that were dropped to make room, by the first table of their tenant. */
  get evictedRows(): ReadonlyMap<number, number> {
    return this.memory.evictedRows;
  }

  /** Whether no long command holds the table. */
  isFree(table: number): boolean {
    return this.holds.mayRun(table, true);
  }

  /** Resolves when no long command holds the table. */
  freed(table: number): Promise<void> {
    return tableFreed(this.holds, table);
  }

  /** Rows that are observed here may be written elsewhere from now on. */
  rowsMoved(): void {
    this.tick.observers.all();
  }

  isWithin({ maxStalenessMs, maxLagEntries }: ReadBounds): boolean {
    if (this.replica === undefined || !this.replica.mayRead) return false;
    const { ms, entries } = this.log.staleness!();
    // A replica that has heard of no leader yet may have nothing at all.
    return ms !== Infinity && ms <= maxStalenessMs && entries <= maxLagEntries;
  }

  /** Resolves at a moment when no long command is halfway through its writes. */
  whole(): Promise<void> {
    return this.longs.runs.whole();
  }

  /** Long commands under way. */
  get longRuns(): number {
    return this.longs.runs.size;
  }

  /** Commands that wait for tables that long ones hold. */
  get waitingCommands(): number {
    return this.holds.waiting;
  }

  /** Resolves when the long commands that are under way now have answered. */
  longRunsEnded(): Promise<void> {
    return this.longs.runs.ended();
  }

  /**
   * Resolves at a moment when rows can be exported: an engine makes one export at a time, and a long command may have written a
   * part. Rejects once the pod is closed.
   */
  async exportable(): Promise<void> {
    const { runs } = this.longs;
    while (this.checkpointInProgress || !this.isWhole) {
      if (runs.isAbandoned) throw new Error('the rows are being closed');
      if (this.checkpointInProgress) await this.checkpoint();
      else await this.whole();
    }
  }

  get isWhole(): boolean {
    return this.longs.runs.isWhole;
  }

  endTick(): number {
    return this.tick.endForAnswers();
  }

  /**
   * Like `endTick`, for callers that check `losses` to learn whether the tick's answers still hold.
   */
  flushTick(): number {
    return this.tick.flush();
  }

  /** Resolves when all that was written is as safe on disk as the policy ever makes it. */
  durable(): Promise<void> {
    return this.tick.durable();
  }

  /** As `durable`, by every policy. */
  async synced(): Promise<void> {
    await this.tick.durable();
    await this.log.sync?.();
  }

  whenSettled(position: number, then: (outcome: LogOutcome) => void): void {
    this.tick.whenSettled(position, then);
  }

  // ---- observers

  observe(table: number, key: Buffer, observer: RowObserver): void {
    this.tick.observe(table, key, observer);
  }

  unobserve(table: number, key: Buffer, observer: RowObserver): void {
    this.tick.unobserve(table, key, observer);
  }

  /** Running long commands report only their later changes. */
  follow(listener: ChangeListener | undefined): void {
    this.tick.follow(listener);
  }

  /** Observers of a table that is no more, to observe the one in its place. */
  takeObservers(table: number): ReturnType<PodTick['takeObservers']> {
    return this.tick.takeObservers(table);
  }

  // ---- whole tables, checkpoints, figures

  /**
   * Removes all rows of these tables, regardless of their rules, and resolves once that is as
   * durable as the policy provides. The tables must no longer be written to.
   */
  dropTables(span: TableSpan): Promise<void> {
    return dropTables(this.tick, this.holds, span);
  }

  /** Tables change places, all of them in the same instant. */
  swapTables(pairs: readonly (readonly [number, number])[]): void {
    swapTables(this.tick, pairs);
  }

  /** Makes a checkpoint and releases the log before it; one at a time. */
  checkpoint(): Promise<void> {
    return this.#checkpoints.make();
  }

  #checkpointBegun(): () => void {
    const { engine } = this;
    const [background, pins] = [this.#background, this.#pins];
    const tables = background === undefined ? [] : this.#tableRows();
    return () => {
      background?.checkpointed(tables, engine.stats().diskBytes);
      pins?.trim();
    };
  }

  #tableRows(): TableRows[] {
    const { engine } = this;
    return engine.tables().map((table) => ({ table, rows: engine.table(table).rowCount() }));
  }

  get checkpointInProgress(): boolean {
    return this.#checkpoints.running !== undefined;
  }

  /** Keys that reading commands found, and did not find. */
  get lookups(): { hits: number; misses: number } {
    return { hits: this.tx.hits, misses: this.tx.misses };
  }

  get expiredRows(): number {
    return this.tx.expiredRows;
  }

  /** Whether an answer may have to wait for a task of a flow. */
  get tasksMayWait(): boolean {
    return this.flows?.mayWait === true;
  }

  /** Costs of the tasks of flows, and of the commands they surround. */
  taskCosts(): TaskCostRow[] {
    return this.flows?.costs() ?? [];
  }

  engineStats(): ReturnType<Engine['stats']> {
    return this.engine.stats();
  }

  /** Log entries since the last checkpoint, or since the pod was opened. */
  get changesSinceCheckpoint(): number {
    return this.log.lastIndex - this.stats.lastCheckpointIndex;
  }

  logStatus(): ReturnType<PartitionLog['status']> {
    return this.log.status();
  }

  setFsync(policy: PartitionLog['fsyncPolicy']): void {
    this.log.fsyncPolicy = policy;
  }

  /**
   * Parts of the pod for backups and restores, besides commands: their caller ends the tick first.
   */
  get parts(): PodParts {
    const { engine, log } = this;
    return { engine, log, pins: this.#pins, background: this.#background };
  }

  /** Rows of the last committed entry, and its index. The caller has ended the tick. */
  async committedRows(
    wants: (table: number) => boolean,
  ): Promise<{ index: number; batches: AsyncIterable<Buffer> }> {
    const { ahead } = this.tick;
    if (ahead !== undefined) return await ahead.committedRows(wants);
    return { index: this.log.lastIndex, batches: this.engine.exportSnapshot(wants) };
  }

  /** Tables that hold rows here, ascending. */
  heldTables(): number[] {
    return this.engine.tables();
  }

  /** Rows and rows with an expiry of a table. */
  tableSize(table: number): { rows: number; expiring: number } {
    if (!this.engine.holds(table)) return { rows: 0, expiring: 0 };
    const t = this.engine.table(table);
    return { rows: t.rowCount(), expiring: t.expiringRows };
  }

  /** Bytes of a table's keys and values, about. */
  tableBytes(table: number): number {
    return this.engine.holds(table) ? this.engine.table(table).storedBytes() : 0;
  }

  /** Lets the last writes reach the disk, and closes. */
  async close(): Promise<void> {
    this.#maintenance.stop();
    this.longs.runs.abandon();
    await this.longRunsEnded();
    await this.#checkpoints.running;
    this.tick.end();
    this.isClosed = true;
    this.replica?.close();
    await this.log.close();
    await this.engine.close();
  }
}
