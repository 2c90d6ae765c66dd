// A pod in this process as a gateway sees it, where the log of the pod may have other replicas in other processes.

import type { Executor } from '../universal-row/executor.ts';

export interface LocalPod extends Executor {
  /** Only the leader runs commands. The others refuse them, and say so in `Command.notRun`. */
  readonly role: 'leader' | 'follower' | 'learner';
  /** The replica that leads; 0 while none is known. */
  readonly leader: number;
  /** Commands wait here until it is known who leads. */
  readonly isPaused: boolean;
  /**
   * Counts how often the log has undone what was evaluated here. Answers that were given before must not be sent as they
   * are, whatever becomes of the position that they are told to wait for.
   */
  readonly losses: number;
  /** As `endTurn`, for a caller that looks at `losses` by itself. */
  flushTurn(): number;
}
