// Commands that take many steps: one that turned out to be long, or a transaction with one in it. A
// run has a transaction and a record batch of its own, so that others are executed between its
// steps. Its writes become one log entry at its end.

import { isWrite, type Command } from '../universal-row/command.ts';
import { ReadFault } from '../universal-row/errors.ts';
import { RecordBatchWriter } from '../universal-row/record-batch.ts';
import type { Reply } from '../universal-row/reply.ts';
import type { RowWork } from '../universal-row/row-work.ts';
import type { Steps, StepTransform } from '../universal-row/steps.ts';
import { TimeSlice, type PodAdmission } from '../contracts/pod-admission.ts';
import type { Engine, SuspendedEntry } from '../engines/engine.ts';
import { largeEntryBytes, opsRoomBytes, tooLargeText } from './replicator/partition-log.ts';
import type { Transaction } from './transaction.ts';

/** Time slice in milliseconds before other work has the thread, where no demand for it is known. */
const sliceMs = 1;

export interface HeldTable {
  readonly table: number;
  readonly isWrite: boolean;
}

interface LongRunOptions {
  readonly engine: Engine;
  readonly admission: PodAdmission | undefined;
  readonly commands: readonly Command[];
  /** Those before it have been run. */
  readonly from: number;
  /** The long form of that one, where it is known. */
  readonly form: StepTransform | undefined;
  /** The answer so far. */
  readonly reply: Reply;
  readonly held: readonly HeldTable[];
  readonly transaction: (writer: RecordBatchWriter) => Transaction;
  /** Promise to wait for before rows may be accessed. */
  readonly ready: () => Promise<void> | undefined;
  /** Runs the command in the transaction, up to its long form if it has one. Throws. */
  readonly attempt: (command: Command, tx: Transaction, reply: Reply) => StepTransform | void;
  /** Called before `complete`, where the run has written much; the engine's entry is put aside. */
  readonly beforeLargeEntry: (() => void) | undefined;
  /** Called in the instant in which the last step is done, with the engine's entry open. */
  readonly complete: (run: LongRun) => void;
  /** A run that writes more is undone, and answered with an error. */
  readonly maxBytes: number;
  /** The text to answer a failure with. */
  readonly errorText: (command: Command, error: unknown) => string;
}

export class LongRun {
  readonly tx: Transaction;
  readonly writer = new RecordBatchWriter();
  readonly reply: Reply;
  readonly held: readonly HeldTable[];
  readonly isWriting: boolean;
  /** State that the engine put aside between two steps. */
  suspended: SuspendedEntry | undefined;
  /** The run must end in its current state: its writes will not be logged. */
  isAbandoned = false;
  /** The run then answers with an error. */
  isGivenUp = false;
  /** Another replica is to run it. */
  isMovingOn = false;
  /** The run ended early, and none of its writes are in the log. */
  wasDropped = false;
  steps = 0;
  faults = 0;
  /**
   * Work of its commands, excluding earlier commands counted in the same object; kept by the pod.
   */
  workBefore: RowWork | undefined;
  readonly #options: LongRunOptions;

  constructor(options: LongRunOptions) {
    this.#options = options;
    this.reply = options.reply;
    this.held = options.held;
    this.isWriting = options.held.some((one) => one.isWrite);
    this.writer.pos = opsRoomBytes;
    this.tx = options.transaction(this.writer);
  }

  /** Size of its writes. */
  get logBytes(): number {
    return this.writer.pos - opsRoomBytes;
  }

  get commands(): readonly Command[] {
    return this.#options.commands;
  }

  /** Resolves when the run is complete, or abandoned because its client is gone. */
  async run(): Promise<void> {
    const { engine, admission, commands, complete, ready, maxBytes } = this.#options;
    const { tx } = this;
    const first = commands[0]!;
    const steps = this.#all();
    // The caller copies its arguments to memory of their own once `execute` has returned.
    await new Promise(setImmediate);
    const slice = new TimeSlice(
      first.tenant === undefined ? undefined : admission,
      first.tenant ?? 0,
      sliceMs,
    );
    for (;;) {
      for (let busy = ready(); busy !== undefined; busy = ready()) await busy;
      if (this.isAbandoned || this.#isUnwanted()) {
        this.wasDropped = true;
        steps.return();
        engine.resume?.(this.suspended);
        this.suspended = undefined;
        engine.rollback();
        return;
      }
      engine.resume?.(this.suspended);
      this.suspended = undefined;
      tx.refresh();
      let fault: ReadFault | undefined;
      for (;;) {
        const savepoint = engine.savepoint?.();
        const logged = this.writer.pos;
        const touched = tx.touched.length;
        const answered = this.reply.mark();
        const next = steps.next();
        this.steps++;
        if (this.logBytes > maxBytes) {
          steps.return();
          engine.rollback();
          first.isUndone = true;
          this.reply.rollback(0);
          this.reply.error(`ERR ${tooLargeText(maxBytes)}`);
          return;
        }
        if (next.done === true) {
          if (this.logBytes >= largeEntryBytes) this.#endTick();
          complete(this);
          return;
        }
        fault = next.value;
        if (fault !== undefined) {
          this.faults++;
          if (savepoint !== undefined) engine.rollbackTo!(savepoint);
          this.writer.pos = logged;
          tx.touched.length = touched;
          this.reply.rollback(answered);
          tx.refresh();
          break;
        }
        if (slice.isOver) break;
      }
      this.suspended = engine.suspend?.();
      if (fault !== undefined) {
        await fault.ready;
        slice.restart();
      } else await slice.yield();
    }
  }

  #endTick(): void {
    const { engine, beforeLargeEntry } = this.#options;
    this.suspended = engine.suspend?.();
    beforeLargeEntry?.();
    engine.resume?.(this.suspended);
    this.suspended = undefined;
    this.tx.refresh();
  }

  /** The run only reads, and its client is gone. */
  #isUnwanted(): boolean {
    return !this.isWriting && this.#options.commands[0]!.isAbandoned === true;
  }

  *#all(): Steps {
    const { commands, from, form, errorText } = this.#options;
    for (let i = from; i < commands.length; i++) {
      const command = commands[i]!;
      yield;
      const mark = this.reply.mark();
      try {
        yield* this.#one(command, i === from ? form : undefined);
      } catch (error) {
        this.reply.rollback(mark);
        this.reply.error(errorText(command, error));
      }
    }
  }

  *#one(command: Command, known: StepTransform | undefined): Steps {
    const { attempt } = this.#options;
    const { reply, tx } = this;
    let form = known;
    while (form === undefined) {
      try {
        const mark = reply.mark();
        const found = attempt(command, tx, reply);
        if (found === undefined) return;
        reply.rollback(mark);
        form = found;
      } catch (error) {
        if (!(error instanceof ReadFault)) throw error;
        yield error;
      }
    }
    const mark = reply.mark();
    const logged = this.writer.pos;
    for (;;) {
      this.begin(command);
      try {
        yield* form(tx, command.args, reply);
        return;
      } catch (error) {
        // A read outside of any step, by the lookups of its first steps: it starts again.
        if (!(error instanceof ReadFault) || this.writer.pos !== logged) throw error;
        reply.rollback(mark);
        yield error;
      }
    }
  }

  /** Lets the transaction act for a command. */
  begin(command: Command, writing = isWrite(command.action)): void {
    const { tx } = this;
    if (command.work !== undefined) tx.work = command.work;
    tx.frozen = !writing;
    tx.begin(command.table, command.span, command.args, writing, tx.now, false);
  }
}
