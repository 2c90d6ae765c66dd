// What a group's entries are applied to: the rows of a partition in an engine.

import type { ConfState } from '../engine/frames.ts';

/** A point of the log, and the members from there on. */
export interface LogPosition {
  index: number;
  term: number;
  conf: ConfState;
}

export interface StateMachine {
  /** What is durable: the state as of here is there after a crash. Index 0 for nothing. */
  readonly durable: LogPosition;
  /** An entry's proposals, in order; none for entries that only concern the log. Deterministic; throws never. */
  apply(index: number, proposals: readonly Uint8Array[]): void;
  /** All of the state as of the last `apply` or `install`. */
  exportState(): Uint8Array;
  /** Takes the place of all there is. */
  install(state: Uint8Array, index: number): void;
  /** Makes the state durable together with its position, then calls back. One at a time. */
  checkpoint(at: LogPosition, done: () => void): void;
}
