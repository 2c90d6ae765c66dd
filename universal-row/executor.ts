// The interface between the access layer and a pod of rows, in this thread or in another process.

import type { Command } from './command.ts';
import type { MaybePromise } from './maybe-promise.ts';
import type { Reply } from './reply.ts';
import type { ChangeListener } from './row-change.ts';

/** Told when a watched row may have changed: written, expired or dropped, by whomever. */
export interface RowObserver {
  rowChanged(table: number, key: Buffer): void;
}

/** Learns what becomes of rows on which a transaction depends. */
export interface TransactionWatch extends RowObserver {
  /** One of them was touched. A pod elsewhere has the last word on it, and sets it. */
  dirty: boolean;
}

/**
 * What became of writes: committed, they are as safe as was asked for; lost, they never happened; unknown, nobody can
 * tell yet.
 */
export type Outcome = 'committed' | 'lost' | 'unknown';

/** The part of a command that decides whether it would be refused. */
export type Refusable = Pick<Command, 'table' | 'grows'>;

/** Commands on the rows of a table, wherever they are. */
export interface RowCommands {
  /** Why a writing command would be refused just now (a read-only table, a full disk), if it would. */
  refusal(command: Refusable): string | undefined;

  /**
   * Runs the command and writes its answer, an error included; never throws or rejects for what a
   * client can cause. Until the answer is there, `args` and the bytes they point at must stay put:
   * from when this has returned a promise, `command.args` may be another copy of them. The promise
   * resolves to where the answer is, if that is not `reply`.
   */
  execute(command: Command, reply: Reply): MaybePromise<Reply | void>;

  /**
   * Runs several commands as one: nothing else happens in between and what they write is one log
   * entry. `before` runs first, in the same instant, and is given where to answer; if it returns false
   * nothing is run. It resolves as `execute` does. A pod elsewhere cannot ask `before` in that instant: it goes by whether
   * a row that `watch` observes was touched, and `before` is asked when its answer has come.
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

/** What has a part in each turn of the event loop, or tick. */
export interface TurnMember {
  /** Has the listener told of all changes from now on; undefined to tell nobody, which costs nothing. */
  follow(listener: ChangeListener | undefined): void;

  /**
   * The turn of the event loop is over: what it wrote goes to the log. Returns the log position that
   * answers given in this turn must wait for, or -1 when none must.
   */
  endTurn(): number;
  /**
   * Calls back once the outcome of everything up to `position` is known, per the fsync policy. Unless it is committed no
   * answer given in that turn may be sent.
   */
  whenSettled(position: number, then: (outcome: Outcome) => void): void;
}

/** A pod. */
export interface Executor extends RowCommands, TurnMember {}
