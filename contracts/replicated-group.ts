// One replica of a log kept by several nodes, as used outside of the storage node, and the state
// machine its entries are applied to. The Raft groups of `storage-node/replicator/` have this form.

import type { Outcome } from '../universal-row/executor.ts';
import type { MaybePromise } from '../universal-row/maybe-promise.ts';

/** Reason for which a proposal was refused. The proposal is not in the log and never will be. */
export type ProposalRefusal = 'not leader' | 'overloaded' | 'too large' | 'closed';

export interface ReplicatedGroup {
  /** Node whose replica leads; 0 while unknown. */
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
  /** Reports that the machine's state is durable up to this index, so that the log can be truncated up to there. */
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
  /** Replaces the whole state. Resolves once the new state and its index are durable. */
  install(state: ReplicatedState): Promise<void>;
  /** Asks the machine to make its state durable. The machine then calls `ReplicatedGroup.stateIsDurable`. */
  checkpoint(): void;
  /** Reports the outcome of a proposal, in the order of positions; after `apply` if the outcome is `committed`. */
  settled(position: number, outcome: Outcome): void;
  /** `ReplicatedGroup.leader` or `isLeader` has changed. */
  leaderChanged(): void;
}
