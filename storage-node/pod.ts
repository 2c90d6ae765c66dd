// A pod: one engine, one log, one thread. Commands run here one at a time, each whole. One that is long
// holds its tables instead, and takes the thread for a step at a time (long-run.ts).

import { assert } from '../universal-row/assert.ts';
import {
  isWrite,
  type Command,
  type ReadBounds,
  type TableSpan,
} from '../universal-row/command.ts';
import type { Clock, Rng } from '../universal-row/environment.ts';
import { CommandError, ReadFault } from '../universal-row/errors.ts';
import type { Outcome as LogOutcome, Refusable, RowObserver } from '../universal-row/executor.ts';
import type { MaybePromise } from '../universal-row/maybe-promise.ts';
import type { Reply } from '../universal-row/reply.ts';
import { RowWork } from '../universal-row/row-work.ts';
import type { LocalPod } from '../contracts/local-pod.ts';
import type { StepWatcher } from '../contracts/step-watcher.ts';
import type { Steps, StepTransform } from '../universal-row/steps.ts';
import type { PodAdmission } from '../contracts/pod-admission.ts';
import { type Engine, engineClosed } from '../engines/engine.ts';
import {
  CommandFlows,
  type CommandFlowRegistry,
  type Outcome,
  type TaskCostRow,
} from './flows/command-flows.ts';
import type { BackgroundWork, TableRows } from './background-work.ts';
import type { LogPins } from './backup/log-pins.ts';
import { type CheckpointStats, Checkpoints } from './checkpoints.ts';
import type { EvictionPolicy } from './eviction/evictor.ts';
import { LongRun } from './long-run.ts';
import { PartitionGuard, whileShut } from './partition-guard.ts';
import { PodLoad } from './pod-load.ts';
import type { PartitionMarks } from './partition-marks.ts';
import { PodMemory } from './pod-memory.ts';
import { PodRuns } from './pod-runs.ts';
import { PodTurn } from './pod-turn.ts';
import { PodMaintenance } from './pod-maintenance.ts';
import type { Replica } from './replica.ts';
import { type LogRole, type PartitionLog, tooLargeText } from './replicator/partition-log.ts';
import type { ChangeListener } from '../universal-row/row-change.ts';
import type { TableHolds } from './table-holds.ts';
import { tableFreed } from './table-waits.ts';
import type { TableRulesByNumber } from './table-rules.ts';
import type { Transaction } from './transaction.ts';
import { dropTables, swapTables } from './whole-tables.ts';

export interface PodOptions {
  engine: Engine;
  log: PartitionLog;
  /** The log's number in the engine; `localGroup` if left out. */
  group?: number;
  /** Pins that keep the log for backups. */
  pins?: LogPins | undefined;
  /**
   * The tables kept here, by number. It is live: `readOnly` takes effect at the next command, all
   * else at the next turn.
   */
  tables: TableRulesByNumber;
  clock: Clock;
  rng: Rng;
  /** Writes that need memory are refused beyond this; Infinity for no limit. */
  maxMemoryBytes: number;
  /** A checkpoint is made whenever the log has grown by this much. */
  checkpointBytes: number;
  /** Told about failures that no client asked about. */
  report: (level: 'info' | 'warn' | 'error', message: string, fields?: object) => void;
  /** Receives reports of background work. */
  background?: BackgroundWork | undefined;
  /** Tasks to run around commands; none when left out. Later registrations are not seen. */
  flows?: CommandFlowRegistry | undefined;
  /** Schedules maintenance and the steps of long commands beside other tenants. */
  admission?: PodAdmission | undefined;
  /** Hears of maintenance that takes long. */
  steps?: StepWatcher | undefined;
}

/** See `Pod.parts`. */
interface PodParts {
  readonly engine: Engine;
  readonly log: PartitionLog;
  readonly pins: LogPins | undefined;
  readonly background: BackgroundWork | undefined;
}

interface PodStats extends CheckpointStats {
  expiredRows: number;
  internalErrors: number;
  readFaults: number;
  loadedEntries: number;
  /** Commands and transactions that took many steps, and their steps. */
  longCommands: number;
  longSteps: number;
}

// A transaction that takes longer goes on as a long command does.
const wholeTransactionMs = 1;
const bytesBetweenLooks = 64 * 1024;

export class Pod implements LocalPod {
  readonly stats: PodStats = {
    expiredRows: 0,
    internalErrors: 0,
    readFaults: 0,
    checkpoints: 0,
    lastCheckpointMs: 0,
    lastCheckpointAt: 0,
    lastCheckpointIndex: 0,
    checkpointFailures: 0,
    loadedEntries: 0,
    longCommands: 0,
    longSteps: 0,
  };

  private readonly turn: PodTurn;
  private readonly maintenance: PodMaintenance;
  private readonly memory: PodMemory;
  private readonly engine: Engine;
  private readonly log: PartitionLog;
  private readonly replica: Replica | undefined;
  private readonly pins: LogPins | undefined;
  private readonly tables: TableRulesByNumber;
  private readonly clock: Clock;
  private readonly report: PodOptions['report'];
  private readonly background: BackgroundWork | undefined;
  private readonly tx: Transaction;
  /** Undefined when every flow is the standard one, which `execute` and `executeAll` are. */
  private readonly flows: CommandFlows | undefined;
  /**
   * Whether rows may be on disk, so that commands may run again; the position in their work to
   * restart from is then kept.
   */
  private readonly mayMiss: boolean;
  private readonly workBefore = new RowWork();
  private readonly maxWriteBytes: number;
  /** Load of a replica; undefined for a single pod. */
  readonly load: PodLoad | undefined;
  private readonly checkpoints: Checkpoints;
  private isClosed = false;
  private readonly holds: TableHolds;
  private readonly longs: PodRuns;
  private readonly guard: PartitionGuard;

  constructor(options: PodOptions) {
    const checkpoint = (): void => void this.checkpoint();
    this.longs = new PodRuns({
      ...{ log: options.log, tables: options.tables, admission: options.admission },
      ...{ stats: this.stats, turn: () => this.turn, load: () => this.load },
      refusal: (command) => this.refusal(command),
      errorText: (command, error) => this.#errorText(command, error),
    });
    this.holds = this.longs.holds;
    const { runs } = this.longs;
    this.turn = new PodTurn({ ...options, group: options.group, runs, checkpoint });
    this.guard = new PartitionGuard(this.turn, options.tables);
    this.engine = this.turn.engine;
    this.replica = this.turn.replica;
    this.load = this.replica && new PodLoad();
    this.tx = this.turn.tx;
    this.mayMiss = options.engine.expectRows !== undefined;
    this.log = options.log;
    this.maxWriteBytes = options.log.maxWriteBytes ?? Infinity;
    this.pins = options.pins;
    this.tables = options.tables;
    this.clock = options.clock;
    this.report = options.report;
    this.background = options.background;
    this.stats.lastCheckpointIndex = this.log.lastIndex;
    this.checkpoints = new Checkpoints({
      engine: this.engine,
      log: options.log,
      clock: options.clock,
      everyBytes: options.checkpointBytes,
      stats: this.stats,
      report: options.report,
      ready: () => this.whole().then(() => this.isWhole),
      begun: () => this.#checkpointBegun(),
    });
    this.memory = new PodMemory({ ...options, turn: this.turn, holds: this.holds });
    this.maintenance = new PodMaintenance({
      turn: this.turn,
      memory: this.memory,
      holds: this.holds,
      tables: options.tables,
      checkpoints: this.checkpoints,
      clock: options.clock,
      report: options.report,
      background: options.background,
      admission: options.admission,
      steps: options.steps,
    });
    this.flows = options.flows && this.#flowsOf(options.flows);
  }

  #flowsOf(registry: CommandFlowRegistry): CommandFlows | undefined {
    const flows = new CommandFlows(registry, this.engine.model, this.clock, {
      attempt: (commands, reply, before, outcomes) => {
        const waits = this.#attemptAll(commands, reply, before, outcomes);
        assert(!(waits instanceof LongRun), 'commands with outcomes are run whole');
        return waits;
      },
      internalError: (what, error) => this.#internalError(what, error),
    });
    return flows.isStandard ? undefined : flows;
  }

  /** Role of this replica in its log; always the leader where there is one copy. */
  get role(): LogRole {
    return this.replica?.role ?? 'leader';
  }

  /** What becomes of partitions, where there are several replicas. */
  get marks(): PartitionMarks | undefined {
    return this.turn.marks;
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

  /** Number of times the log has undone writes of this pod. */
  get losses(): number {
    return this.replica?.losses ?? 0;
  }

  /** Begins the work that happens by itself: expiry, reclaiming, checkpoints. */
  start(): void {
    this.maintenance.start();
  }

  /**
   * One round of maintenance: expiry, freeing, the memory limit, and a checkpoint when one is due.
   */
  tick(): void {
    this.maintenance.tick();
  }

  get maxMemoryBytes(): number {
    return this.memory.maxBytes;
  }

  /** Holds for the next command on. */
  set maxMemoryBytes(bytes: number) {
    this.memory.maxBytes = bytes;
  }

  /** While it holds, expired rows are hidden and stay: only commands that write drop those that they meet. */
  keepExpired(isKept: boolean): void {
    this.turn.keepExpired(isKept);
  }

  /** Which rows are dropped when there is no room, and of how many of them the best. */
  setEviction(policy: EvictionPolicy, samples: number): void {
    this.memory.setEviction(policy, samples);
  }

  /** Rows that were dropped to make room, by the first table of their tenant. */
  get evictedRows(): ReadonlyMap<number, number> {
    return this.memory.evictedRows;
  }

  execute(command: Command, reply: Reply): MaybePromise<Reply | void> {
    if (this.replica?.isShut === true) {
      return whileShut(this.replica, command, reply, (own) => this.execute(command, own));
    }
    if (this.turn.marks?.mayShut(command) === true) {
      const tables = this.longs.tablesOf([command]);
      const shut = this.guard.ifShut(tables, [command], reply, (own) => this.execute(command, own));
      if (shut !== false) return shut;
    }
    if (this.holds.size !== 0) {
      const waits = this.longs.wait([command], reply, (own) => this.execute(command, own));
      if (waits !== undefined) return waits;
    }
    const { flows } = this;
    if (flows !== undefined && flows.plans[command.action] !== undefined) {
      return flows.execute(command, reply);
    }
    const { tx, log, turn } = this;
    const writing = isWrite(command.action);
    if (this.memory.evictor !== undefined) this.memory.makeRoom(command);
    if (writing) {
      const refusal = this.refusal(command);
      if (refusal !== undefined) {
        reply.error(refusal);
        return;
      }
      if (this.engine.congested === true) {
        return this.#whenDrained(reply, (own) => this.execute(command, own));
      }
    }
    if (!turn.isOpen) turn.open();
    const mark = reply.mark();
    log.begin();
    const logged = log.writer.pos;
    const work = (tx.work = command.work ?? turn.unclaimed);
    tx.client = command.client ?? 0;
    this.load?.begin(work);
    if (this.mayMiss) this.workBefore.copy(work);
    let long: StepTransform | void = undefined;
    try {
      tx.begin(command.table, command.span, command.args, writing, turn.now, true);
      if (this.holds.size !== 0 || this.turn.keepsExpired) this.#freeze(command.table, writing);
      long = command.transform(tx, command.args, reply);
    } catch (error) {
      const failure = this.#recover(error, reply, mark, command);
      if (typeof failure !== 'string') {
        return this.#whenRead(failure, command, reply, () => this.execute(command, reply));
      }
    }
    const isFull = log.writer.pos > turn.fullAt;
    if (isFull && log.writer.pos - logged > this.maxWriteBytes) {
      this.#refuseLarge(reply, mark, command);
      this.load?.end(work, reply.mark() - mark);
      return;
    }
    work.logBytes += log.writer.pos - logged;
    if (long !== undefined && log.writer.pos > logged) {
      // A script has written already: that becomes the beginning of the run.
      reply.rollback(mark);
      return this.longs.finish(this.longs.continue([command], 0, long, reply, mark, logged));
    }
    const index = log.end();
    if (index !== 0) turn.committed(index);
    else if (tx.touched.length !== 0) turn.notify();
    if (isFull) turn.end();
    if (long !== undefined) return this.longs.start([command], 0, long, reply, mark);
    this.load?.end(work, reply.mark() - mark);
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
    this.turn.observers.all();
  }

  isWithin({ maxStalenessMs, maxLagEntries }: ReadBounds): boolean {
    if (this.replica === undefined || !this.replica.mayRead) return false;
    const { ms, entries } = this.log.staleness!();
    // A replica that has heard of no leader yet may have nothing at all.
    return ms !== Infinity && ms <= maxStalenessMs && entries <= maxLagEntries;
  }

  read(command: Command, reply: Reply): MaybePromise<Reply | void> {
    const { replica, tx } = this;
    if (replica?.mayRead !== true) {
      command.notRun = replica?.notRun;
      return;
    }
    const whole = this.guard.mayRead(command);
    if (whole instanceof Promise) return whole.then(() => this.read(command, reply));
    if (!whole) {
      command.notRun = replica.notRun;
      return;
    }
    const mark = reply.mark();
    tx.work = command.work ?? this.turn.unclaimed;
    this.load?.begin(tx.work);
    if (this.mayMiss) this.workBefore.copy(tx.work);
    tx.refresh();
    // Expired rows are hidden; the leader drops them.
    tx.frozen = true;
    this.log.begin();
    const { table, span, args, transform } = command;
    let long: StepTransform | void = undefined;
    try {
      tx.begin(table, span, args, false, replica.time(this.clock.now()), true);
      long = transform(tx, args, reply);
    } catch (error) {
      const failure = this.#recover(error, reply, mark, command);
      if (typeof failure !== 'string') {
        return this.#whenRead(failure, command, reply, () => this.read(command, reply));
      }
    }
    tx.touched.length = 0;
    this.log.abandon();
    if (long === undefined) {
      this.load?.end(tx.work, reply.mark() - mark);
      return;
    }
    // Entries are applied between its steps.
    reply.rollback(mark);
    command.notRun = replica.notRun;
  }

  executeAll(
    commands: readonly Command[],
    reply: Reply,
    before: (reply: Reply) => boolean,
  ): MaybePromise<Reply | void> {
    if (this.replica?.isShut === true) {
      return whileShut(this.replica, commands[0], reply, (own) =>
        this.executeAll(commands, own, before),
      );
    }
    if (this.turn.marks?.isAny === true) {
      const shut = this.guard.ifShut(this.longs.tablesOf(commands), commands, reply, (own) =>
        this.executeAll(commands, own, before),
      );
      if (shut !== false) return shut;
    }
    if (this.holds.size !== 0) {
      const waits = this.longs.wait(commands, reply, (own) =>
        this.executeAll(commands, own, before),
      );
      if (waits !== undefined) return waits;
    }
    if (this.engine.congested === true && this.engine.failure === undefined) {
      return this.#whenDrained(reply, (own) => this.executeAll(commands, own, before));
    }
    if (this.flows !== undefined) return this.flows.executeAll(commands, reply, before);
    const wait = this.#attemptAll(commands, reply, before, undefined);
    if (wait instanceof LongRun) return this.longs.finish(wait);
    if (wait === undefined) return;
    const again = (): MaybePromise<Reply | void> => this.executeAll(commands, reply, before);
    return this.#whenRead(wait, commands[0], reply, again);
  }

  /** Runs commands later. The answer that they would have written to may be shared with those of others. */
  async #whenDrained(
    reply: Reply,
    then: (own: Reply) => MaybePromise<Reply | void>,
  ): Promise<Reply> {
    const own = reply.fork(reply.mark());
    // After a failure they are refused for its reason.
    await this.engine.drained!().catch(() => {});
    return (await then(own)) ?? own;
  }

  /** Runs commands again once what they were reading is there, unless this pod is closed by then. */
  #whenRead(
    ready: Promise<void>,
    first: Command | undefined,
    reply: Reply,
    again: () => MaybePromise<Reply | void>,
  ): Promise<Reply | void> {
    const refuse = (): void => {
      reply.error(engineClosed.message);
      if (first !== undefined) first.notRun = { why: 'notLeader', leader: 0 };
    };
    return ready.then(
      () => (this.isClosed ? refuse() : again()),
      (error: unknown) => {
        if (!this.isClosed) throw error;
        refuse();
      },
    );
  }

  /** Rows of a table that a long command reads stay, expired or not; so do those that are read while expired rows stay. */
  #freeze(table: number, writing: boolean): void {
    const keeps = this.turn.keepsExpired && !writing;
    this.tx.frozen = this.writeFailure !== undefined || keeps || this.holds.isRead(table);
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

  get isWhole(): boolean {
    return this.longs.runs.isWhole;
  }

  /** `BarePath.attempt`; without flows no outcomes are needed. */
  #attemptAll(
    commands: readonly Command[],
    reply: Reply,
    before: (reply: Reply) => boolean,
    outcomes: (Outcome | undefined)[] | undefined,
  ): Promise<void> | LongRun | undefined {
    if (this.engine.congested === true && this.engine.failure === undefined) {
      // After a failure the commands are refused for its reason.
      return this.engine.drained!().catch(() => {});
    }
    const start = reply.mark();
    if (!before(reply)) return undefined;
    if (this.memory.evictor !== undefined && commands.length > 0) {
      this.memory.makeRoom(commands[0]!);
    }
    const { tx, log, turn } = this;
    if (!turn.isOpen) turn.open();
    if (outcomes !== undefined) tx.observing = true;
    const work = commands[0]?.work ?? turn.unclaimed;
    this.load?.begin(work);
    if (this.mayMiss) this.workBefore.copy(work);
    log.begin();
    const entryAt = log.writer.pos;
    const deadline = this.clock.monotonic() + wholeTransactionMs;
    let looked = start + entryAt;
    for (let i = 0; i < commands.length; i++) {
      const command = commands[i]!;
      const mark = reply.mark();
      const written = mark + log.writer.pos;
      if (outcomes === undefined && ((i & 7) === 7 || written - looked > bytesBetweenLooks)) {
        looked = written;
        if (this.clock.monotonic() > deadline) {
          return this.longs.continue(commands, i, undefined, reply, start, entryAt);
        }
      }
      const logged = log.writer.pos;
      const touched = tx.touched.length;
      const writing = isWrite(command.action);
      let kind: Outcome['kind'] = 'refused';
      let error = outcomes?.[i]?.error ?? (writing ? this.refusal(command) : undefined);
      if (error !== undefined) {
        reply.error(error);
      } else {
        kind = 'done';
        try {
          // Each command's outcome includes its own keys.
          const fresh = i === 0 || outcomes !== undefined;
          tx.work = command.work ?? turn.unclaimed;
          tx.client = command.client ?? 0;
          tx.begin(command.table, command.span, command.args, writing, turn.now, fresh);
          if (this.holds.size !== 0 || this.turn.keepsExpired) this.#freeze(command.table, writing);
          const long = command.transform(tx, command.args, reply);
          if (long !== undefined) {
            reply.rollback(mark);
            if (outcomes === undefined) {
              return this.longs.continue(commands, i, long, reply, start, entryAt);
            }
            // Outcomes cover whole commands.
            runWhole(long(tx, command.args, reply));
          }
        } catch (thrown) {
          const failure = this.#recover(thrown, reply, mark, command);
          if (typeof failure !== 'string') {
            // The changes of earlier commands are undone as well: all of them run again.
            reply.rollback(start);
            tx.observing = turn.isObserved;
            return failure;
          }
          kind = 'failed';
          error = failure;
        }
      }
      tx.work.logBytes += log.writer.pos - logged;
      if (outcomes === undefined) continue;
      if (reply.mark() === mark) kind = 'waits';
      // Whether it wrote, until the index is known.
      const index = log.writer.pos > logged ? 1 : 0;
      outcomes[i] = { kind, error, index, touched: tx.touched.slice(touched) };
    }
    const isFull = log.writer.pos > turn.fullAt;
    if (isFull && log.writer.pos - entryAt > this.maxWriteBytes) {
      const error = this.#refuseLarge(reply, start, commands[0]!);
      outcomes?.fill({ kind: 'refused', error, index: 0, touched: [] });
      tx.observing = turn.isObserved;
      this.load?.end(work, reply.mark() - start, commands.length);
      return undefined;
    }
    const index = log.end();
    for (const outcome of outcomes ?? []) if (outcome!.index !== 0) outcome!.index = index;
    tx.observing = turn.isObserved;
    if (index !== 0) turn.committed(index);
    else if (turn.listener !== undefined) turn.notify();
    if (isFull) turn.end();
    this.load?.end(work, reply.mark() - start, commands.length);
    return undefined;
  }

  /**
   * Answers the error of a command and returns it, or undoes everything and returns the promise to
   * wait for before it runs again. A command that failed after some writes keeps them: they are in
   * the engine, so they are logged, and the log and the engine stay the same.
   */
  #recover(error: unknown, reply: Reply, mark: number, command: Command): Promise<void> | string {
    if (error instanceof ReadFault) {
      this.stats.readFaults++;
      this.#undo(reply, mark);
      this.tx.work.restart(this.workBefore);
      this.load?.missed();
      return error.ready;
    }
    reply.rollback(mark);
    const text = this.#errorText(command, error);
    reply.error(text);
    return text;
  }

  /** Undoes the open entry, and its answer, which begins at `mark`. */
  #undo(reply: Reply, mark: number): void {
    reply.rollback(mark);
    this.log.abandon();
    this.engine.rollback();
    this.tx.touched.length = 0;
    this.tx.refresh();
  }

  /** Undoes what writes more than a log entry has room for, and answers the error, which it returns. */
  #refuseLarge(reply: Reply, mark: number, first: Command): string {
    this.#undo(reply, mark);
    first.isUndone = true;
    const text = `ERR ${tooLargeText(this.maxWriteBytes)}`;
    reply.error(text);
    return text;
  }

  #errorText(command: Command, error: unknown): string {
    return error instanceof CommandError
      ? error.message
      : this.#internalError(`command ${command.name} failed`, error);
  }

  #internalError(what: string, error: unknown): string {
    this.stats.internalErrors++;
    this.report('error', what, { err: error });
    return 'ERR internal error';
  }

  refusal(command: Refusable): string | undefined {
    const rules = this.tables.get(command.table);
    if (rules !== undefined) {
      if (rules.readOnly) return "READONLY You can't write against a read only table.";
      if (rules.quota !== undefined && command.grows) {
        const full = rules.quota.refusal();
        if (full !== undefined) return full;
      }
    }
    const failure = this.turn.writeFailure;
    if (failure !== undefined) {
      return `MISCONF Errors writing to disk, so commands that may change data are refused: ${failure.message}`;
    }
    if (this.memory.isFull && command.grows) {
      return "OOM command not allowed when used memory > 'maxmemory'.";
    }
    return undefined;
  }

  endTurn(): number {
    return this.turn.endForAnswers();
  }

  /**
   * Like `endTurn`, for callers that check `losses` to learn whether the tick's answers still hold.
   */
  flushTurn(): number {
    return this.turn.flush();
  }

  /** Resolves when all that was written is as safe on disk as the policy ever makes it. */
  durable(): Promise<void> {
    return this.turn.durable();
  }

  /** As `durable`, by every policy. */
  async synced(): Promise<void> {
    await this.turn.durable();
    await this.log.sync?.();
  }

  whenSettled(position: number, then: (outcome: LogOutcome) => void): void {
    this.turn.whenSettled(position, then);
  }

  // ---- observers

  observe(table: number, key: Buffer, observer: RowObserver): void {
    this.turn.observe(table, key, observer);
  }

  unobserve(table: number, key: Buffer, observer: RowObserver): void {
    this.turn.unobserve(table, key, observer);
  }

  /** Running long commands report only their later changes. */
  follow(listener: ChangeListener | undefined): void {
    this.turn.follow(listener);
  }

  /** Observers of a table that is no more, to observe the one in its place. */
  takeObservers(table: number): ReturnType<PodTurn['takeObservers']> {
    return this.turn.takeObservers(table);
  }

  // ---- whole tables, checkpoints, figures

  /**
   * Removes all rows of these tables, regardless of their rules, and resolves once that is as
   * durable as the policy provides. The tables must no longer be written to.
   */
  dropTables(span: TableSpan): Promise<void> {
    return dropTables(this.turn, this.holds, span);
  }

  /** Tables change places, all of them in the same instant. */
  swapTables(pairs: readonly (readonly [number, number])[]): void {
    swapTables(this.turn, pairs);
  }

  /** Makes a checkpoint and releases the log before it; one at a time. */
  checkpoint(): Promise<void> {
    return this.checkpoints.make();
  }

  #checkpointBegun(): () => void {
    const { background, pins, engine } = this;
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
    return this.checkpoints.running !== undefined;
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

  get writeFailure(): Error | undefined {
    return this.turn.writeFailure;
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
    const { engine, log, pins, background } = this;
    return { engine, log, pins, background };
  }

  /** Rows of the last committed entry, and its index. The caller has ended the tick. */
  async committedRows(
    wants: (table: number) => boolean,
  ): Promise<{ index: number; batches: AsyncIterable<Buffer> }> {
    const { ahead } = this.turn;
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
    this.maintenance.stop();
    this.longs.runs.abandon();
    await this.longRunsEnded();
    await this.checkpoints.running;
    this.turn.end();
    this.isClosed = true;
    this.replica?.close();
    await this.log.close();
    await this.engine.close();
  }
}

/** Runs at once. A miss makes all of it run again. */
function runWhole(steps: Steps): void {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return;
    if (value !== undefined) throw value;
  }
}
