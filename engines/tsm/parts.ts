// How the parts of this engine relate. A shard is the points of one retention policy in one stretch
// of time, in one directory:
//
//   SeriesIndex   the shard's own numbers for its measurements, series and fields, and the tags of each series
//   Head          its newest points, in memory, in the order they came
//   TsmFile       older points, sorted by series and time, immutable
//
// Code inside a shard identifies series and fields by number, and times as whole nanoseconds after
// the shard's start: doubles that are exact, because a shard is never longer than
// `maxShardSeconds`.

import type { Slices } from '../../universal-row/slices.ts';
import type { Column, ColumnSummary } from '../../universal-row/series/column.ts';
import type { FieldType } from '../../universal-row/series/field-type.ts';
import type { SeriesFilter } from '../../contracts/series-store.ts';
import type { DiskWait, SlicedWork } from './sliced-work.ts';

/** 13 weeks. A policy with longer shard groups gets several shards for one. 2^53 ns are 104 days. */
export const maxShardSeconds = 13 * 7 * 86_400;

export interface FieldInfo {
  /** Within its measurement, from 0. */
  readonly number: number;
  readonly name: string;
  readonly type: FieldType;
}

/** Which of the series that match are wanted. */
export interface SeriesChoice {
  /** Asked once for a test, which is then put to at most `count` series. */
  chooser(count: number): (series: number) => boolean;
  /** The series may be returned in any order. */
  readonly isUnordered?: boolean;
}

export interface SeriesGroups {
  /** Of each requested series: the number of its group. */
  readonly numbers: Uint32Array;
  /** By group number: the values of the tags, '' for a missing tag. */
  readonly values: readonly (readonly string[])[];
}

/**
 * Measurements and series are numbered from 0 in the order they were added, fields so within their
 * measurement; numbers are never used again. Nothing is durable before `persist`.
 */
export interface SeriesIndex {
  readonly seriesCount: number;
  /** Bytes of memory held. */
  readonly bytes: number;

  // Measurements
  readonly measurementCount: number;
  /** Number of a measurement; -1 if there is none. A measurement without live series is still found. */
  findMeasurement(name: string): number;
  addMeasurement(name: string): number;
  measurementName(measurement: number): string;
  /** Series that are not removed. */
  liveSeriesOf(measurement: number): number;

  // Fields
  /**
   * By field number. When a measurement loses its last series, its fields are forgotten and have empty names from
   * then on.
   */
  fields(measurement: number): readonly FieldInfo[];
  findField(measurement: number, name: string): FieldInfo | undefined;
  addField(measurement: number, name: string, type: FieldType): FieldInfo;

  // Series. Keys are in the form of series-key.ts.
  /** -1 when there is none. `hash` is by `keyedHash`. */
  findSeries(keys: Buffer, start: number, end: number, hash: number): number;
  /** The key's measurement is added where need be. */
  addSeries(keys: Buffer, start: number, end: number): number;
  /** Removes the series from lookups and listings. The same key added later is a new series. */
  removeSeries(series: number): void;
  isRemoved(series: number): boolean;
  /** Whether any number is that of a removed series. */
  readonly hasRemoved: boolean;
  /** Gives the next numbers to series that were removed elsewhere. */
  skipSeries(measurement: number, count: number): void;
  measurementOf(series: number): number;
  key(series: number): string;
  /** Order of two keys by their bytes: negative, 0, positive. */
  compareKeys(a: number, b: number): number;
  copyKey(series: number, into: Buffer, at: number): number;
  keyLength(series: number): number;

  // Tags
  tagKeys(measurement: number, filter: SeriesFilter | undefined): Slices<string[]>;
  tagValues(measurement: number, tag: string, filter: SeriesFilter | undefined): Slices<string[]>;
  /** Values the tag has in this measurement, for the limit. 0 for an unknown tag. */
  tagValueCount(measurement: number, tag: string): number;
  /** Whether a live series has it. Asked for each point that a limit may refuse, so it does not look at other values. */
  hasTagValue(measurement: number, tag: string, value: string): boolean;
  /** '' when the series has no such tag. */
  tagValue(series: number, tag: string): string;
  /** Live series that match, ascending by the bytes of their keys. The result may include series added meanwhile. */
  select(
    measurement: number,
    filter: SeriesFilter | undefined,
    choice?: SeriesChoice,
  ): Slices<Uint32Array>;
  /** Groups the series, all of one measurement, by the values of these tags. The result is in the order of `series`. */
  group(measurement: number, series: Uint32Array, tags: readonly string[]): Slices<SeriesGroups>;

  /**
   * Appends the changes since the last call to the index's files, and syncs them. One call at a
   * time.
   */
  persist(): void;
  /** Like `persist`, for the changes up to its first slice. `logged` waits until their log entries are durable. */
  persisting(logged?: DiskWait): SlicedWork;
  close(): void;
}

/**
 * Rows of one series as passed between the parts: ascending, no time twice. Arrays may be longer than `count`, and
 * belong to the receiver until its next call.
 */
export interface Rows {
  count: number;
  /** Nanoseconds after the shard's start. */
  times: Float64Array;
  /** In the order of the fields asked for; undefined where no row has one. */
  columns: (Column | undefined)[];
}

export interface Block {
  /** Within its file; blocks of one series are consecutive and ascending in time. */
  readonly number: number;
  readonly minTime: number;
  readonly maxTime: number;
  readonly count: number;
}

/** Rows of several series, ascending in time within each. */
export interface SharedRows {
  /** Ascending. */
  readonly series: Uint32Array;
  /** Behind the last row of each. */
  readonly ends: Uint32Array;
  readonly minTime: number;
  readonly maxTime: number;
  readonly times: Float64Array;
  /** In the order of the fields asked for. */
  readonly columns: readonly (Column | undefined)[];
}

/** Writes series in ascending order of their numbers, and each series' rows ascending in time. */
export interface TsmWriter {
  /** All fields, by number: `columns[field.number]`. Called repeatedly for a long series. */
  add(series: number, measurement: number, rows: Rows): void;
  readonly bytes: number;
  /** The disk request to wait for, if so much was written that it must be synced before more is written. */
  overdue(): DiskWait | undefined;
  /** Index and footer; synced. */
  finish(): void;
  finishing(): SlicedWork;
  /** Deletes the partly written file. */
  abandon(): void;
}

/** Keeps decoded shared blocks for later readers. Made and used by the files only. */
export interface BlockCache {
  /** Memory used, approximate. */
  readonly bytes: number;
}

export interface TsmFile {
  readonly path: string;
  readonly bytes: number;
  readonly minTime: number;
  readonly maxTime: number;
  /** Series in it, ascending. */
  readonly series: Uint32Array;
  /** Whether `blocks` would find any. Cheaper. */
  touches(series: number, from: number, to: number): boolean;
  /** Adds 1 to the count of each series for which `blocks` would find a block. */
  countTouched(from: number, to: number, counts: Uint16Array): void;
  /** Numbers of the blocks of several series that touch [from, to]. */
  sharedBlocks(from: number, to: number): number[];
  /** All rows of a shared block. The receiver must not change them. With `own` they are cached there only. */
  readShared(block: number, fields: readonly number[], own?: BlockCache): SharedRows;
  /** Blocks of a series that touch [from, to], ascending. Empty when it has none. */
  blocks(series: number, from: number, to: number): Block[];
  /** Summaries by field number. Undefined if the block lacks the data, because it is shared with other series. */
  summary(
    block: Block,
    series: number,
    fields: readonly number[],
  ): (ColumnSummary | undefined)[] | undefined;
  /** All rows of the series in the block. Throws `CorruptFileError` when the checksum is not right. */
  read(block: Block, series: number, fields: readonly number[], own?: BlockCache): Rows;
  close(): void;
}

export class CorruptFileError extends Error {
  override readonly name = 'CorruptFileError';
}

/** Newest points of one shard. */
export interface Head {
  readonly points: number;
  readonly bytes: number;
  /** Appends the rows of one measurement. `series` and `columns` by number; arrays are copied. */
  append(
    measurement: number,
    rows: number,
    series: Uint32Array,
    times: Float64Array,
    columns: readonly (Column | undefined)[],
    texts: HeadTexts,
  ): void;
  /** Series with rows, ascending. */
  series(): Uint32Array;
  has(series: number): boolean;
  /**
   * Rows of a series in [from, to]; of two points of one time, the later is merged over the
   * earlier.
   */
  read(series: number, fields: readonly number[], from: number, to: number): Rows;
}

/** The bytes of string values: in a string column of `append`, `numbers[row]` is n, as in PointColumn. */
export interface HeadTexts {
  readonly text: Buffer;
  readonly textEnds: Uint32Array;
}
