// The contract of a shard: the points of one retention policy in one stretch of time, in one directory. Its
// newest points are in a head, the others in files; a manifest says which files count.
//
//   active head --seal--> sealed head --flush--> file of level 0 --compact--> level 1 --> ...
//
// Everything here is called from one thread, and nothing waits: flushing and compaction work in slices,
// between which anything else may be called.

import type { Column } from '../../../universal-row/series/column.ts';
import type { HeadTexts, Rows, SeriesIndex } from '../parts.ts';
import type { ShardTotals, TotalsRequest } from './shard-totals.ts';
import type { Opening, ShardHead, ShardScanRequest, ShardScan } from './shard-types.ts';

export interface Shard {
  readonly directory: string;
  readonly startSeconds: number;
  /** The caller of `append` adds and removes series and fields. Flushes persist it. */
  readonly index: SeriesIndex;

  // Writing

  /**
   * Index of the last log entry that changed this shard: to be set before the entry's changes are
   * made. The durable state holds all changes up to `persistedIndex`, the value of this field when
   * that state was sealed or persisted, and possibly some deletions and series of later entries:
   * applying those again is harmless.
   */
  appliedIndex: number;
  readonly persistedIndex: number;
  /**
   * Called after the opening: the log has lost the entries after `index`, and new entries will reuse their indexes.
   * Effects of lost entries in the durable state stay. Durable on return.
   */
  lowerPersisted(index: number): void;
  /** The active head. Each `sealHead` that returns true replaces it. */
  readonly head: ShardHead;
  /** Appends to the active head, as `Head.append`. */
  append(
    measurement: number,
    rows: number,
    series: Uint32Array,
    times: Float64Array,
    columns: readonly (Column | undefined)[],
    texts: HeadTexts,
  ): void;
  /** Points in the active and the sealed head. */
  readonly headPoints: number;
  readonly headBytes: number;
  /**
   * Deletes the points of the series (in any order) in [from, to], in heads and files. Points
   * written later stay, regardless of their times. Durable with `persist` or the next flush. Returns the
   * series that have no row left; the caller may remove them from the index.
   */
  deleteRange(series: Uint32Array, from: number, to: number): Uint32Array;
  /**
   * Whether the series has a row in the range that is not deleted. May read a block. A damaged block counts as rows.
   */
  hasRows(series: number, from: number, to: number): boolean;
  /** Syncs index and deletions. Cheap when they did not change. */
  persist(): void;

  // The sliced work below waits for the disk itself. With `blocks` false, a slice that would have to wait does
  // nothing, and `waiting` resolves when another slice is worth while.

  /** Like `persist`, for the changes up to its first slice; true when more is left. */
  persistSlice(budgetMs: number, blocks?: boolean): boolean;
  /** `persistSlice` has begun and is not done. */
  readonly isPersisting: boolean;
  /**
   * Resolves, and never rejects, when work that waits for the disk may continue; undefined when
   * none waits.
   */
  readonly waiting: Promise<void> | undefined;

  // Flushing

  /** There is a sealed head that is not a file yet. */
  readonly isFlushing: boolean;
  /** Seals the active head. Returns false if the head is empty, or while there is another sealed head. */
  sealHead(): boolean;
  /**
   * Continues writing the sealed head to a file for about so long; true when more is left. At the end the
   * index, the file and the manifest are synced, in this order. When it throws (a full disk) the head is
   * kept and served, and the next call starts again.
   */
  flushSlice(budgetMs: number, blocks?: boolean): boolean;

  // Compaction

  /** Bytes of files that `compactSlice` would merge now. */
  readonly pendingCompactionBytes: number;
  /**
   * Compacts for about `budgetMs`: merges four or more neighbouring files of a level into one file of the next level,
   * and in a cold shard all files into one. Returns true when more is left. When it throws, its partial file is
   * removed, the old files stay in use, and the next call starts again, with a delay if the disk is full. Deleted
   * rows and rows of series removed from the index are left out.
   */
  compactSlice(budgetMs: number, blocks?: boolean): boolean;
  /** From now on `compactSlice` makes all files one, as in a cold shard, once. */
  compactFully(): void;

  // Reading

  /** A view as of now, which outlives compaction, deletion, `close` and the removal of the files. */
  scan(request: ShardScanRequest): Opening<ShardScan>;
  /** As `scan`, but groups of series summed up; undefined where a scan does as well. */
  totals(request: TotalsRequest): Opening<ShardTotals | undefined>;
  /** All there is as of now. */
  export(): ShardContents;

  stats(): ShardStats;
  /**
   * Stops the work in progress and closes all files but those that open scans read. Unflushed
   * points are lost.
   */
  close(): void;
}

export interface ShardContents {
  readonly seriesCount: number;
  /** Numbers of the series that are not removed, ascending. */
  readonly live: readonly number[];
  /** Live series by their numbers, times ascending, all fields by their numbers. */
  readonly rows: IterableIterator<ExportedRows>;
}

/** Valid until the next rows are requested. */
export interface ExportedRows {
  readonly series: number;
  readonly measurement: number;
  readonly rows: Rows;
}

export interface ShardStats {
  readonly files: number;
  readonly diskBytes: number;
  readonly headPoints: number;
  readonly headBytes: number;
  readonly indexBytes: number;
  readonly pendingCompactionBytes: number;
  /** Deletions that compaction has not yet cleared away. */
  readonly tombstones: number;
  /** Since the opening. */
  readonly flushes: number;
  readonly compactions: number;
}
