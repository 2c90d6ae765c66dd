// What a history of the simulator has come to.

export interface HistoryResult {
  seed: number;
  /** Description of the violation, undefined when all invariants held. */
  failure: string | undefined;
  events: number;
  committed: number;
  lost: number;
  unknown: number;
  reads: number;
  /** Number of stale reads, with their stated staleness. */
  staleReads: number;
  crashes: number;
  memberChanges: number;
  /** Whether the policy allowed losses, and how often there may have been one. */
  isRelaxed: boolean;
  losses: number;
}
