// A pod in this process as a gateway sees it, where the log of the pod may have other replicas in other processes.

import type { Command, ReadBounds } from '../universal-row/command.ts';
import type { Executor } from '../universal-row/executor.ts';
import type { MaybePromise } from '../universal-row/maybe-promise.ts';
import type { Reply } from '../universal-row/reply.ts';

export interface LocalPod extends Executor {
  /** Only the leader runs commands. The others refuse them, and say so in `Command.notRun`. */
  readonly role: 'leader' | 'follower' | 'learner';
  /** The replica that leads; 0 while none is known. */
  readonly leader: number;
  /** Commands wait here until it is known who leads. */
  readonly isPaused: boolean;
  /** Whether it follows, and its state is no older. */
  isWithin(bounds: ReadBounds): boolean;
  /**
   * Answers a read from the state here, of a pod that follows: as `execute`, but that nothing waits for the log.
   * `Command.notRun` where only the leader can answer it.
   */
  read(command: Command, reply: Reply): MaybePromise<Reply | void>;
  /**
   * Counts how often the log has undone what was evaluated here. Answers that were given before must not be sent as they
   * are, whatever becomes of the position that they are told to wait for.
   */
  readonly losses: number;
  /** As `endTurn`, for a caller that looks at `losses` by itself. */
  flushTurn(): number;
}
