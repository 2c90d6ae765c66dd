// The contract of an engine: rows at rest, and nothing else. It knows no protocol, log, quota or tenant.

import type { Arguments } from '../universal-row/arguments.ts';
import { CommandError } from '../universal-row/errors.ts';
import type { Row, RowReads, RowWrites } from '../universal-row/rows.ts';

/** One table of an engine. Expiry is kept and listed here, but decided by the pod: an engine hides nothing. */
export interface RowTable extends RowReads, RowWrites {
  /** Rows that have an expiry. */
  readonly expiringRows: number;
  /** Size of all keys and values, approximate. */
  storedBytes(): number;
  /** Up to `limit` rows whose expiry is at or before `now`, the soonest first where that is cheap. */
  expired(now: number, limit: number, visit: (row: Row) => void): void;
  /** A row with an expiry, by a number from 0 to below 1; 0 when there is none. Absent where rows are not evicted. */
  anyExpiring?(random: number): Row;
}

export interface EngineStats {
  rows: number;
  /** Bytes of memory held for data and indexes, free space inside slabs included. */
  memoryBytes: number;
  /** Bytes of memory that live rows need, by the engine's own accounting. */
  usedBytes: number;
  diskBytes: number;
  /** Bytes dropped but not yet reclaimed. */
  pendingReclaimBytes: number;
  cacheHits: number;
  cacheMisses: number;
  /** Anything else worth a gauge, by Prometheus-style name without prefix. */
  extra: Record<string, number>;
}

/** State of an unfinished entry, in the engine's own form. */
export interface SuspendedEntry {
  readonly isSuspended: true;
}

/** See `Engine.savepoint`. */
export interface Savepoint {
  /** Changes of the entry before it. */
  readonly changes: number;
  /** The savepoint of the engine that this one is made around. */
  readonly within?: Savepoint | undefined;
}

/**
 * Decides when an engine may read records from disk. Misses of tables of different owners are read
 * separately and in small groups, so that a command does not wait for everything that another has
 * missed.
 */
export interface ReadScheduler {
  /** While it is not, reads are made at once, all together, and nothing else here is called. */
  readonly isOn: boolean;
  /**
   * Owner of a table, by table number; undefined while all reads are batched together without
   * owners.
   */
  ownerOf(table: number): number | undefined;
  /** How many records of the owner are to be looked up in one go, at most. */
  mostRecords(owner: number): number;
  /**
   * `read` is called once, now or later. It resolves to the number of bytes read, and never
   * rejects. `records` is the number of records looked up; for a page, the most it reads in order.
   */
  pass(owner: number, records: number, isPage: boolean, read: () => PromiseLike<number>): void;
}

/** Error of reads that a closing engine refuses, or that have not begun when the engine closes. */
export const engineClosed = new CommandError('ERR this partition is closed here');

export interface Engine {
  /** Its name in the registry and in a table's `model` property. */
  readonly model: string;
  /** Loads the state on disk and makes the engine ready. Throws if that state is damaged. */
  open(): Promise<void>;
  close(): Promise<void>;

  /** The table with this number, made on first use. The same object until tables are swapped. */
  table(id: number): RowTable;
  /** Whether the table holds rows; asking makes none. */
  holds(id: number): boolean;
  /** Numbers of the tables that hold rows, ascending. */
  tables(): number[];
  swapTables(a: number, b: number): void;
  /** The table is empty and will not be used again: nothing need be kept of it. No part of any log entry. */
  forget?(table: number): void;

  /** Index of the last log entry of a group whose effects are in this engine; 0 at the beginning. */
  appliedIndexOf(group: number): number;
  /** Index applied for `localGroup`, the group of tables with one copy. */
  readonly appliedIndex: number;
  /**
   * Everything since the last `commit` or `rollback` belongs to this log entry of the group, `localGroup` if left out,
   * whole or not at all.
   */
  commit(index: number, group?: number): void;
  /** Undoes everything since the last `commit`. An engine that never throws `ReadFault` need not. */
  rollback(): void;
  /**
   * Puts aside the changes since the last `commit`, for entries that take several ticks: meanwhile
   * other entries are committed and rolled back on other tables, and nothing goes to disk.
   * Undefined without changes. An engine without `rollback` needs none of these.
   */
  suspend?(): SuspendedEntry | undefined;
  /** Continues with an entry that was put aside; there must be no other one open. */
  resume?(entry: SuspendedEntry | undefined): void;
  /** A point within the open entry to go back to; it holds until the entry ends, however many are taken after it. */
  savepoint?(): Savepoint;
  rollbackTo?(savepoint: Savepoint): void;

  /** The event-loop tick is over: a good time to hand a batch to the disk. Errors show in `failure`. */
  endTick(): void;
  /**
   * More is on its way to the disk than should be: writers wait for `drained` first. An engine
   * without these is never congested.
   */
  readonly congested?: boolean;
  /** Rejects when the disk fails meanwhile; then there is a `failure`. */
  drained?(): Promise<void>;
  /**
   * Sets the tables whose records are cached no longer than they are in use; replaces the previous
   * set. An engine without this has no cache to bypass.
   */
  setCacheBypass?(tables: ReadonlySet<number>): void;
  /**
   * Has the rows `args[first], args[first + step] ... args[last]` of a table read in one go, and throws
   * one `ReadFault` for those not in memory. An engine without this needs no such word.
   */
  expectRows?(table: number, args: Arguments, first: number, last: number, step: number): void;
  /**
   * While true, committed changes may still be undone by further writes, and none go to disk.
   * Engines that write only for a checkpoint ignore it.
   */
  holdsBack?: boolean;
  /** Resolves when the export that is being read has ended; undefined when another one may begin at once. */
  readonly exporting?: Promise<void> | undefined;
  /** Why the engine takes no more writes for now (a full disk), or undefined. */
  readonly failure: Error | undefined;

  /**
   * Makes a state on disk that holds at least everything up to the entries applied last when this was
   * called, and resolves to that state's index of the group, `localGroup` if left out: its log entries up to that are
   * needed no more. Writes continue meanwhile.
   */
  checkpoint(group?: number): Promise<number>;

  /**
   * All rows as record batches (universal-row/record-batch.ts) of at most about 512 KiB unless one
   * element is larger, as of the moment of the call though writes continue. A batch is valid until the next one is asked for.
   * With `wants`, the rows of those tables only; the others are not even read.
   */
  exportSnapshot(wants?: (table: number) => boolean): AsyncIterable<Buffer>;
  /**
   * Replaces all rows by those of an export, of this engine or another, and adopts its index of the
   * group.
   */
  importSnapshot(
    batches: AsyncIterable<Buffer>,
    appliedIndex: number,
    group?: number,
  ): Promise<void>;

  /** Does about `budgetMs` of work left for later (freeing, purging); true when more is left. */
  background(budgetMs: number): boolean;
  stats(): EngineStats;
}
