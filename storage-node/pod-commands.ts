// How a pod runs commands: one at a time, each whole. One that is long holds its tables instead, and takes the
// thread for a step at a time (long-run.ts).

import { assert } from '../universal-row/assert.ts';
import { isWrite, type Command } from '../universal-row/command.ts';
import type { Clock } from '../universal-row/environment.ts';
import { CommandError, ReadFault } from '../universal-row/errors.ts';
import type { Refusable } from '../universal-row/executor.ts';
import type { MaybePromise } from '../universal-row/maybe-promise.ts';
import { isNumbered, refuse } from '../universal-row/once.ts';
import type { Reply } from '../universal-row/reply.ts';
import { RowWork } from '../universal-row/row-work.ts';
import type { Steps, StepTransform } from '../universal-row/steps.ts';
import { type Engine, engineClosed } from '../engines/engine.ts';
import { CommandFlows, type CommandFlowRegistry, type Outcome } from './flows/command-flows.ts';
import { LongRun } from './long-run.ts';
import { PartitionGuard, whileShut } from './partition-guard.ts';
import { PodLoad } from './pod-load.ts';
import { PodMemory } from './pod-memory.ts';
import type { PodOptions, PodStats } from './pod-options.ts';
import { PodRuns } from './pod-runs.ts';
import { PodTick } from './pod-tick.ts';
import type { Replica } from './replica.ts';
import { type PartitionLog, tooLargeText } from './replicator/partition-log.ts';
import type { TableHolds } from './table-holds.ts';
import type { TableRulesByNumber } from './table-rules.ts';
import type { Transaction } from './transaction.ts';

// A transaction that takes longer continues as a long command.
const wholeTransactionMs = 1;
const bytesBetweenLooks = 64 * 1024;

/** The part of `Pod` that runs commands. */
export abstract class PodCommands {
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

  /** Load of a replica; undefined for a single pod. */
  readonly load: PodLoad | undefined;
  protected readonly tick: PodTick;
  protected readonly memory: PodMemory;
  protected readonly engine: Engine;
  protected readonly log: PartitionLog;
  protected readonly replica: Replica | undefined;
  protected readonly clock: Clock;
  protected readonly tx: Transaction;
  protected readonly holds: TableHolds;
  protected readonly longs: PodRuns;
  /** Undefined when every flow is the standard one, which `execute` and `executeAll` are. */
  protected readonly flows: CommandFlows | undefined;
  protected isClosed = false;
  readonly #tables: TableRulesByNumber;
  readonly #report: PodOptions['report'];
  /**
   * Whether rows may be on disk, so that commands may run again; the position in their work to
   * restart from is then kept.
   */
  readonly #mayMiss: boolean;
  readonly #workBefore = new RowWork();
  readonly #maxWriteBytes: number;
  readonly #guard: PartitionGuard;

  constructor(options: PodOptions) {
    const checkpoint = (): void => void this.checkpoint();
    this.longs = new PodRuns({
      ...{ log: options.log, tables: options.tables, admission: options.admission },
      ...{ stats: this.stats, tick: () => this.tick, load: () => this.load },
      beforeLargeEntry: options.beforeLargeEntry,
      refusal: (command) => this.refusal(command),
      errorText: (command, error) => this.#errorText(command, error),
    });
    this.holds = this.longs.holds;
    const { runs } = this.longs;
    this.tick = new PodTick({ ...options, group: options.group, runs, checkpoint });
    this.#guard = new PartitionGuard(this.tick, options.tables);
    this.engine = this.tick.engine;
    this.replica = this.tick.replica;
    this.load = this.replica && new PodLoad();
    this.tx = this.tick.tx;
    this.#mayMiss = options.engine.expectRows !== undefined;
    this.log = options.log;
    this.#maxWriteBytes = options.log.maxWriteBytes ?? Infinity;
    this.#tables = options.tables;
    this.clock = options.clock;
    this.#report = options.report;
    this.memory = new PodMemory({ ...options, tick: this.tick, holds: this.holds });
    this.flows = options.flows && this.#flowsOf(options.flows);
  }

  /** Makes a checkpoint and releases the log before it; one at a time. */
  abstract checkpoint(): Promise<void>;

  execute(command: Command, reply: Reply): MaybePromise<Reply | void> {
    if (this.replica?.isShut === true) {
      return whileShut(this.replica, command, reply, (own) => this.execute(command, own));
    }
    if (this.tick.marks?.mayShut(command) === true) {
      const tables = this.longs.tablesOf([command]);
      const shut = this.#guard.ifShut(tables, [command], reply, (own) =>
        this.execute(command, own),
      );
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
    const { tx, log, tick } = this;
    let writing = isWrite(command.action);
    if (this.memory.evictor !== undefined) this.memory.makeRoom(command);
    let refusal: string | undefined;
    if (writing) {
      refusal = this.refusal(command);
      if (refusal !== undefined) {
        if (!isNumbered(command.transform)) {
          reply.error(refusal);
          return;
        }
        // It may have been done before: its record is looked up, and nothing is written.
        writing = false;
      } else if (this.engine.congested === true) {
        return this.#whenDrained(reply, (own) => this.execute(command, own));
      }
    }
    if (!tick.isOpen) tick.open();
    const mark = reply.mark();
    log.begin();
    const logged = log.writer.pos;
    const work = (tx.work = command.work ?? tick.unclaimed);
    tx.client = command.client ?? 0;
    this.load?.begin(work);
    if (this.#mayMiss) this.#workBefore.copy(work);
    let long: StepTransform | void = undefined;
    try {
      tx.begin(command.table, command.span, command.args, writing, tick.now, true);
      if (this.holds.size !== 0 || this.tick.keepsExpired) this.#freeze(command.table, writing);
      if (refusal === undefined) long = command.transform(tx, command.args, reply);
      else refuse(command.transform, tx, reply, refusal);
    } catch (error) {
      const failure = this.#recover(error, reply, mark, command);
      if (typeof failure !== 'string') {
        return this.#whenRead(failure, command, reply, () => this.execute(command, reply));
      }
    }
    const isFull = log.writer.pos > tick.fullAt;
    if (isFull && log.writer.pos - logged > this.#maxWriteBytes) {
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
    if (index !== 0) tick.committed(index);
    else if (tx.touched.length !== 0) tick.notify();
    if (isFull) tick.end();
    if (long !== undefined) return this.longs.start([command], 0, long, reply, mark);
    this.load?.end(work, reply.mark() - mark);
  }

  read(command: Command, reply: Reply): MaybePromise<Reply | void> {
    const { replica, tx } = this;
    if (replica?.mayRead !== true) {
      command.notRun = replica?.notRun;
      return;
    }
    const whole = this.#guard.mayRead(command);
    if (whole instanceof Promise) return whole.then(() => this.read(command, reply));
    if (!whole) {
      command.notRun = replica.notRun;
      return;
    }
    const mark = reply.mark();
    tx.work = command.work ?? this.tick.unclaimed;
    this.load?.begin(tx.work);
    if (this.#mayMiss) this.#workBefore.copy(tx.work);
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
    if (this.tick.marks?.isAny === true) {
      const shut = this.#guard.ifShut(this.longs.tablesOf(commands), commands, reply, (own) =>
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

  /** Runs commands later, with a reply of their own, because other commands may share the original one. */
  async #whenDrained(
    reply: Reply,
    then: (own: Reply) => MaybePromise<Reply | void>,
  ): Promise<Reply> {
    const own = reply.fork(reply.mark());
    // After a failure they are refused for its reason.
    await this.engine.drained!().catch(() => {});
    return (await then(own)) ?? own;
  }

  /** Runs commands again once the missing records are loaded, unless this pod is closed by then. */
  #whenRead(
    ready: Promise<void>,
    first: Command | undefined,
    reply: Reply,
    again: () => MaybePromise<Reply | void>,
  ): Promise<Reply | void> {
    return ready.then(
      () => (this.isClosed ? this.#refuseClosed(first, reply) : again()),
      (error: unknown) => {
        if (!this.isClosed) throw error;
        this.#refuseClosed(first, reply);
      },
    );
  }

  #refuseClosed(first: Command | undefined, reply: Reply): undefined {
    reply.error(engineClosed.message);
    if (first !== undefined) first.notRun = { why: 'notLeader', leader: 0 };
  }

  /**
   * A table that a long command reads keeps its rows, expired or not. Reads drop no expired rows while `keepsExpired`
   * is set.
   */
  #freeze(table: number, writing: boolean): void {
    const keeps = this.tick.keepsExpired && !writing;
    this.tx.frozen = this.writeFailure !== undefined || keeps || this.holds.isRead(table);
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
    const { tx, log, tick } = this;
    if (!tick.isOpen) tick.open();
    if (outcomes !== undefined) tx.observing = true;
    const work = commands[0]?.work ?? tick.unclaimed;
    this.load?.begin(work);
    if (this.#mayMiss) this.#workBefore.copy(work);
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
      let writing = isWrite(command.action);
      let kind: Outcome['kind'] = 'refused';
      let error = outcomes?.[i]?.error ?? (writing ? this.refusal(command) : undefined);
      if (error !== undefined) writing = false;
      if (error !== undefined && !isNumbered(command.transform)) {
        reply.error(error);
      } else {
        if (error === undefined) kind = 'done';
        try {
          // Each command's outcome includes its own keys.
          const fresh = i === 0 || outcomes !== undefined;
          tx.work = command.work ?? tick.unclaimed;
          tx.client = command.client ?? 0;
          tx.begin(command.table, command.span, command.args, writing, tick.now, fresh);
          if (this.holds.size !== 0 || this.tick.keepsExpired) this.#freeze(command.table, writing);
          let long: StepTransform | void = undefined;
          if (error === undefined) long = command.transform(tx, command.args, reply);
          else if (!refuse(command.transform, tx, reply, error)) {
            kind = 'done';
            error = undefined;
          }
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
            tx.observing = tick.isObserved;
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
    const isFull = log.writer.pos > tick.fullAt;
    if (isFull && log.writer.pos - entryAt > this.#maxWriteBytes) {
      const error = this.#refuseLarge(reply, start, commands[0]!);
      outcomes?.fill({ kind: 'refused', error, index: 0, touched: [] });
      tx.observing = tick.isObserved;
      this.load?.end(work, reply.mark() - start, commands.length);
      return undefined;
    }
    const index = log.end();
    for (const outcome of outcomes ?? []) if (outcome!.index !== 0) outcome!.index = index;
    tx.observing = tick.isObserved;
    if (index !== 0) tick.committed(index);
    else if (tick.listener !== undefined) tick.notify();
    if (isFull) tick.end();
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
      this.tx.work.restart(this.#workBefore);
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
    const text = `ERR ${tooLargeText(this.#maxWriteBytes)}`;
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
    this.#report('error', what, { err: error });
    return 'ERR internal error';
  }

  refusal(command: Refusable): string | undefined {
    const rules = this.#tables.get(command.table);
    if (rules !== undefined) {
      if (rules.readOnly) return "READONLY You can't write against a read only table.";
      if (rules.quota !== undefined && command.grows) {
        const full = rules.quota.refusal();
        if (full !== undefined) return full;
      }
    }
    const failure = this.tick.writeFailure;
    if (failure !== undefined) {
      return `MISCONF Errors writing to disk, so commands that may change data are refused: ${failure.message}`;
    }
    if (this.memory.isFull && command.grows) {
      return "OOM command not allowed when used memory > 'maxmemory'.";
    }
    return undefined;
  }

  #flowsOf(registry: CommandFlowRegistry): CommandFlows | undefined {
    const flows = new CommandFlows(registry, this.engine.model, this.clock, {
      attempt: (commands, reply, before, outcomes) => {
        if (this.isClosed) return this.#refuseClosed(commands[0], reply);
        const shut = this.#guard.ifShutBetween(this.longs, commands, reply);
        if (shut !== false) return shut;
        const waits = this.#attemptAll(commands, reply, before, outcomes);
        assert(!(waits instanceof LongRun), 'commands with outcomes are run whole');
        return waits;
      },
      internalError: (what, error) => this.#internalError(what, error),
    });
    return flows.isStandard ? undefined : flows;
  }

  get writeFailure(): Error | undefined {
    return this.tick.writeFailure;
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
