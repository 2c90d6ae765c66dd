// The interface between the access layer and a pod of time series, in this thread or in another process. Times are nanoseconds since 1970 as `bigint`, both ends of a range inclusive.

import type { Slices } from '../universal-row/slices.ts';
import type { ReadBounds } from '../universal-row/command.ts';
import type { MaybePromise } from '../universal-row/maybe-promise.ts';
import type { QuotaMode } from './table-properties.ts';
import type { BlockSummary, SeriesRows } from '../universal-row/series/column.ts';
import type { FieldType } from '../universal-row/series/field-type.ts';
import type { PointBatch } from '../universal-row/series/point-batch.ts';

/** The valid times: InfluxDB leaves out the two lowest and the highest of 64 bits. */
export const minTime = -9223372036854775806n;
export const maxTime = 9223372036854775806n;

/** An expected failure; the text is InfluxDB's own, as clients match on it. */
export class SeriesError extends Error {
  override readonly name = 'SeriesError';
}

/** Whether a database or policy is unknown. The text tells it to nodes of all builds. */
export function isMissing(error: unknown): boolean {
  if (!(error instanceof SeriesError) || error instanceof UnavailableError) return false;
  return /^(database|retention policy) not found/.test(error.message);
}

/** The database takes no changes from clients. */
export class ReadOnlyError extends SeriesError {}

/** A change is larger than the log of its database takes. */
export class TooLargeError extends SeriesError {}

/** The database cannot be served just now. The request may be sent again: points that are there already change nothing. */
export class UnavailableError extends SeriesError {}

/** Another replica leads. The request was not run. */
export class NotLeaderError extends UnavailableError {
  /** Number of the replica that leads; 0 while unknown. */
  readonly leader: number;

  constructor(leader: number) {
    super(
      leader === 0
        ? 'this database has no leader now'
        : `replica ${leader} is the leader of this database`,
    );
    this.leader = leader;
  }
}

/** Whether the change was made is unknown, now and later. */
export class OutcomeUnknownError extends UnavailableError {
  /** The leader cannot come to know it: to give it the same once more tells nothing. */
  readonly isFinal: boolean;

  constructor(isFinal = false) {
    super('outcome unknown');
    this.isFinal = isFinal;
  }
}

export function isFinal(error: unknown): boolean {
  return error instanceof OutcomeUnknownError && error.isFinal;
}

/** The pod of this database cannot be reached. The request was not sent. */
export class UnreachableError extends UnavailableError {
  constructor() {
    super('the node that has this database cannot be reached');
  }
}

/** The request exceeds a limit of the pod and was not run. */
export class ThrottledError extends UnavailableError {
  /** Milliseconds after which it may be sent again. */
  readonly retryMs: number;

  constructor(retryMs: number, text = 'timeout: too many requests for this database wait already') {
    super(text);
    this.retryMs = retryMs;
  }
}

/** The deadline passed before the request began or, for a read, before it was answered. */
export class DeadlineError extends UnavailableError {
  constructor() {
    super('timeout');
  }
}

/** The request carries an old epoch of the placement and was not run. The caller must look up the route again. */
export class StaleEpochError extends UnavailableError {
  constructor() {
    super('the database has moved');
  }
}

/**
 * The mark of a deletion is not the current mark of the leader, which changes with each deletion. This stops a
 * delayed deletion from running after a later one, where it would delete points written since. Nothing was done. A
 * gateway whose client still waits sends the deletion again, with the mark in this error.
 */
export class LateDeletionError extends UnavailableError {
  readonly mark: number;

  constructor(mark: number) {
    super('another deletion was made before this one');
    this.mark = mark;
  }
}

export interface RetentionPolicy {
  readonly name: string;
  /** Retention time of points in nanoseconds; 0 for ever. */
  readonly duration: bigint;
  /** Nanoseconds. */
  readonly shardGroupDuration: bigint;
  readonly replicaN: number;
}

export interface Database {
  readonly name: string;
  /** In the order they were made. */
  readonly retentionPolicies: readonly RetentionPolicy[];
  /** Name of the default policy; '' after it was dropped. */
  readonly defaultRetentionPolicy: string;
  /** Changes throw a `ReadOnlyError`. */
  readonly isReadOnly?: boolean;
  /** Quota mode of the database; if absent, the server's setting applies. */
  readonly quotaMode?: QuotaMode;
}

export interface RetentionPolicyChange {
  readonly duration?: bigint;
  readonly shardGroupDuration?: bigint;
  readonly replicaN?: number;
  readonly makeDefault?: boolean;
}

/**
 * Place of a change among those that are made in all partitions: later terms of the first partition come later, and so do
 * higher numbers within a term.
 */
export interface ChangeOrder {
  readonly term: number;
  readonly number: number;
}

/** Changes of databases and retention policies. A failed one throws `SeriesError` and changes nothing. */
export type CatalogChange = PlainChange & {
  /** Set where a change may be delivered late: it is refused if a later change was already made. */
  readonly order?: ChangeOrder | undefined;
};

type PlainChange =
  /** Without a policy of its own: `autogen`. An existing database stays as it is. */
  | {
      readonly kind: 'createDatabase';
      readonly database: string;
      readonly policy?: RetentionPolicyChange & { readonly name?: string };
    }
  | { readonly kind: 'dropDatabase'; readonly database: string }
  | {
      readonly kind: 'createRetentionPolicy' | 'alterRetentionPolicy';
      readonly database: string;
      readonly name: string;
      readonly policy: RetentionPolicyChange;
    }
  | { readonly kind: 'dropRetentionPolicy'; readonly database: string; readonly name: string };

/** Which series, by their tags. A tag that a series lacks has the value ''. */
export type SeriesFilter =
  | { readonly kind: 'and' | 'or'; readonly terms: readonly SeriesFilter[] }
  | { readonly kind: 'equal' | 'notEqual'; readonly tag: string; readonly value: string }
  /** `pattern` is for `kind`s that must leave this process; `matches` decides here. */
  | {
      readonly kind: 'match' | 'notMatch';
      readonly tag: string;
      readonly pattern: string;
      readonly matches: (value: string) => boolean;
    };

/** Of a request that has made sure that the replica had all that was committed before it. */
export interface AppliedState {
  /** Last entry of the log that the replica had applied then: its reads may be answered from this state and later ones. */
  readonly atLeast: number;
}

/**
 * How old a state a read may be answered from, by a replica that does not lead; `strong`: it must be the latest. Absent:
 * as the properties of the database say.
 */
export type SeriesReads = ReadBounds | AppliedState | 'strong';

export function isAppliedState(reads: SeriesReads | undefined): reads is AppliedState {
  return typeof reads === 'object' && 'atLeast' in reads;
}

export interface SeriesSelection {
  readonly database: string;
  /** '' or undefined: the default one where points are read; all of them where the schema is. */
  readonly retentionPolicy?: string | undefined;
  /** undefined: every measurement. */
  readonly measurement?: string | undefined;
  readonly filter?: SeriesFilter | undefined;
  /** Only series with points in shards that touch this range. */
  readonly from?: bigint | undefined;
  readonly to?: bigint | undefined;
  readonly reads?: SeriesReads | undefined;
  /** Of a deletion that may be delivered late: see `LateDeletionError`. */
  readonly mark?: number | undefined;
}

/**
 * A condition that rows must meet. Blocks without such rows need not be read. The scan may still return rows that
 * fail the condition.
 */
export interface ValueBound {
  /** Index in the scan's `fields`. */
  readonly field: number;
  readonly op: '>' | '>=' | '<' | '<=' | '=';
  readonly value: number;
}

export interface ScanRequest {
  readonly database: string;
  /** Name of the retention policy; '' for the default policy. */
  readonly retentionPolicy: string;
  readonly measurement: string;
  readonly filter?: SeriesFilter | undefined;
  readonly from: bigint;
  readonly to: bigint;
  /** Fields wanted. A row that has none of them is left out; an unknown field is no error. */
  readonly fields: readonly string[];
  readonly descending: boolean;
  /**
   * Where a run of rows is complete in the range, lies within one bucket
   * `[offset + n * width, offset + (n + 1) * width)` (any run when `width` is 0n) and is summed up on
   * disk, its summary may come instead of the rows.
   */
  readonly summaries?: { readonly width: bigint; readonly offset: bigint } | undefined;
  /**
   * Only counts, least and greatest values, and sums of integers are wanted, and those by the values of these
   * tags: groups of series may come in place of series, and summaries that tell just that.
   */
  readonly totals?: readonly string[] | undefined;
  /** No more than this many rows of a series will be read; 0 for all. */
  readonly rowsPerSeries?: number | undefined;
  readonly bounds?: readonly ValueBound[] | undefined;
  /** Blocks that are read are not cached. */
  readonly bypassesCaches?: boolean | undefined;
  readonly reads?: SeriesReads | undefined;
}

export interface ScannedSeries {
  /** The series key, as series-key.ts decodes it to text. */
  readonly key: string;
  /** '' when it has no such tag. */
  tag(name: string): string;
}

/** A view as of its creation, unaffected by later writes, compactions and drops. */
export interface SeriesScan {
  /** Type of each of the request's `fields`, in the newest shard of the range that has it. */
  readonly fieldTypes: readonly (FieldType | undefined)[];
  /** Series that may have rows in the range, ascending by the bytes of their key. */
  readonly series: readonly ScannedSeries[];
  /** How many there are when `series` are groups, which come in no order, without keys, and know the tags of `totals`. */
  readonly seriesCount?: number | undefined;
  /** Reads one series. Several cursors may be open at a time. */
  cursor(series: ScannedSeries): SeriesCursor;
  /** Releases the files. Must be called. */
  close(): void;
}

export interface SeriesCursor {
  /**
   * The next rows in the requested order, a few thousand at a time; undefined at the end. Synchronous, and short
   * enough to be called between two clock checks. An empty result means that more time is needed. The caller may read
   * the arrays until the next call.
   */
  next(): SeriesRows | BlockSummary | undefined;
  /**
   * After no rows: the promise to wait for before the next call. It never rejects. Absent where
   * waiting would be useless.
   */
  readonly waits?: Promise<unknown> | undefined;
}

export interface WriteOutcome {
  /** Points stored. */
  written: number;
  /** Points refused. */
  dropped: number;
  /** Error of the first refused point, without the prefix `partial write: ` and the suffix ` dropped=n`. */
  error: string | undefined;
  /** Bytes of the write in the log, where known. */
  logBytes?: number;
}

export interface FieldKey {
  readonly name: string;
  readonly type: FieldType;
}

export interface SeriesStore {
  /** In the order they were made. */
  databases(): readonly Database[];
  database(name: string): Database | undefined;
  /** Done when this returns, or where it is a promise, when that resolves. */
  change(change: CatalogChange): MaybePromise<void>;

  /**
   * Stores the valid points of a batch; '' is the default policy. The caller may reuse the batch
   * afterwards. Waits when the engine is behind. Throws `SeriesError` for an unknown database or
   * policy, and when no writes are accepted at all; `UnavailableError` where the batch may be
   * retried, even if it was stored: a point overwrites itself.
   */
  write(database: string, retentionPolicy: string, batch: PointBatch): MaybePromise<WriteOutcome>;

  // Long reads run in slices and show the state at the first one, plus possibly some later
  // additions.

  /** Throws `SeriesError` for an unknown database or policy. */
  scan(request: ScanRequest): Slices<SeriesScan>;

  // The schema. Names are ascending. The list for an unknown database or measurement is empty.
  measurements(selection: SeriesSelection): Slices<string[]>;
  /** With one name and several types, several. */
  fieldKeys(selection: SeriesSelection & { measurement: string }): Slices<FieldKey[]>;
  tagKeys(selection: SeriesSelection & { measurement: string }): Slices<string[]>;
  tagValues(selection: SeriesSelection & { measurement: string }, tag: string): Slices<string[]>;
  seriesKeys(selection: SeriesSelection): Slices<string[]>;
  /** Series in all retention policies and shards; one that is in several counts once. */
  seriesCardinality(selection: SeriesSelection): Slices<number>;

  /** Deletes the points of the series in the range. A series without points is no longer listed. */
  deletePoints(selection: SeriesSelection): Slices<void>;
  /** Deletes whole series. `selection` has no range. */
  dropSeries(selection: SeriesSelection): Slices<void>;

  /**
   * Ends the event-loop tick: its changes go to the log. Returns the log position that answers of
   * this tick must wait for, or -1 if none must.
   */
  endTick(): number;
  /** Calls back once the log is safe up to `position`, per the fsync policy. */
  whenSafe(position: number, then: () => void): void;
}
