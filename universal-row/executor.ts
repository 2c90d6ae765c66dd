// The interface between the access layer and a pod of rows, in this thread or in another process.

import type { Command } from './command.ts';
import type { MaybePromise } from './maybe-promise.ts';
import type { Reply } from './reply.ts';
import type { ChangeListener } from './row-change.ts';

/** Observer of watched rows. Called when a row may have changed, for any reason: a write, expiry or a drop. */
export interface RowObserver {
  rowChanged(table: number, key: Buffer): void;
}

/** Receives changes of rows on which a transaction depends. */
export interface TransactionWatch extends RowObserver {
  /** Whether one of the rows was touched. A remote pod decides this and sets the flag. */
  dirty: boolean;
}

/**
 * Outcome of writes: committed, they are as durable as requested; lost, they were not applied;
 * unknown, it is not decided yet.
 */
export type Outcome = 'committed' | 'lost' | 'unknown';

/** Combined outcome of two logs: their common outcome, or `unknown` if they differ. */
export function outcomeOfBoth(one: Outcome, other: Outcome): Outcome {
  return one === other ? one : 'unknown';
}

/** The part of a command that decides whether it would be refused. */
export type Refusable = Pick<Command, 'table' | 'grows'>;

/** Commands on the rows of a table, wherever they are. */
export interface RowCommands {
  /** Why a writing command would be refused just now (a read-only table, a full disk), if it would. */
  refusal(command: Refusable): string | undefined;

  /**
   * Runs the command and writes its answer, an error included; never throws or rejects for errors a
   * client can cause. Until the answer is there, `args` and the bytes they point at must not move:
   * once this has returned a promise, `command.args` may be another copy of them. The promise
   * resolves to the reply that has the answer, if that is not `reply`.
   */
  execute(command: Command, reply: Reply): MaybePromise<Reply | void>;

  /**
   * Runs several commands as one: no other command runs in between and their writes are one log
   * entry. `before` runs first, in the same tick, and receives the reply; if it returns false
   * nothing is run. It resolves as `execute` does. A remote pod cannot call `before` in that tick:
   * it checks instead whether a row observed by `watch` was touched, and `before` is called when
   * its answer has come.
   */
  executeAll(
    commands: readonly Command[],
    reply: Reply,
    before: (reply: Reply) => boolean,
    watch?: TransactionWatch,
  ): MaybePromise<Reply | void>;

  /** Calls the observer after each command that touched the row, until `unobserve`. */
  observe(table: number, key: Buffer, observer: RowObserver): void;
  unobserve(table: number, key: Buffer, observer: RowObserver): void;
}

/** Called in each tick of the event loop. */
export interface TickMember {
  /**
   * Reports all changes to the listener from now on; undefined to report none, which costs nothing.
   */
  follow(listener: ChangeListener | undefined): void;

  /**
   * Ends the event-loop tick: its writes go to the log. Returns the log position that answers of
   * this tick must wait for, or -1 if none must.
   */
  endTick(): number;
  /**
   * Calls back once the outcome of everything up to `position` is known, per the fsync policy. Unless it is committed no
   * answer given in that tick may be sent.
   */
  whenSettled(position: number, then: (outcome: Outcome) => void): void;
}

/** A pod. */
export interface Executor extends RowCommands, TickMember {}
