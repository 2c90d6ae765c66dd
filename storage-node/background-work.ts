// What a pod does of its own accord, told to whoever charges it to those whose rows it was about.

/** Rows of a table. */
export interface TableRows {
  table: number;
  rows: number;
}

export interface BackgroundWork {
  /** Rows of a table were dropped because their time had come. */
  expired(table: number, rows: number, logBytes: number): void;
  /** A checkpoint of `bytes` was made, of all these tables. Where it is not known how many, 0. */
  checkpointed(tables: readonly TableRows[], bytes: number): void;
}
