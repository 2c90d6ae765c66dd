// The contract of an engine for time series. As for rows (engine.ts), it knows no protocol, log, quota or
// tenant: the pod asks it to put a change into words, logs the words, and has it apply them. What it holds is
// a function of the entries applied, so replicas and replays cannot diverge.

import type { RecordBatchWriter } from '../universal-row/record-batch.ts';
import type { PointBatch } from '../universal-row/series/point-batch.ts';
import type {
  CatalogChange,
  SeriesSelection,
  SeriesStore,
  WriteOutcome,
} from '../universal-row/series/series-store.ts';

/** What an engine answers by itself, as `SeriesStore` says it. */
export type SeriesReads = Pick<
  SeriesStore,
  | 'databases'
  | 'database'
  | 'scan'
  | 'measurements'
  | 'fieldKeys'
  | 'tagKeys'
  | 'tagValues'
  | 'seriesKeys'
  | 'seriesCardinality'
>;

export interface SeriesLimits {
  /** Series of one database, in all its shards together; Infinity for no limit. */
  seriesPerDatabase: number;
  /** Series of one measurement in one shard. */
  seriesPerMeasurement: number;
  /** Values of one tag of a measurement in one shard. */
  valuesPerTag: number;
}

export interface SeriesEngineStats {
  databases: number;
  shards: number;
  series: number;
  /** Points in memory that are not in a file yet. */
  headPoints: number;
  headBytes: number;
  indexBytes: number;
  /** All memory held, head and index included. */
  memoryBytes: number;
  files: number;
  diskBytes: number;
  /** Bytes of files that wait for compaction. */
  pendingCompactionBytes: number;
  /** Anything else worth a gauge, by Prometheus-style name without prefix. */
  extra: Record<string, number>;
}

export interface SeriesEngine extends SeriesReads {
  readonly model: string;
  /** Finds what an earlier life left, and is ready. Throws when what it finds is damaged. */
  open(): Promise<void>;
  close(): Promise<void>;

  // Changes are put into words first. Each of these throws `SeriesError` where `SeriesStore` says so, writes
  // nothing when there is nothing to do, and changes nothing by itself but what `discard` undoes: the pod
  // applies the words in the same turn, in the order in which they were asked for.

  /** `now` is in Unix milliseconds: points older than the policy's duration are refused. */
  prepareWrite(
    database: string,
    retentionPolicy: string,
    batch: PointBatch,
    now: number,
    into: RecordBatchWriter,
  ): WriteOutcome;
  prepareChange(change: CatalogChange, into: RecordBatchWriter): void;
  prepareDelete(
    kind: 'points' | 'series',
    selection: SeriesSelection,
    into: RecordBatchWriter,
  ): void;
  /** Drops shards wholly older than their policy keeps; `now` in Unix milliseconds. */
  prepareRetention(now: number, into: RecordBatchWriter): void;
  /** What was prepared last is not going to be applied. */
  discard(): void;

  /** Index of the last log entry whose effects are in this engine; 0 at the beginning. */
  readonly appliedIndex: number;
  /** Applies `buf[start, end)`, the words of one entry, whole or, when they are damaged, by throwing. */
  apply(buf: Buffer, start: number, end: number, index: number): void;

  limits: SeriesLimits;
  /** The head is at its limit: whoever writes waits for `drained` first. */
  readonly congested: boolean;
  /** Resolves when there is room again; rejects when the disk fails meanwhile. */
  drained(): Promise<void>;
  /** Why the engine takes no more writes for now (a full disk), or undefined. */
  readonly failure: Error | undefined;

  /**
   * Makes a state on disk that holds at least everything up to the entry applied last when this was called,
   * and resolves to that state's index: log entries up to it are needed no more. Writes go on meanwhile.
   */
  checkpoint(): Promise<number>;

  /** All there is, as entries that `importSnapshot` of any engine of this contract takes, as of the moment of the call. */
  exportSnapshot(): AsyncIterable<Buffer>;
  importSnapshot(entries: AsyncIterable<Buffer>, appliedIndex: number): Promise<void>;

  /** Does about `budgetMs` of flushing, compaction and clearing away; true when more is left. */
  background(budgetMs: number): boolean;
  stats(): SeriesEngineStats;
}
