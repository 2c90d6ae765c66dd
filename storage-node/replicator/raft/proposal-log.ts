// A group with several copies as its proposals see it: each is given a position at once, and its outcome later.

import type { LogRole, MemberChange, Members, Outcome } from '../partition-log.ts';

/** Why a proposal was not taken: nothing of it is in the log. */
export const Refusal = { notLeader: -1, overloaded: -2, tooLarge: -3, closed: -4 } as const;

export interface ProposalListener {
  /** Outcomes come in the order of positions, each once. `index` is 0 unless committed. */
  onOutcome(position: number, outcome: Outcome, index: number): void;
  /** The role, or the leader's replica id, has changed; 0 when no leader is known. */
  onRole(role: LogRole, leader: number): void;
  /** The change of members for which proposals had to wait is done. */
  onRelease?(): void;
}

export interface ProposalLogStatus {
  replica: number;
  role: LogRole;
  leader: number;
  term: number;
  commit: number;
  applied: number;
  firstIndex: number;
  lastIndex: number;
  members: Members;
  /** The replica may lack entries that it has acknowledged: its vote counts only with those of all voters. */
  isFenced: boolean;
  /** It was in this life. */
  wasFenced: boolean;
  /** Elections that this replica has won by such votes since its start. */
  electionsByAll: number;
  /** Proposals and their bytes without an outcome. */
  pendingProposals: number;
  pendingBytes: number;
}

export interface ProposalLog {
  readonly role: LogRole;
  /**
   * Takes a payload into the entry of this event-loop tick; the bytes are copied. Returns its position, from 1 on,
   * or a `Refusal`, below 0.
   */
  propose(payload: Uint8Array): number;
  /**
   * Calls back with true once all earlier commits are applied here; with false when that cannot be
   * determined.
   */
  readBarrier(then: (isSafe: boolean) => void): void;
  /** Asks another voter to take over. This may fail: check the role. */
  transfer(to: number): void;
  /** One change at a time; false when this replica cannot begin it now. */
  changeMembers(changes: readonly MemberChange[]): boolean;
  status(): ProposalLogStatus;
}
