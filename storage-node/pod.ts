// A pod: one engine, one log, one thread. Commands run here one at a time, each whole. One that is long
// holds its tables instead, and takes the thread for a step at a time (long-run.ts).

import { assert } from '../universal-row/assert.ts';
import { isWrite, type Command, type TableSpan } from '../universal-row/command.ts';
import type { Clock, Rng } from '../universal-row/environment.ts';
import { CommandError, ReadFault } from '../universal-row/errors.ts';
import type { Executor, Refusable, RowObserver } from '../universal-row/executor.ts';
import type { MaybePromise } from '../universal-row/maybe-promise.ts';
import type { Reply } from '../universal-row/reply.ts';
import { RowWork } from '../universal-row/row-work.ts';
import type { StepSource, StepWatcher } from '../contracts/step-watcher.ts';
import type { Steps, StepTransform } from '../universal-row/steps.ts';
import { backgroundWork, batchRequest, type PodAdmission } from '../contracts/pod-admission.ts';
import type { Engine } from '../engines/engine.ts';
import {
  CommandFlows,
  type CommandFlowRegistry,
  type Outcome,
  type TaskCostRow,
} from './flows/command-flows.ts';
import type { BackgroundWork, TableRows } from './background-work.ts';
import type { LogPins } from './backup/log-pins.ts';
import { isShadowTable } from './backup/shadow.ts';
import { type CheckpointStats, Checkpoints } from './checkpoints.ts';
import { type HeldTable, LongRun } from './long-run.ts';
import { LongRuns } from './long-runs.ts';
import type { ReplicatedLog } from './replicator/replicated-log.ts';
import { RowObservers } from './row-observers.ts';
import { TableHolds } from './table-holds.ts';
import { tableFreed, waitForTables } from './table-waits.ts';
import type { TableRulesByNumber } from './table-rules.ts';
import { everything, Transaction } from './transaction.ts';

export interface PodOptions {
  engine: Engine;
  log: ReplicatedLog;
  /** What of the log is kept for backups. */
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
  /** Told of what was done without being asked. */
  background?: BackgroundWork | undefined;
  /** Tasks to run around commands; none when left out. Later registrations are not seen. */
  flows?: CommandFlowRegistry | undefined;
  /** Schedules maintenance and the steps of long commands beside other tenants. */
  admission?: PodAdmission | undefined;
  /** Hears of maintenance that takes long. */
  steps?: StepWatcher | undefined;
}

/** See `Pod.parts`. */
export interface PodParts {
  readonly engine: Engine;
  readonly log: ReplicatedLog;
  readonly pins: LogPins | undefined;
  readonly background: BackgroundWork | undefined;
}

export interface PodStats extends CheckpointStats {
  expiredRows: number;
  internalErrors: number;
  readFaults: number;
  loadedEntries: number;
  /** Commands and transactions that took many steps, and their steps. */
  longCommands: number;
  longSteps: number;
}

// Rows whose expiry is due are dropped in slices this large, so that no other command waits for long.
const expirySlice = 200;
const backgroundBudgetMs = 1;
const expiryBudgetMs = 1;

// A transaction that takes longer goes on as a long command does.
const wholeTransactionMs = 1;
const bytesBetweenLooks = 64 * 1024;

/** What a pod does by itself in one go. */
const maintenance: StepSource = {
  stepInfo: () => ({ what: 'maintenance of rows', tenant: backgroundWork, bytes: 0 }),
};
const durableCheckMs = 20;

export class Pod implements Executor {
  readonly stats: PodStats = {
    expiredRows: 0,
    internalErrors: 0,
    readFaults: 0,
    checkpoints: 0,
    lastCheckpointMs: 0,
    lastCheckpointAt: 0,
    checkpointFailures: 0,
    loadedEntries: 0,
    longCommands: 0,
    longSteps: 0,
  };
  maxMemoryBytes: number;

  private readonly engine: Engine;
  private readonly log: ReplicatedLog;
  private readonly pins: LogPins | undefined;
  private readonly tables: TableRulesByNumber;
  private readonly clock: Clock;
  private readonly report: PodOptions['report'];
  private readonly background: BackgroundWork | undefined;
  private readonly tx: Transaction;
  private readonly observers = new RowObservers();
  /** Of commands that nobody charges, and of what happens by itself. */
  private readonly unclaimed = new RowWork();
  /** Tables yet to be looked through for rows that are due. */
  private expiring: number[] = [];
  /** Undefined when every flow is the standard one, which `execute` and `executeAll` are. */
  private readonly flows: CommandFlows | undefined;
  /** Rows may be on disk, and commands run again for them: from what of their work is then. */
  private readonly mayMiss: boolean;
  private readonly workBefore = new RowWork();
  private memoryFull = false;
  private turnNow = 0;
  private turnOpen = false;
  private readonly checkpoints: Checkpoints;
  private timer: NodeJS.Timeout | undefined;
  private readonly admission: PodAdmission | undefined;
  private readonly steps: StepWatcher | undefined;
  private tickWaits = false;
  private readonly tickRequest = batchRequest(backgroundWork, () => {
    this.tickWaits = false;
    if (this.timer !== undefined) this.tick();
  });
  private readonly holds = new TableHolds();
  private readonly runs = new LongRuns({
    holds: this.holds,
    failed: (run, error) => {
      run.reply.error(this.#errorText(run.commands[0]!, error));
      this.engine.resume?.(run.suspended);
      this.#commitRun(run);
    },
    ended: (run) => {
      this.stats.longSteps += run.steps;
      this.stats.readFaults += run.faults;
    },
  });
  private readonly rng: Rng;

  constructor(options: PodOptions) {
    this.engine = options.engine;
    this.mayMiss = options.engine.expectRows !== undefined;
    this.log = options.log;
    this.pins = options.pins;
    this.tables = options.tables;
    this.clock = options.clock;
    this.rng = options.rng;
    this.report = options.report;
    this.background = options.background;
    this.admission = options.admission;
    this.steps = options.steps;
    this.maxMemoryBytes = options.maxMemoryBytes;
    this.tx = new Transaction(options.engine, options.log.writer, options.tables, options.rng);
    this.tx.beforeTableChange = (tables) => this.#touchTables(tables, this.tx);
    this.checkpoints = new Checkpoints({
      engine: options.engine,
      log: options.log,
      clock: options.clock,
      everyBytes: options.checkpointBytes,
      stats: this.stats,
      report: options.report,
      ready: () => this.whole().then(() => this.isWhole),
      begun: () => this.#checkpointBegun(),
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

  /** Begins the work that happens by itself: expiry, reclaiming, checkpoints. */
  start(): void {
    this.timer = setInterval(() => this.#tickInTurn(), 50);
    this.timer.unref();
  }

  #tickInTurn(): void {
    if (this.tickWaits) return;
    const { admission, tickRequest } = this;
    const result = admission?.admit(tickRequest, this.clock.monotonic()) ?? 'admitted';
    if (result === 'admitted') this.tick();
    else this.tickWaits = true;
  }

  execute(command: Command, reply: Reply): MaybePromise<Reply | void> {
    if (this.holds.size !== 0) {
      const waits = this.#waitForTables([command], reply, (own) => this.execute(command, own));
      if (waits !== undefined) return waits;
    }
    const { flows } = this;
    if (flows !== undefined && flows.plans[command.action] !== undefined) {
      return flows.execute(command, reply);
    }
    const { tx, log } = this;
    const writing = isWrite(command.action);
    if (writing) {
      const refusal = this.refusal(command);
      if (refusal !== undefined) {
        reply.error(refusal);
        return;
      }
      if (this.engine.congested === true) {
        const again = (): MaybePromise<Reply | void> => this.execute(command, reply);
        // After a failure the command is refused for its reason.
        return this.engine.drained!().then(again, again);
      }
    }
    if (!this.turnOpen) this.#openTurn();
    const mark = reply.mark();
    log.begin();
    const logged = log.writer.pos;
    const work = (tx.work = command.work ?? this.unclaimed);
    if (this.mayMiss) this.workBefore.copy(work);
    let long: StepTransform | void = undefined;
    try {
      tx.begin(command.table, command.span, command.args, writing, this.turnNow, true);
      if (this.holds.size !== 0) this.#freeze(command.table);
      long = command.transform(tx, command.args, reply);
    } catch (error) {
      const failure = this.#recover(error, reply, mark, command);
      if (typeof failure !== 'string') return failure.then(() => this.execute(command, reply));
    }
    work.logBytes += log.writer.pos - logged;
    if (long !== undefined && log.writer.pos > logged) {
      // A script has written already: that becomes the beginning of the run.
      reply.rollback(mark);
      return this.#finish(this.#continueLong([command], 0, long, reply, mark, logged));
    }
    const index = log.end();
    if (index !== 0) this.#committed(index);
    if (long !== undefined) return this.#runLong([command], 0, long, reply, mark);
  }

  executeAll(
    commands: readonly Command[],
    reply: Reply,
    before: (reply: Reply) => boolean,
  ): MaybePromise<Reply | void> {
    if (this.holds.size !== 0) {
      const waits = this.#waitForTables(commands, reply, (own) =>
        this.executeAll(commands, own, before),
      );
      if (waits !== undefined) return waits;
    }
    if (this.flows !== undefined) return this.flows.executeAll(commands, reply, before);
    const wait = this.#attemptAll(commands, reply, before, undefined);
    if (wait instanceof LongRun) return this.#finish(wait);
    if (wait !== undefined) return wait.then(() => this.executeAll(commands, reply, before));
  }

  // ---- long commands

  /** What to wait for before the commands may run, if a long one holds a table of theirs. */
  #waitForTables(
    commands: readonly Command[],
    reply: Reply,
    then: (own: Reply) => MaybePromise<Reply | void>,
  ): Promise<Reply | void> | undefined {
    return waitForTables(this.holds, this.#tablesOf(commands), reply, then);
  }

  /** All tables of this pod that the commands may touch. */
  #tablesOf(commands: readonly Command[]): HeldTable[] {
    const found = new Map<number, boolean>();
    for (const { table, span, action, usesSpan } of commands) {
      const writing = isWrite(action);
      const first = usesSpan === true ? span.first : table;
      const end = usesSpan === true ? span.first + span.count : table + 1;
      for (let one = first; one < end; one++) {
        if (one !== table && this.tables.get(one) === undefined) continue;
        found.set(one, writing || found.get(one) === true);
      }
    }
    return Array.from(found, ([table, writing]) => ({ table, isWrite: writing }));
  }

  /** Rows of a table that a long command reads stay, expired or not. */
  #freeze(table: number): void {
    this.tx.frozen = this.writeFailure !== undefined || this.holds.isRead(table);
  }

  /** `commands` from the one at `from` on; what was answered since `mark` is taken along. */
  #newRun(
    commands: readonly Command[],
    from: number,
    form: StepTransform | undefined,
    reply: Reply,
    mark: number,
  ): LongRun {
    const { engine, admission, holds } = this;
    const held = this.#tablesOf(commands);
    const run: LongRun = new LongRun({
      engine,
      admission,
      commands,
      from,
      form,
      reply: reply.fork(mark),
      held,
      transaction: (writer) => {
        const tx = new Transaction(engine, writer, this.tables, this.rng);
        tx.beforeTableChange = (tables) => this.#touchTables(tables, tx);
        tx.now = this.turnNow;
        tx.observing = true;
        tx.work = this.unclaimed;
        return tx;
      },
      attempt: (command, tx, own) => {
        const refusal = isWrite(command.action) ? this.refusal(command) : undefined;
        if (refusal !== undefined) {
          own.error(refusal);
          return;
        }
        run.begin(command);
        return command.transform(tx, command.args, own);
      },
      complete: (done) => this.#commitRun(done),
      errorText: (command, error) => this.#errorText(command, error),
    });
    for (const { table, isWrite: writing } of held) holds.take(table, writing);
    return run;
  }

  #runLong(
    commands: readonly Command[],
    from: number,
    form: StepTransform,
    reply: Reply,
    mark: number,
  ): Promise<Reply> {
    reply.rollback(mark);
    return this.#finish(this.#newRun(commands, from, form, reply, mark));
  }

  #finish(run: LongRun): Promise<Reply> {
    this.stats.longCommands++;
    return this.runs.run(run);
  }

  /** What it wrote becomes one entry. */
  #commitRun({ tx, writer, commands }: LongRun): void {
    const { engine, log } = this;
    const bytes = writer.pos;
    this.tx.hits += tx.hits;
    this.tx.misses += tx.misses;
    this.tx.expiredRows += tx.expiredRows;
    if (bytes === 0) {
      engine.rollback();
      return;
    }
    if (!this.turnOpen) this.#openTurn();
    log.begin();
    log.writer.reserve(bytes);
    writer.buf.copy(log.writer.buf, log.writer.pos, 0, bytes);
    log.writer.pos += bytes;
    (commands[0]!.work ?? this.unclaimed).logBytes += bytes;
    const index = log.end();
    for (const touched of tx.touched) this.tx.touched.push(touched);
    this.tx.refresh();
    this.#committed(index);
  }

  /** Resolves in an instant in which no long command has written a part of what it writes. */
  whole(): Promise<void> {
    return this.runs.whole();
  }

  /** Long commands under way. */
  get longRuns(): number {
    return this.runs.size;
  }

  /** Commands that wait for tables that long ones hold. */
  get waitingCommands(): number {
    return this.holds.waiting;
  }

  /** Resolves when the long commands that are under way now have answered. */
  longRunsEnded(): Promise<void> {
    return this.runs.ended();
  }

  get isWhole(): boolean {
    return this.runs.isWhole;
  }

  /** `BarePath.attempt`; without flows nobody asks for outcomes. */
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
    const { tx, log } = this;
    if (!this.turnOpen) this.#openTurn();
    if (outcomes !== undefined) tx.observing = true;
    if (this.mayMiss) this.workBefore.copy(commands[0]?.work ?? this.unclaimed);
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
          return this.#continueLong(commands, i, undefined, reply, start, entryAt);
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
          // Who asks what became of each command is told the keys of each.
          const fresh = i === 0 || outcomes !== undefined;
          tx.work = command.work ?? this.unclaimed;
          tx.begin(command.table, command.span, command.args, writing, this.turnNow, fresh);
          if (this.holds.size !== 0) this.#freeze(command.table);
          const long = command.transform(tx, command.args, reply);
          if (long !== undefined) {
            reply.rollback(mark);
            if (outcomes === undefined) {
              return this.#continueLong(commands, i, long, reply, start, entryAt);
            }
            // Who asks for outcomes has the commands whole.
            runWhole(long(tx, command.args, reply));
          }
        } catch (thrown) {
          const failure = this.#recover(thrown, reply, mark, command);
          if (typeof failure !== 'string') {
            // What the commands before this one did is undone as well: all of them run again.
            reply.rollback(start);
            tx.observing = this.observers.size !== 0;
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
    const index = log.end();
    for (const outcome of outcomes ?? []) if (outcome!.index !== 0) outcome!.index = index;
    tx.observing = this.observers.size !== 0;
    if (index !== 0) this.#committed(index);
    return undefined;
  }

  /** A transaction comes to a long command, or has taken its time: what was done so far becomes the beginning of a run. */
  #continueLong(
    commands: readonly Command[],
    from: number,
    form: StepTransform | undefined,
    reply: Reply,
    start: number,
    entryAt: number,
  ): LongRun {
    const { log, tx, engine } = this;
    const run = this.#newRun(commands, from, form, reply, start);
    const bytes = log.writer.pos - entryAt;
    run.writer.reserve(bytes);
    log.writer.buf.copy(run.writer.buf, 0, entryAt, log.writer.pos);
    run.writer.pos = bytes;
    run.tx.touched.push(...tx.touched.splice(0));
    run.suspended = engine.suspend?.();
    log.abandon();
    return run;
  }

  /**
   * Answers the error of a command and returns it, or undoes everything and returns what to wait for
   * before it runs again. A command that failed after some writes keeps them: they are in the engine,
   * so they are logged, and the log and the engine stay the same.
   */
  #recover(error: unknown, reply: Reply, mark: number, command: Command): Promise<void> | string {
    reply.rollback(mark);
    if (error instanceof ReadFault) {
      this.stats.readFaults++;
      this.log.abandon();
      this.engine.rollback();
      this.tx.touched.length = 0;
      this.tx.refresh();
      this.tx.work.restart(this.workBefore);
      return error.ready;
    }
    const text = this.#errorText(command, error);
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
    const failure = this.log.failure ?? this.engine.failure;
    if (failure !== undefined) {
      return `MISCONF Errors writing to disk, so commands that may change data are refused: ${failure.message}`;
    }
    if (this.memoryFull && command.grows) {
      return "OOM command not allowed when used memory > 'maxmemory'.";
    }
    return undefined;
  }

  #openTurn(): void {
    this.turnOpen = true;
    this.turnNow = this.clock.now();
    this.tx.refresh();
    this.tx.frozen = this.log.failure !== undefined || this.engine.failure !== undefined;
  }

  #committed(index: number): void {
    this.engine.commit(index);
    if (this.tx.touched.length !== 0) this.#notify();
  }

  endTurn(): number {
    this.turnOpen = false;
    const position = this.log.endTurn();
    this.engine.endTurn();
    return position;
  }

  whenSafe(position: number, then: () => void): void {
    this.log.whenSafe(position, then);
  }

  // ---- observers

  observe(table: number, key: Buffer, observer: RowObserver): void {
    this.observers.add(table, key, observer);
    this.tx.observing = true;
    this.runs.observed(table, key);
  }

  unobserve(table: number, key: Buffer, observer: RowObserver): void {
    this.observers.remove(table, key, observer);
    this.tx.observing = this.observers.size !== 0;
  }

  #notify(): void {
    this.observers.notify(this.tx.touched.splice(0));
  }

  /**
   * A table is about to be emptied, or to change places with another: an observed key changes if it is
   * in one of them.
   */
  #touchTables(tables: readonly number[], tx: Transaction): void {
    if (this.observers.size === 0) return;
    for (const row of this.observers.in(new Set(tables))) {
      const { key } = row;
      if (tables.some((one) => this.engine.table(one).find(key, 0, key.length) !== 0)) {
        tx.touched.push(row);
      }
    }
  }

  // ---- what happens by itself

  /** One round of upkeep: expiry, freeing, the memory limit, and a checkpoint when one is due. */
  tick(): void {
    const startedAt = this.clock.monotonic();
    this.#expire();
    // One opened here, or by a command whose client has gone: nobody else would end it, and its moment
    // would stay `now` for commands to come.
    if (this.turnOpen) this.endTurn();
    this.engine.background(backgroundBudgetMs);
    this.unclaimed.reset();
    if (this.maxMemoryBytes !== Infinity) {
      this.memoryFull = this.engine.stats().usedBytes > this.maxMemoryBytes;
    }
    this.checkpoints.makeIfDue();
    this.steps?.ended(startedAt, this.clock.monotonic(), maintenance);
  }

  #expire(): void {
    if (this.log.failure !== undefined || this.engine.failure !== undefined) return;
    const deadline = performance.now() + expiryBudgetMs;
    if (this.expiring.length === 0) this.expiring = this.engine.tables();
    // Where there are thousands of tables, a round takes several ticks.
    for (let left = this.expiring.length; left > 0; left--) {
      const table = this.expiring.pop()!;
      // A restore has what it is comparing stay as it is.
      if (isShadowTable(table) || this.tables.get(table) === undefined) continue;
      if (this.holds.isHeld(table)) continue;
      while (this.engine.table(table).expiringRows !== 0) {
        const dropped = this.#expireSlice(table);
        if (dropped < expirySlice || performance.now() > deadline) break;
      }
      if ((left & 63) === 0 && performance.now() > deadline) return;
    }
  }

  #expireSlice(table: number): number {
    const { tx } = this;
    const before = tx.expiredRows;
    const logBytes = this.#changeTable(table, () => tx.dropExpiredRows(expirySlice));
    if (logBytes instanceof ReadFault) {
      // The rows due are being read: the next round meets them in memory.
      tx.expiredRows = before;
      logBytes.ready.catch((reason: unknown) => {
        this.report('error', 'reading expired rows failed', { err: reason });
      });
      return 0;
    }
    const dropped = tx.expiredRows - before;
    if (dropped > 0) this.background?.expired(table, dropped, logBytes);
    return dropped;
  }

  /** A change that no client asked for. Returns its bytes in the log, or the fault after which it is to be tried again. */
  #changeTable(table: number, change: () => void): number | ReadFault {
    const { tx, log } = this;
    if (!this.turnOpen) this.#openTurn();
    log.begin();
    const logged = log.writer.pos;
    tx.work = this.unclaimed;
    try {
      tx.begin(table, everything, undefined, false, this.turnNow, true);
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
    if (index !== 0) this.#committed(index);
    return logBytes;
  }

  /**
   * Removes all rows of these tables, whatever their rules say, and resolves once that is as safe on disk as
   * the policy ever makes it. Nobody may write to them any more.
   */
  async dropTables(span: TableSpan): Promise<void> {
    const end = span.first + span.count;
    for (const table of this.engine.tables()) {
      if (table < span.first || table >= end) continue;
      for (;;) {
        await tableFreed(this.holds, table);
        const waits = this.#clearTable(table);
        if (waits === undefined) break;
        await waits;
      }
    }
    const position = this.endTurn();
    if (position >= 0) await new Promise<void>((resolve) => this.whenSafe(position, resolve));
    const { appendedLsn } = this.log.status();
    while (this.log.fsyncPolicy !== 'no' && this.log.status().durableLsn < appendedLsn) {
      if (this.writeFailure !== undefined) throw this.writeFailure;
      await new Promise((resolve) => setTimeout(resolve, durableCheckMs));
    }
    for (let table = span.first; table < end; table++) this.engine.forget?.(table);
    this.tx.refresh();
  }

  /** What to wait for before trying again, if the engine has to read something first. */
  #clearTable(table: number): Promise<void> | undefined {
    if (this.writeFailure !== undefined) throw this.writeFailure;
    if (this.engine.congested === true) return this.engine.drained!();
    const fault = this.#changeTable(table, () => this.tx.clear());
    return fault instanceof ReadFault ? fault.ready : undefined;
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

  /** What the tasks of flows, and the commands they surround, have cost. */
  taskCosts(): TaskCostRow[] {
    return this.flows?.costs() ?? [];
  }

  get writeFailure(): Error | undefined {
    return this.log.failure ?? this.engine.failure;
  }

  engineStats(): ReturnType<Engine['stats']> {
    return this.engine.stats();
  }

  logStatus(): ReturnType<ReplicatedLog['status']> {
    return this.log.status();
  }

  setFsync(policy: ReplicatedLog['fsyncPolicy']): void {
    this.log.fsyncPolicy = policy;
  }

  /** What backups and restores work on, beside the commands: whoever touches it ends the turn first. */
  get parts(): PodParts {
    const { engine, log, pins, background } = this;
    return { engine, log, pins, background };
  }

  /** Tables change places, all of them in the same instant. */
  swapTables(pairs: readonly (readonly [number, number])[]): void {
    if (this.writeFailure !== undefined) throw this.writeFailure;
    this.endTurn();
    // Whether a key is in them need not be looked up: its observers look again.
    this.tx.touched.push(...this.observers.in(new Set(pairs.flat())));
    this.log.begin();
    for (const [a, b] of pairs) {
      this.log.writer.swap(a, b);
      this.engine.swapTables(a, b);
    }
    const index = this.log.end();
    if (index !== 0) this.#committed(index);
    this.endTurn();
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
    clearInterval(this.timer);
    this.timer = undefined;
    this.runs.abandon();
    await this.longRunsEnded();
    await this.checkpoints.running;
    this.endTurn();
    await this.log.close();
    await this.engine.close();
  }
}

/** In one go. What is not in memory makes all of it run again. */
function runWhole(steps: Steps): void {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return;
    if (value !== undefined) throw value;
  }
}
