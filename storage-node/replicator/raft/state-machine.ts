// State machine to which a group's entries are applied: the rows of a partition in an engine.

import type { MaybePromise } from '../../../universal-row/maybe-promise.ts';

/** A state at one index. */
export interface ExportedState {
  index: number;
  /**
   * Chunks of the state at that moment, unaffected by entries applied meanwhile. Some 128 KiB are a good size. A chunk is
   * valid until the next is asked for.
   */
  chunks: AsyncIterable<Uint8Array>;
}

export interface StateMachine {
  /** The state as of this index survives a crash; 0 when no state does. */
  readonly durableIndex: number;
  /**
   * Called first: the next entry follows this index. Parts of the machine that contain later entries must not mistake
   * new entries with the same indexes for them.
   */
  logEndsAt?(index: number): void;
  /**
   * Applies an entry's proposals, in order; none for entries that only concern the log. `position`
   * is the first one's position if this replica has proposed them since its start and has reported
   * no outcome yet, else 0. Deterministic; the next entry waits for the answer; a failure ends the
   * pod.
   */
  apply(index: number, proposals: readonly Uint8Array[], position: number): MaybePromise<void>;
  /** All of the state as of the last entry applied, for this replica. */
  exportState(to: number): MaybePromise<ExportedState>;
  /** Takes the place of all there is. Resolves once it is durable, together with its index. */
  install(state: ExportedState): Promise<void>;
  /** Asks for the state to be made durable; `RaftGroup.stateIsDurable` tells when it is. */
  checkpoint(): void;
}
