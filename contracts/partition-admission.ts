// Ceilings of a table's partitions within their tenant's quota. A table is counted by partitions,
// ranges of Redis slots, wherever it is stored; a request that touches one beyond its ceiling is
// refused.

/** The partitions that one request touches. A connection has one object and uses it for each of its requests. */
export interface PartitionRequest {
  /** Starts a new request, which has touched no partition yet. */
  begin(): void;
  /** The request touches a key of this slot of the table. Times are monotonic milliseconds. */
  touch(table: number, slot: number, now: number): void;
  /** Milliseconds until no touched partition is above its ceiling; 0 if none is. */
  waitMs(now: number): number;
  /** Ends the request. Charges `units` to the touched partitions in equal parts. */
  charge(units: number, now: number): void;
}

export interface PartitionAdmission {
  /** False while no table has a ceiling: then requests need not ask. */
  readonly isWatched: boolean;
  request(): PartitionRequest;
}
