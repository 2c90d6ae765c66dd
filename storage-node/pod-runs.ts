// Long commands of a pod: the tables that they hold while they run a step at a time, how a command becomes one, and the
// log entry at their end.

import { isWrite, type Command } from '../universal-row/command.ts';
import type { Refusable } from '../universal-row/executor.ts';
import type { MaybePromise } from '../universal-row/maybe-promise.ts';
import { isNumbered, refuse } from '../universal-row/once.ts';
import type { Reply } from '../universal-row/reply.ts';
import type { StepTransform } from '../universal-row/steps.ts';
import type { PodAdmission } from '../contracts/pod-admission.ts';
import { type HeldTable, LongRun } from './long-run.ts';
import { LongRuns } from './long-runs.ts';
import type { PodLoad } from './pod-load.ts';
import type { PodOptions } from './pod-options.ts';
import type { PodTick } from './pod-tick.ts';
import type { PartitionLog } from './replicator/partition-log.ts';
import { TableHolds } from './table-holds.ts';
import type { TableRulesByNumber } from './table-rules.ts';
import { waitForTables } from './table-waits.ts';

interface PodRunsOptions {
  log: PartitionLog;
  tables: TableRulesByNumber;
  admission: PodAdmission | undefined;
  stats: { longCommands: number; longSteps: number; readFaults: number };
  /** Parts of the pod that are made after this one. */
  tick: () => PodTick;
  load: () => PodLoad | undefined;
  beforeLargeEntry: PodOptions['beforeLargeEntry'];
  refusal: (command: Refusable) => string | undefined;
  errorText: (command: Command, error: unknown) => string;
}

export class PodRuns {
  readonly holds = new TableHolds();
  readonly runs: LongRuns;
  readonly #options: PodRunsOptions;

  constructor(options: PodRunsOptions) {
    this.#options = options;
    this.runs = new LongRuns({
      holds: this.holds,
      failed: (run, error) => {
        run.reply.error(options.errorText(run.commands[0]!, error));
        options.tick().engine.resume?.(run.suspended);
        this.#commit(run);
      },
      ended: (run) => {
        const work = run.commands[0]!.work ?? options.tick().unclaimed;
        if (run.workBefore !== undefined) {
          options.load()!.endLong(run.workBefore, work, run.reply.mark());
        }
        options.stats.longSteps += run.steps;
        options.stats.readFaults += run.faults;
      },
    });
  }

  /** Promise to wait for before the commands may run, if a long command holds a table of theirs. */
  wait(
    commands: readonly Command[],
    reply: Reply,
    then: (own: Reply) => MaybePromise<Reply | void>,
  ): Promise<Reply | void> | undefined {
    return waitForTables(this.holds, this.tablesOf(commands), reply, then);
  }

  /** All tables of this pod that the commands may touch. */
  tablesOf(commands: readonly Command[]): HeldTable[] {
    const found = new Map<number, boolean>();
    for (const { table, span, action, usesSpan } of commands) {
      const writing = isWrite(action);
      const first = usesSpan === true ? span.first : table;
      const end = usesSpan === true ? span.first + span.count : table + 1;
      for (let one = first; one < end; one++) {
        if (one !== table && this.#options.tables.get(one) === undefined) continue;
        found.set(one, writing || found.get(one) === true);
      }
    }
    return Array.from(found, ([table, writing]) => ({ table, isWrite: writing }));
  }

  /** Runs `commands` from index `from` on; replies since `mark` are moved along. */
  #newRun(
    commands: readonly Command[],
    from: number,
    form: StepTransform | undefined,
    reply: Reply,
    mark: number,
  ): LongRun {
    const { admission, refusal: refusalOf, errorText, tick: turnOf, load } = this.#options;
    const tick = turnOf();
    const { engine } = tick;
    const held = this.tablesOf(commands);
    const run: LongRun = new LongRun({
      engine,
      admission,
      commands,
      from,
      form,
      reply: reply.fork(mark),
      held,
      transaction: (writer) => tick.newTransaction(writer, commands[0]!.client ?? 0),
      attempt: (command, tx, own) => {
        const refusal = isWrite(command.action) ? refusalOf(command) : undefined;
        if (refusal !== undefined && !isNumbered(command.transform)) {
          own.error(refusal);
          return;
        }
        if (refusal !== undefined) {
          run.begin(command, false);
          refuse(command.transform, tx, own, refusal);
          return;
        }
        run.begin(command);
        return command.transform(tx, command.args, own);
      },
      ready: () => tick.ahead?.moving,
      beforeLargeEntry: this.#options.beforeLargeEntry,
      complete: (done) => this.#commit(done),
      maxBytes: this.#options.log.maxWriteBytes ?? Infinity,
      errorText,
    });
    run.workBefore = load()?.beginLong();
    for (const { table, isWrite: writing } of held) this.holds.take(table, writing);
    return run;
  }

  /** Runs a command that has just returned its long form. */
  start(
    commands: readonly Command[],
    from: number,
    form: StepTransform,
    reply: Reply,
    mark: number,
  ): Promise<Reply> {
    reply.rollback(mark);
    return this.finish(this.#newRun(commands, from, form, reply, mark));
  }

  /** Resolves with the replies. */
  finish(run: LongRun): Promise<Reply> {
    this.#options.stats.longCommands++;
    return this.runs.run(run);
  }

  /** Commits the run's writes as one entry. */
  #commit({ tx, writer, commands, logBytes: bytes }: LongRun): void {
    const { log } = this.#options;
    const tick = this.#options.tick();
    const { engine, tx: own } = tick;
    own.hits += tx.hits;
    own.misses += tx.misses;
    own.expiredRows += tx.expiredRows;
    if (bytes === 0) {
      engine.rollback();
      return;
    }
    if (!tick.isOpen) tick.open();
    log.begin();
    log.adopt(writer);
    (commands[0]!.work ?? tick.unclaimed).logBytes += bytes;
    const index = log.end();
    for (const touched of tx.touched) own.touched.push(touched);
    own.refresh();
    tick.committed(index);
    tick.endIfFull();
  }

  /**
   * A transaction reaches a long command, or has used its time: its work so far becomes the
   * beginning of a run.
   */
  continue(
    commands: readonly Command[],
    from: number,
    form: StepTransform | undefined,
    reply: Reply,
    start: number,
    entryAt: number,
  ): LongRun {
    const { log } = this.#options;
    const { tx, engine } = this.#options.tick();
    const run = this.#newRun(commands, from, form, reply, start);
    run.writer.append(log.writer, entryAt);
    run.tx.touched.push(...tx.touched.splice(0));
    run.suspended = engine.suspend?.();
    log.abandon();
    return run;
  }
}
