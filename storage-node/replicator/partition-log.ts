// The log of a partition as its pod sees it, whether it has one copy or several: a proposal is given a position at
// once, and its outcome later. `RaftGroup` implements it; `LocalGroup` still has the narrower `ReplicatedLog`, which
// the server runs on.

/** Committed: on a majority, and applied. Lost: it never will be. Unknown: it may or may not come. */
export type Outcome = 'committed' | 'lost' | 'unknown';

export type LogRole = 'leader' | 'follower' | 'learner';

/** Why a proposal was not taken: nothing of it is in the log. */
export const Refusal = { notLeader: -1, overloaded: -2, tooLarge: -3, closed: -4 } as const;

export interface LogListener {
  /** Outcomes come in the order of positions, each once. `index` is 0 unless committed. */
  onOutcome(position: number, outcome: Outcome, index: number): void;
  /** The role, or the leader's replica id, has changed; 0 when no leader is known. */
  onRole(role: LogRole, leader: number): void;
}

export interface MemberChange {
  replica: number;
  to: 'voter' | 'learner' | 'removed';
}

export interface Members {
  voters: number[];
  learners: number[];
  /** Voters of the configuration that is being left; empty outside a joint change. */
  outgoing: number[];
}

export interface PartitionLogStatus {
  replica: number;
  role: LogRole;
  leader: number;
  term: number;
  commit: number;
  applied: number;
  firstIndex: number;
  lastIndex: number;
  members: Members;
  /** Proposals and their bytes without an outcome. */
  pendingProposals: number;
  pendingBytes: number;
}

export interface PartitionLog {
  readonly role: LogRole;
  /**
   * Takes a payload into the entry of this event-loop tick; the bytes are copied. Returns its position, from 1 on,
   * or a `Refusal`, below 0.
   */
  propose(payload: Uint8Array): number;
  /** Calls back once what was committed before the call is applied here: true; or false when that cannot be told. */
  readBarrier(then: (isSafe: boolean) => void): void;
  /** Asks another voter to take over. It may fail; the role tells. */
  transfer(to: number): void;
  /** One change at a time; false when this replica cannot begin it now. */
  changeMembers(changes: readonly MemberChange[]): boolean;
  /** The applied state and what it is the state of. */
  exportSnapshot(): { index: number; term: number; members: Members; state: Uint8Array };
  status(): PartitionLogStatus;
}
