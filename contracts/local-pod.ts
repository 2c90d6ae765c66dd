// A pod in this process as the gateway uses it. Other replicas of the pod's log may be in other processes.

import type { Command, ReadBounds } from '../universal-row/command.ts';
import type { Executor, Outcome } from '../universal-row/executor.ts';
import type { MaybePromise } from '../universal-row/maybe-promise.ts';
import type { Reply } from '../universal-row/reply.ts';

/** The log of a replica in this process. */
export interface ReplicaLog {
  /** Last index included in the state. */
  readonly appliedIndex: number;
  /** Calls back with `committed` once all that was committed before the call is applied here, or with another outcome. */
  readBarrier(then: (outcome: Outcome) => void): void;
  /** Calls back once the state has the index, or that takes too long. */
  whenApplied(index: number, then: (isThere: boolean) => void): void;
}

export interface LocalPod extends Executor {
  /** Role of the replica. Only the leader runs commands; other replicas refuse commands and set `Command.notRun`. */
  readonly role: 'leader' | 'follower' | 'learner';
  /** The replica that leads; 0 while unknown. */
  readonly leader: number;
  /** Whether commands are queued in the pod until the leader is known. */
  readonly isPaused: boolean;
  /** Whether a command that comes now does not run at once: it waits until the role and the rows are settled, or is refused. */
  readonly isShut: boolean;
  /** Whether it follows, and its state is no older. */
  isWithin(bounds: ReadBounds): boolean;
  /**
   * Answers a read from the local state of a follower. Like `execute`, but nothing waits for the log. Sets
   * `Command.notRun` where only the leader can answer.
   */
  read(command: Command, reply: Reply): MaybePromise<Reply | void>;
  /**
   * Number of times the log has undone evaluated entries. Answers given before such an undo must
   * not be sent as they are, whatever the outcome of the position they wait for.
   */
  readonly losses: number;
  /** Log position of the last tick in which a command ran. Positions of consecutive ticks differ by 1. */
  readonly lastPosition: number;
  /** Like `endTick`, for a caller that checks `losses` itself. */
  flushTick(): number;
}
