// Change of a row by a command, for subscribers to all changes: keyspace notifications, client-side
// caching.

import type { Arguments } from './arguments.ts';

/** Kinds of change; a sum of these. */
export const Change = {
  written: 1,
  /** The row did not exist before. */
  created: 2,
  /** The row was removed as a whole. */
  dropped: 4,
  /** The row was removed with its last element. */
  emptied: 8,
  expirySet: 16,
  expiryCleared: 32,
  renamedFrom: 64,
  renamedTo: 128,
  /** The row expired. */
  expired: 256,
  /** The row was evicted to free memory. */
  evicted: 512,
  /** A reading command did not find it. */
  missed: 1024,
  /** Records of a stream were removed. */
  trimmed: 2048,
  /** A consumer of a stream's group was made. */
  consumerMade: 4096,
} as const;

/** The command that changed a row. All of its changes share one object. */
export interface ChangedBy {
  /** In lower case. */
  readonly name: string;
  /** Further arguments on which the row's events depend, if any. */
  readonly detail: string;
  /** Id of the client that sent it; 0 for none. */
  readonly client: number;
}

export interface RowChange {
  readonly table: number;
  readonly key: Buffer;
  /** A sum of `Change`. */
  readonly change: number;
  /** Absent for expiry, eviction and other maintenance. */
  readonly by: ChangedBy | undefined;
  /** Any row of the table may have changed: for observers of rows, with no key and no change. */
  readonly isWholeTable?: boolean;
  /** For a row that expired: its expiry time in milliseconds since 1970. */
  readonly dueAt?: number;
}

export interface ChangeListener {
  /** Whether the listener wants reports of rows that were not found. */
  readonly wantsMisses: boolean;
  /** Copies from a command's arguments, which are not kept, the parts it will need. */
  describe(args: Arguments, client: number): ChangedBy;
  /** Reports committed changes. The changes of one command come together, in order. */
  rowsChanged(changes: readonly RowChange[]): void;
  /** Reports tables that were emptied or swapped. Earlier changes of these tables may be reported later. */
  tablesChanged(tables: readonly number[]): void;
}
