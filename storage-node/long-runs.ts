// The long commands of a pod that are running, and the tables that they hold.

import type { Reply } from '../universal-row/reply.ts';
import type { ChangeListener } from '../universal-row/row-change.ts';
import { outcomeUnknown } from '../universal-row/errors.ts';
import type { LongRun } from './long-run.ts';
import type { TableHolds } from './table-holds.ts';

interface LongRunsOptions {
  holds: TableHolds;
  /** Reading failed permanently: earlier writes go into the log. */
  failed: (run: LongRun, error: unknown) => void;
  ended: (run: LongRun) => void;
}

export class LongRuns {
  readonly #options: LongRunsOptions;
  readonly #runs = new Map<LongRun, Promise<unknown>>();
  /** All are to end; rows may be left as one was about to change them. */
  #isAbandoned = false;

  constructor(options: LongRunsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#runs.size;
  }

  /** Runs it, with the tables that it holds already. */
  run(run: LongRun): Promise<Reply> {
    const timer = this.#refuseLater(run);
    const done = this.#drive(run).finally(() => {
      clearTimeout(timer);
      this.#runs.delete(run);
      // Leftovers of an abandoned run are not visible to readers.
      if (this.#isAbandoned) return;
      for (const { table, isWrite } of run.held) this.#options.holds.release(table, isWrite);
    });
    this.#runs.set(run, done);
    return done;
  }

  /** When a run takes longer than `busy.afterMs`, commands that wait for its tables get the busy reply. */
  #refuseLater({ commands, held }: LongRun): NodeJS.Timeout | undefined {
    const busy = commands.find(({ transform }) => transform.busy !== undefined)?.transform.busy;
    if (busy === undefined || busy.afterMs === Infinity) return undefined;
    const refuse = (): void => {
      for (const { table } of held) this.#options.holds.refuse(table, busy.text);
    };
    return setTimeout(refuse, busy.afterMs).unref();
  }

  async #drive(run: LongRun): Promise<Reply> {
    try {
      await run.run();
    } catch (error) {
      this.#options.failed(run, error);
    }
    this.#options.ended(run);
    if (run.isGivenUp || (run.isMovingOn && run.wasDropped)) {
      run.reply.rollback(0);
      run.reply.error(outcomeUnknown);
      if (run.wasDropped) run.commands[0]!.notRun = { why: 'notLeader', leader: 0 };
    }
    return run.reply;
  }

  /** A row is now observed. Runs that write its table may have changed the row without reporting it yet. */
  observed(table: number, key: Buffer): void {
    for (const [run] of this.#runs) {
      if (run.held.some((one) => one.isWrite && one.table === table)) {
        run.tx.touched.push({ table, key, change: 0, by: undefined });
      }
    }
  }

  /** All changes are followed from now on, or no more. */
  follow(listener: ChangeListener | undefined): void {
    for (const [run] of this.#runs) run.tx.listener = listener;
  }

  /** The pod is being closed. */
  get isAbandoned(): boolean {
    return this.#isAbandoned;
  }

  /** Whether no long command is halfway through its writes. */
  get isWhole(): boolean {
    if (this.#isAbandoned) return false;
    for (const [run] of this.#runs) if (run.isWriting) return false;
    return true;
  }

  /** Resolves at a moment when `isWhole` holds, or when the writing runs were abandoned. */
  async whole(): Promise<void> {
    for (;;) {
      const writing = [...this.#runs].filter(([run]) => run.isWriting);
      if (writing.length === 0) return;
      await Promise.allSettled(writing.map(([, done]) => done));
    }
  }

  /** Resolves when those that are running now have answered. */
  async ended(): Promise<void> {
    await Promise.allSettled(this.#runs.values());
  }

  /**
   * The rows that the runs have read are undone. The runs stop at their next step, with an error. Resolves when all
   * have ended.
   */
  giveUp(): Promise<void> | undefined {
    if (this.#runs.size === 0) return undefined;
    for (const [run] of this.#runs) {
      run.isAbandoned = true;
      run.isGivenUp = true;
    }
    return this.ended();
  }

  /** Runs stop at their next step and are undone, to run again at the next leader. Completed runs stand. */
  moveOn(): Promise<void> | undefined {
    if (this.#runs.size === 0) return undefined;
    for (const [run] of this.#runs) {
      run.isAbandoned = true;
      run.isMovingOn = true;
    }
    return this.ended();
  }

  /**
   * The pod closes: runs stop at their next step, without an answer. A run that writes has nothing in the log, so the
   * next start finds the rows as they were before it.
   */
  abandon(): void {
    this.#isAbandoned = true;
    for (const [run] of this.#runs) run.isAbandoned = true;
  }
}
