// The contract of an engine for time series. As for rows (engine.ts), it knows no protocol, log,
// quota or tenant: the pod has it encode a change, logs the entry, and has it apply the entry. Its
// state is a function of the entries applied, so replicas and replays cannot diverge.

import type { MaintenanceSlices } from '../contracts/maintenance-slices.ts';
import type { RecordBatchWriter } from '../universal-row/record-batch.ts';
import type { PointBatch } from '../universal-row/series/point-batch.ts';
import type {
  CatalogChange,
  FieldKey,
  RetentionPolicy,
  SeriesSelection,
  SeriesStore,
  WriteOutcome,
} from '../contracts/series-store.ts';

/** Reads an engine serves itself, as `SeriesStore` defines them. */
export type SeriesReads = Pick<
  SeriesStore,
  | 'databases'
  | 'database'
  | 'scan'
  | 'measurements'
  | 'tagKeys'
  | 'tagValues'
  | 'seriesKeys'
  | 'seriesCardinality'
> & { fieldKeys(selection: SeriesSelection & { measurement: string }): FieldKey[] };

export interface SeriesLimits {
  /** Series of one database, in all its shards together; Infinity for no limit. */
  seriesPerDatabase: number;
  /** Values of one tag of a measurement in one shard. */
  valuesPerTag: number;
}

/** Databases that may have only so many series together, in all their shards. */
export interface SeriesAllowance {
  readonly databases: Iterable<string>;
  readonly series: number;
  /** Error message for one more. */
  readonly refusal: string;
}

/** An engine of another partition: series of one database are spread over several, and their limits are shared. */
export interface SeriesSibling {
  /** Series of the database in it, those of each shard counted. */
  seriesCountOf(database: string): number;
  shardCountOf(database: string): number;
}

/** Rules for writes from the properties of a database, beyond its policies and the limits. */
export interface PointRules {
  /** Nanoseconds that policy `autogen` keeps points while it has no duration of its own; 0 for ever. */
  readonly retention: bigint;
  /** Largest size of a point, as `point-size.ts` counts it; Infinity for no limit. */
  readonly maxPointBytes: number;
}

/** Told beside the rows of a batch that has an identity: what its writer was answered. */
export interface StoredBatch extends Pick<WriteOutcome, 'written' | 'dropped'> {
  readonly id: string;
  readonly error?: string | undefined;
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
  /** Loads the state on disk and makes the engine ready. Throws if that state is damaged. */
  open(): Promise<void>;
  close(): Promise<void>;

  // Changes are encoded first. Each of these throws `SeriesError` where `SeriesStore` says so,
  // writes nothing when there is nothing to do, and changes nothing that `discard` does not undo:
  // the pod applies the encoded operations in the same tick, in the order of these calls.

  /** `now` is in Unix milliseconds: points older than the policy's duration are refused. */
  prepareWrite(
    database: string,
    retentionPolicy: string,
    batch: PointBatch,
    now: number,
    into: RecordBatchWriter,
    rules?: PointRules,
  ): WriteOutcome;
  /**
   * Whether a batch can be prepared together with the last prepared batches, which are neither applied nor discarded.
   * Its operations are then appended to the same log entry.
   */
  joinsWrite(database: string, retentionPolicy: string, batch: PointBatch): boolean;
  /** To be called behind `prepareWrite` of the same batch: `stored` is called when the entry is applied. */
  prepareStored(batch: StoredBatch, into: RecordBatchWriter): void;
  stored?: ((batch: StoredBatch) => void) | undefined;
  prepareChange(change: CatalogChange, into: RecordBatchWriter): void;
  /**
   * A deletion as a sequence of entries of bounded size. Each is encoded by one call, and must be
   * applied or discarded before the next is requested. Undefined marks a pause without an entry.
   */
  deletion(
    kind: 'points' | 'series',
    selection: SeriesSelection,
  ): Generator<((into: RecordBatchWriter) => void) | undefined, void, void>;
  /**
   * Drops shards wholly older than their policy keeps; `now` in Unix milliseconds. `retentionOf` a database is
   * `PointRules.retention`; undefined where all shards stay.
   */
  prepareRetention(
    now: number,
    into: RecordBatchWriter,
    retentionOf?: (database: string) => bigint | undefined,
  ): void;
  /**
   * Effective policy, which `prepareWrite` and `prepareRetention` use where `PointRules.retention`
   * is this. The policy itself where that makes no difference.
   */
  policyInForce(policy: RetentionPolicy, retention: bigint): RetentionPolicy;
  /** Discards the last prepared change, which will not be applied. */
  discard(): void;

  /** Index of the last log entry whose effects are in this engine; 0 at the beginning. */
  readonly appliedIndex: number;
  /**
   * After `open`: index of the last entry with any effect on disk. A crash may have taken entries
   * up to it from the end of an unsynced log, so new entries must have higher indexes: entries on
   * disk are not applied again.
   */
  readonly durableIndex: number;
  /** Applies `buf[start, end)`, the words of one entry, whole or, when they are damaged, by throwing. */
  apply(buf: Buffer, start: number, end: number, index: number): void;

  /** Advances the applied index past an entry that is not for this engine. */
  skip(index: number): void;

  /** Incremented with every change to the list of databases and policies. */
  readonly catalogVersion: number;

  limits: SeriesLimits;
  /** Series limit that the database shares with others, if any; requested for each batch. */
  seriesAllowance?: ((database: string) => SeriesAllowance | undefined) | undefined;
  /** When flushes that writes wait for, and checkpoints, may run; in each tick when left out. */
  slices?: MaintenanceSlices | undefined;
  /** Writes come faster than heads are flushed: maintenance is urgent, before any write waits for it. */
  readonly isBehind: boolean;
  /** The head is at its limit: writes wait for `drained` first. */
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

  /**
   * All there is, as entries that `importSnapshot` of any engine of this contract takes, as of the moment of the call. Later
   * entries of this engine's log can be applied behind them.
   */
  exportSnapshot(): AsyncIterable<Buffer>;
  /**
   * Takes the place of all there is. `failing` is called where a flush or the checkpoint fails, as on a full disk, and
   * resolves to whether to try again; unset, the import rejects.
   */
  importSnapshot(
    entries: AsyncIterable<Buffer>,
    appliedIndex: number,
    failing?: (error: unknown) => Promise<boolean>,
  ): Promise<void>;

  /**
   * Does about `budgetMs` of flushing, compaction and clearing away; true when more is left. Where `blocks` is
   * false it does not wait for the disk, and returns early when there is nothing to do before that has answered.
   */
  background(budgetMs: number, blocks?: boolean): boolean;
  stats(): SeriesEngineStats;
}

/** A stretch of time of a retention policy. */
export interface SeriesShard {
  /** Never used again by this engine. */
  readonly number: number;
  readonly database: string;
  readonly policy: string;
  /** Unix seconds; `seconds` long. */
  readonly startSeconds: number;
  readonly seconds: number;
  /** Index of the last entry that may have changed its contents. */
  readonly changedAt: number;
}

/** Which part of all there is. */
export interface SnapshotSelection {
  /** The others are not mentioned. */
  database?(name: string): boolean;
  /** True for shards whose points are exported; the others are only listed. */
  shard?(number: number): boolean;
  /** Reports that so many of the returned bytes were points of the database. */
  given?(database: string, bytes: number): void;
}

/**
 * An engine whose contents can be partly exported, and imported into another besides its existing
 * contents.
 */
export interface PortableSeriesEngine extends SeriesEngine, SeriesSibling {
  /** Engines of the other partitions; none when left out. */
  siblings?: readonly SeriesSibling[] | undefined;
  /** A whole snapshot has numbers of removed series, which builds below level 10 do not read. */
  readonly hasRemovedSeries: boolean;
  /** Every shard there is, by ascending number. */
  shards(): SeriesShard[];
  /** With a selection: for importers. No entries of a log can be applied behind it. */
  exportSnapshot(selection?: SnapshotSelection): AsyncIterable<Buffer>;
  /**
   * Databases to be taken from exports: under which name each, or undefined to leave it out. With a share, of engines
   * that are divided otherwise: each has an importer of its own, and their contents come together.
   */
  importer(rename: (database: string) => string | undefined, share?: SeriesShare): SeriesImporter;
  /** `to` goes, if it is there, and `from` takes its name, in one entry. Nothing when there is no `from`. */
  prepareRename(from: string, to: string, into: RecordBatchWriter): void;
}

/** What one of several engines takes of exports of others. */
export interface SeriesShare {
  /** Whether it takes the series with the key `buf[start, end)`. Each series comes from one of the exports alone. */
  keeps(buf: Buffer, start: number, end: number): boolean;
  /** The stretch of time that holds the shard's points here. */
  spanOf(shard: Omit<SeriesShard, 'changedAt'>): Pick<SeriesShard, 'startSeconds' | 'seconds'>;
}

/** What an import had made was dropped before the import was over. */
export class ShardGoneError extends Error {
  override readonly name = 'ShardGoneError';

  constructor() {
    super('what was restored so far has been dropped: restore it again');
  }
}

/** The exports cannot come together in one engine. */
export class SeriesShareError extends Error {
  override readonly name = 'SeriesShareError';
  readonly what: string;

  constructor(what: string) {
    super(`these partitions of time series do not come together: ${what}`);
    this.what = what;
  }
}

/**
 * Takes databases from exports. Several exports of one engine may be given one after the other,
 * whole: the first says which databases and shards there are, and each shard's points are taken
 * from one of them. Other writes to the databases are not allowed meanwhile.
 */
export interface SeriesImporter {
  /**
   * Encodes an entry, a few operations at a time: after each step, the encoded operations must be
   * applied as an entry of the log before the next step. Throws `RangeError` for a damaged one.
   */
  put(entry: Buffer, wants: (shard: number) => boolean, into: RecordBatchWriter): Iterator<void>;
}
