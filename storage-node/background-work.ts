// Reports a pod's background work, so that it can be charged to the owners of the rows.

/** Rows of a table. */
export interface TableRows {
  table: number;
  rows: number;
}

/** Rows of a table, or changes of them, as they went into a backup or came out of one. */
export interface CopiedRows extends TableRows {
  bytes: number;
}

/** The same of a database of time series. */
export interface CopiedPoints {
  database: string;
  bytes: number;
}

export interface BackgroundWork {
  /** Rows of a table were dropped because their time had come. */
  expired(table: number, rows: number, logBytes: number): void;
  /** A checkpoint of `bytes` was made, of all these tables. Where it is not known how many, 0. */
  checkpointed(tables: readonly TableRows[], bytes: number): void;
  /** Rows were read from the engine, or changes from its log, to be put into a backup or compared with one. */
  copied(tables: readonly CopiedRows[]): void;
  /** A backup's contents were restored into these tables. */
  restored(tables: readonly CopiedRows[]): void;
}

/** Background work of a pod of time series, except merging. */
export interface SeriesBackgroundWork {
  /** Points were read to be put into a backup or compared with one. */
  copied(databases: readonly CopiedPoints[]): void;
  /** A backup's contents were restored into these databases. */
  restored(databases: readonly CopiedPoints[]): void;
}
