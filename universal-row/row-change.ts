// What a command did to a row, for those who follow all changes: keyspace notifications, client-side caching.

import type { Arguments } from './arguments.ts';

/** What was done to a row: a sum of these. */
export const Change = {
  written: 1,
  /** It was not there before. */
  created: 2,
  /** It went as a whole. */
  dropped: 4,
  /** It went with the last of its parts. */
  emptied: 8,
  expirySet: 16,
  expiryCleared: 32,
  renamedFrom: 64,
  renamedTo: 128,
  /** It went because its time had come. */
  expired: 256,
  /** It went to make room. */
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
  /** What of its other words its events depend on, if they do. */
  readonly detail: string;
  /** Id of the client that sent it; 0 for none. */
  readonly client: number;
}

export interface RowChange {
  readonly table: number;
  readonly key: Buffer;
  /** A sum of `Change`. */
  readonly change: number;
  /** Absent for what happens by itself. */
  readonly by: ChangedBy | undefined;
  /** Any row of the table may have changed: for observers of rows, with no key and no change. */
  readonly isWholeTable?: boolean;
}

export interface ChangeListener {
  /** Whether it wants to know of rows that were not found. */
  readonly wantsMisses: boolean;
  /** Takes from a command's words, which do not stay, what it will need of them. */
  describe(args: Arguments, client: number): ChangedBy;
  /** After they were committed. Records of one command come together, in order. */
  rowsChanged(changes: readonly RowChange[]): void;
  /** These tables were emptied, or changed places. The changes before it may still have to come. */
  tablesChanged(tables: readonly number[]): void;
}
