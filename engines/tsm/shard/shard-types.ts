// Interfaces of a shard and its parts.

import type { Slices } from '../../../universal-row/slices.ts';
import type { Clock, Disk } from '../../../universal-row/environment.ts';
import type { FieldType } from '../../../universal-row/series/field-type.ts';
import type { SeriesCursor, SeriesFilter, ValueBound } from '../../../contracts/series-store.ts';
import type { BlockCache, Head, Rows, SeriesIndex, TsmFile, TsmWriter } from '../parts.ts';
import type { DiskWait } from '../sliced-work.ts';

/** State of a head at some moment; valid for that head only. */
export type HeadMark = object;

/** A head that can be read as it was, and can forget. */
export interface ShardHead extends Head {
  /** Rows appended; 0 when it is empty. */
  readonly rows: number;
  /** Upper bound of the values that a read of one series goes through: its rows times the fields of its measurement. */
  readonly longestRead: number;
  /** Where rows and deletions stand. */
  mark(): HeadMark;
  /** Like `Head.read`; with a mark, the state at that mark. */
  read(series: number, fields: readonly number[], from: number, to: number, mark?: HeadMark): Rows;
  /**
   * Bounds of the times it has of a series, not narrower than with any mark; Infinity and -Infinity when it
   * has none. For the last point of a series `read` is called with `from` and `to` both the greatest time:
   * that should be cheap.
   */
  minTimeOf(series: number): number;
  maxTimeOf(series: number): number;
  /** Hides the series' rows in [from, to] from reads without an older mark. */
  delete(series: number, from: number, to: number): void;
  /** The caller will not read the source again. */
  release(): void;
}

/** How the parts of a shard are made. One object for all shards of an engine. */
export interface ShardParts {
  createHead(): ShardHead;
  openIndex(disk: Disk, directory: string): SeriesIndex;
  createFile(disk: Disk, path: string): TsmWriter;
  openFile(disk: Disk, path: string): TsmFile;
}

export interface ShardOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly parts: ShardParts;
  /** Made when it is not there. The index has its files in it too. */
  readonly directory: string;
  /** Unix seconds. All times are nanoseconds relative to it. */
  readonly startSeconds: number;
  /** Files of more bytes than this together are not merged; by default 2 GB. */
  readonly maxFileBytes?: number | undefined;
  /**
   * Milliseconds without a write after which the shard is cold and its files are merged into one; by default 5
   * minutes.
   */
  readonly coldAfterMs?: number | undefined;
  /** Waits until all entries applied so far are durable in the log. The index and the manifest follow the log. */
  readonly logged?: (() => DiskWait | undefined) | undefined;
}

/** A view that is there, and the work that finds the series in it. */
export interface Opening<T> {
  readonly slices: Slices<T>;
  /** Releases the view, whether the work was done or not. A second call does nothing. */
  close(): void;
}

/** As `ScanRequest`, in the shard's own terms: times are relative to its start. */
export interface ShardScanRequest {
  readonly measurement: number;
  readonly filter?: SeriesFilter | undefined;
  readonly from: number;
  readonly to: number;
  readonly fields: readonly string[];
  readonly descending: boolean;
  /** Nanoseconds since 1970, as in `ScanRequest`. */
  readonly summaries?: { readonly width: bigint; readonly offset: bigint } | undefined;
  /** Rows per series that are needed. More rows may be returned. */
  readonly rowsPerSeries?: number | undefined;
  readonly bounds?: readonly ValueBound[] | undefined;
  /** Cache used by this scan alone. */
  readonly own?: BlockCache | undefined;
}

export interface ShardScan {
  /**
   * Type of each of the request's `fields`; undefined when the measurement has no such field here.
   */
  readonly fieldTypes: readonly (FieldType | undefined)[];
  /** Live series that match, ascending by the bytes of their keys. Some may have no row in the range. */
  readonly series: Uint32Array;
  /** Its `base` is the shard's `startSeconds`. */
  cursor(series: number): SeriesCursor;
  /** Must be called; a second time does nothing. Then the cursors are not to be read any more. */
  close(): void;
}
