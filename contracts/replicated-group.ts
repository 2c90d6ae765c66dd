// One replica of a log kept by several nodes, as used outside of the storage node, and the state
// machine its entries are applied to. The Raft groups of `storage-node/replicator/` have this form.

import type { Outcome } from '../universal-row/executor.ts';
import type { MaybePromise } from '../universal-row/maybe-promise.ts';

/** Why a proposal was not taken. Nothing of it is in the log, or will be. */
export type ProposalRefusal = 'not leader' | 'overloaded' | 'too large' | 'closed';

export interface ReplicatedGroup {
  /** Node whose replica leads, 0 while none is known. */
  readonly leader: number;
  /** Proposals are taken here. */
  readonly isLeader: boolean;
  /**
   * Takes a payload into the log; the bytes are copied. Returns its position, larger than all before, whose outcome
   * `ReplicatedMachine.settled` is told later.
   */
  propose(payload: Uint8Array): number | ProposalRefusal;
  /**
   * Calls back with true once all entries committed before the call are applied here; with false
   * when that cannot be determined.
   */
  readBarrier(then: (isSafe: boolean) => void): void;
  /** The machine's state is durable up to this index: the log needs to keep no more. */
  stateIsDurable(index: number): void;
}

/** A state at one index. */
export interface ReplicatedState {
  index: number;
  /** Chunks of the state at that moment, unaffected by entries applied meanwhile. */
  chunks: AsyncIterable<Uint8Array>;
}

export interface ReplicatedMachine {
  /** The state as of this index survives a crash; 0 when no state does. */
  readonly durableIndex: number;
  /**
   * Applies an entry's proposals, in order; none for entries that only concern the log. `position`
   * is the first one's position if they were proposed here and their outcome is not reported yet,
   * else 0. Deterministic.
   */
  apply(index: number, proposals: readonly Uint8Array[], position: number): MaybePromise<void>;
  /** All of the state as of the last entry applied. */
  exportState(): MaybePromise<ReplicatedState>;
  /** Takes the place of all there is. Resolves once it is durable, together with its index. */
  install(state: ReplicatedState): Promise<void>;
  /** Asks for the state to be made durable; `ReplicatedGroup.stateIsDurable` is told when it is. */
  checkpoint(): void;
  /** The outcome of a proposal, in the order of positions, after `apply` where it is `committed`. */
  settled(position: number, outcome: Outcome): void;
  /** `ReplicatedGroup.leader` or `isLeader` has changed. */
  leaderChanged(): void;
}
