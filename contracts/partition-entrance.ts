// At a pod's entry: what the partitions of a table may take of their tenant's quota. A table is counted by partitions,
// ranges of Redis slots, wherever it lies; a request that touches one beyond its ceiling is refused.

/** The partitions that one request touches. A connection has one of these, for one request after the other. */
export interface PartitionVisit {
  /** Another request begins: nothing is touched yet. */
  begin(): void;
  /** It touches a key of this slot of the table. `now` is monotonic milliseconds, as everywhere here. */
  touch(table: number, slot: number, now: number): void;
  /** Milliseconds until all that is touched has room; 0 if it has. */
  waitMs(now: number): number;
  /** It is done, and has cost so many request units: in equal parts of each that it touched. */
  charge(units: number, now: number): void;
}

export interface PartitionEntrance {
  /** False while no table has a ceiling: then nobody need ask. */
  readonly isWatched: boolean;
  visit(): PartitionVisit;
}
