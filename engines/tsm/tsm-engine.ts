// The engine for time series: databases and policies in a catalog, points in shards. What changes goes
// through the words of the log (words/words.ts): prepared here, applied here, the same on replay.
//
// On disk are `manifest` (engine-manifest.ts), which says up to which entry everything is there, and a
// directory for each shard. A shard may hold more than that: what is replayed over it ends in the same
// state. Files of shards that are dropped stay until a manifest without them is written.

import { type Clock, type Disk, systemClock } from '../../universal-row/environment.ts';
import type { Slices } from '../../universal-row/slices.ts';
import type { RecordBatchWriter } from '../../universal-row/record-batch.ts';
import type { PointBatch } from '../../universal-row/series/point-batch.ts';
import type {
  CatalogChange,
  Database,
  FieldKey,
  RetentionPolicy,
  ScanRequest,
  SeriesScan,
  SeriesSelection,
  WriteOutcome,
} from '../../contracts/series-store.ts';
import type {
  PointRules,
  PortableSeriesEngine,
  SeriesAllowance,
  SeriesEngineStats,
  SeriesImporter,
  SeriesLimits,
  SeriesShard,
  SnapshotSelection,
} from '../series-engine.ts';
import {
  Catalog,
  type CatalogState,
  databaseNotFound,
  type EngineChange,
  inForce,
  type ShardSpan,
} from './catalog.ts';
import { readEngineManifest, writeEngineManifest } from './engine-manifest.ts';
import { PagePool } from './head/page-pool.ts';
import { LiveShard } from './live-shard.ts';
import {
  cardinalityIn,
  fieldKeysIn,
  measurementsIn,
  seriesKeysIn,
  tagKeysIn,
  tagValuesIn,
} from './schema.ts';
import { scanTotals } from './group-scan.ts';
import { scanShards } from './series-scan.ts';
import { openShard } from './shard/open-shard.ts';
import type { Shard } from './shard/shard.ts';
import type { ShardHead, ShardParts } from './shard/shard-types.ts';
import { removeShardFiles, removeShardFilesAsync } from './shard/shard-files.ts';
import { shardParts } from './shard-parts.ts';
import { exportEntries } from './snapshot.ts';
import { Upkeep } from './upkeep.ts';
import { applyRows } from './words/apply-rows.ts';
import { putChange } from './words/change-words.ts';
import { EntryReader, type EntryTarget } from './words/entry-reader.ts';
import { ExportImporter } from './words/export-importer.ts';
import type { WordsReader } from './words/words.ts';
import {
  deletePointsParts,
  type DeletionPart,
  dropSeriesParts,
  putDrop,
} from './write/delete-preparer.ts';
import { WritePreparer } from './write/write-preparer.ts';

export interface TsmEngineOptions {
  /** The engine's own; made if it does not exist. */
  directory: string;
  disk: Disk;
  clock?: Clock;
  /** Bytes of points in memory, beyond which they are written to files. Default 256 MiB. */
  headBytes?: number;
  /** A shard without a write for so long is flushed and made one file. Default 10 minutes. */
  coldAfterMs?: number;
  limits?: Partial<SeriesLimits>;
  /** Shards that a database may have. Points that need more are refused. Default 4096. */
  maxShards?: number;
  /** Values of one series in memory, beyond which its shard's points are written to files. Default 1.5 million. */
  longestRead?: number;
}

const mebibyte = 1024 * 1024;
/** About 10 ms of reading. */
const longestRead = 1_500_000;
/** Of a database. Each takes some 30 kB and a few open files: these are 78 years of weeks. */
const maxShards = 4096;
const sliceMs = 4;
const patienceMs = 20;
const tidyEveryMs = 5000;
const shardDirectoryPattern = /^shard-\d+-\d+$/;

export class TsmEngine implements PortableSeriesEngine, EntryTarget {
  readonly model = 'tsm';
  limits: SeriesLimits;
  seriesAllowance?: ((database: string) => SeriesAllowance | undefined) | undefined;
  catalogVersion = 0;
  readonly #disk: Disk;
  readonly #clock: Clock;
  readonly #directory: string;
  readonly #coldAfterMs: number;
  readonly #headBytes: number;
  readonly #pool: PagePool;
  readonly #parts: ShardParts;
  readonly #reader = new EntryReader();
  readonly #preparer: WritePreparer;
  readonly #upkeep: Upkeep;
  readonly #shards = new Map<number, LiveShard>();
  #catalog = new Catalog();
  #era = 0;
  #appliedIndex = 0;
  /** Of the entry being applied. */
  #index = 0;
  #importing = false;
  /** Directories of shards that are gone, to be removed when no manifest lists them. */
  #gone: string[] = [];
  #checkpoint: Promise<unknown> = Promise.resolve();
  #isCheckpointing = false;
  #tidyAgainAt = -Infinity;
  #isOpen = false;

  constructor(options: TsmEngineOptions) {
    this.#disk = options.disk;
    this.#clock = options.clock ?? systemClock;
    this.#directory = options.directory;
    this.#headBytes = options.headBytes ?? 256 * mebibyte;
    this.#coldAfterMs = options.coldAfterMs ?? 10 * 60_000;
    this.limits = {
      seriesPerDatabase: options.limits?.seriesPerDatabase ?? Infinity,
      seriesPerMeasurement: options.limits?.seriesPerMeasurement ?? Infinity,
      valuesPerTag: options.limits?.valuesPerTag ?? Infinity,
    };
    this.#pool = new PagePool(this.#headBytes);
    this.#parts = shardParts(this.#pool);
    this.#preparer = new WritePreparer({
      catalog: () => this.#catalog,
      limits: () => this.limits,
      allowance: (database) => this.seriesAllowance?.(database),
      liveShard: (number) => this.#shards.get(number),
      maxShards: options.maxShards ?? maxShards,
    });
    this.#upkeep = new Upkeep(
      {
        clock: this.#clock,
        headBytes: this.#headBytes,
        coldAfterMs: this.#coldAfterMs,
        longestRead: options.longestRead ?? longestRead,
      },
      this.#shards,
    );
  }

  // ---- life

  async open(): Promise<void> {
    this.#disk.makeDirectory(this.#directory);
    const state = readEngineManifest(this.#disk, this.#directory);
    if (state !== undefined) {
      this.#catalog = Catalog.load(state.catalog);
      this.#appliedIndex = state.appliedIndex;
      this.#era = state.era;
    }
    this.#isOpen = true;
    const listed = this.#catalog.shards();
    this.#removeLeftovers(new Set(listed.map((span) => this.#shardName(span.number))));
    try {
      for (const span of listed) this.#openShard(span);
    } catch (error) {
      this.#closeShards();
      this.#isOpen = false;
      throw error;
    }
  }

  async close(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#upkeep.close();
    await this.#checkpoint.catch(() => {});
    this.#closeShards();
  }

  #closeShards(): void {
    for (const live of this.#shards.values()) live.shard.close();
    this.#shards.clear();
  }

  #shardName(number: number): string {
    return `shard-${this.#era}-${number}`;
  }

  /** Shards that were made after the manifest was written come again with the log. */
  #removeLeftovers(listed: ReadonlySet<string>): void {
    for (const name of this.#disk.list(this.#directory)) {
      if (!shardDirectoryPattern.test(name) || listed.has(name)) continue;
      removeShardFiles(this.#disk, `${this.#directory}/${name}`);
    }
  }

  #openShard(span: ShardSpan): void {
    const shard = openShard({
      disk: this.#disk,
      clock: this.#clock,
      parts: this.#parts,
      directory: `${this.#directory}/${this.#shardName(span.number)}`,
      startSeconds: span.startSeconds,
      coldAfterMs: this.#coldAfterMs,
    });
    const live = new LiveShard(span, shard, this.#clock.monotonic());
    this.#shards.set(span.number, live);
    this.#upkeep.recount(live);
  }

  // ---- putting changes into words

  prepareWrite(
    database: string,
    retentionPolicy: string,
    batch: PointBatch,
    now: number,
    into: RecordBatchWriter,
    rules?: PointRules,
  ): WriteOutcome {
    return this.#preparer.prepare(database, retentionPolicy, batch, now, into, rules);
  }

  prepareChange(change: CatalogChange, into: RecordBatchWriter): void {
    if (this.#catalog.check(change)) putChange(into, change);
  }

  prepareRename(from: string, to: string, into: RecordBatchWriter): void {
    const change: EngineChange = { kind: 'renameDatabase', database: from, to };
    if (this.#catalog.check(change)) putChange(into, change);
  }

  *deletion(
    kind: 'points' | 'series',
    selection: SeriesSelection,
  ): Generator<DeletionPart, void, void> {
    if (this.#catalog.state(selection.database) === undefined) {
      throw databaseNotFound(selection.database);
    }
    const shards = this.#shardsOf(selection);
    if (kind === 'points') yield* deletePointsParts(shards, selection);
    else yield* dropSeriesParts(shards, selection);
  }

  prepareRetention(
    now: number,
    into: RecordBatchWriter,
    retentionOf?: (database: string) => bigint,
  ): void {
    const nowSeconds = now / 1000;
    for (const { name, policies } of this.#catalog.states()) {
      for (const policy of policies) {
        const { shards } = policy;
        const { duration } = inForce(policy, retentionOf?.(name) ?? 0n);
        if (duration === 0n) continue;
        const oldest = nowSeconds - Number(duration) / 1e9;
        for (const { number, startSeconds, seconds } of shards) {
          if (startSeconds + seconds <= oldest) putDrop(into, number);
        }
      }
    }
  }

  policyInForce(policy: RetentionPolicy, retention: bigint): RetentionPolicy {
    return inForce(policy, retention);
  }

  discard(): void {
    this.#preparer.discard();
  }

  // ---- applying

  get appliedIndex(): number {
    return this.#appliedIndex;
  }

  get durableIndex(): number {
    let index = this.#appliedIndex;
    for (const { shard } of this.#shards.values()) index = Math.max(index, shard.persistedIndex);
    return index;
  }

  apply(buf: Buffer, start: number, end: number, index: number): void {
    if (index <= this.#appliedIndex) return;
    this.#index = index;
    this.#reader.read(buf, start, end, this);
    this.#preparer.settle();
    this.#appliedIndex = index;
    // When a log is replayed, nobody waits between the entries.
    if (this.#upkeep.isOverrun) this.#flushNow();
  }

  #flushNow(): void {
    while (this.#upkeep.isOverrun && this.failure === undefined) {
      if (!this.#upkeep.flushLargest(Infinity, true)) return;
    }
  }

  state(state: CatalogState): void {
    this.catalogVersion++;
    this.#catalog = Catalog.load(state);
    for (const span of this.#catalog.shards()) this.#beginShard(span);
  }

  change(change: EngineChange): void {
    this.catalogVersion++;
    for (const span of this.#catalog.make(change)) this.#letGo(span.number);
    if (change.kind === 'renameDatabase') this.#renamed();
  }

  #renamed(): void {
    for (const live of this.#shards.values()) {
      live.span = this.#catalog.shard(live.span.number) ?? live.span;
    }
    this.#preparer.forgetAll();
  }

  makeShard(span: ShardSpan): void {
    if (this.#shards.has(span.number)) return;
    this.#catalog.addShard(span);
    this.#beginShard(span);
  }

  /** Entries that a crash took from the log may have made another shard of this number. */
  #beginShard(span: ShardSpan): void {
    removeShardFiles(this.#disk, `${this.#directory}/${this.#shardName(span.number)}`);
    this.#openShard(span);
  }

  dropShard(number: number): void {
    this.#catalog.dropShard(number);
    this.#letGo(number);
  }

  #letGo(number: number): void {
    const live = this.#shards.get(number);
    if (live === undefined) return;
    this.#shards.delete(number);
    this.#upkeep.forget(live);
    this.#preparer.forget(number);
    this.#gone.push(live.shard.directory);
    live.shard.close();
  }

  rows(number: number, reader: WordsReader): void {
    const live = this.#liveShard(number);
    const { shard } = live;
    const isKnown = !this.#importing && this.#index <= shard.persistedIndex;
    if (!isKnown) shard.appliedIndex = this.#index;
    live.series += applyRows(reader, shard, !isKnown);
    live.lastWriteAt = this.#clock.monotonic();
    this.#upkeep.recount(live);
  }

  deletePoints(number: number, from: number, to: number, series: Uint32Array): void {
    const { shard } = this.#liveShard(number);
    if (this.#index <= shard.persistedIndex) return;
    shard.appliedIndex = this.#index;
    shard.deleteRange(series, from, to);
  }

  removeSeries(number: number, series: Uint32Array): void {
    const live = this.#liveShard(number);
    const { index } = live.shard;
    if (this.#index > live.shard.persistedIndex) live.shard.appliedIndex = this.#index;
    for (const one of series) {
      if (index.isRemoved(one)) continue;
      index.removeSeries(one);
      live.series--;
    }
    this.#preparer.forget(number);
  }

  #liveShard(number: number): LiveShard {
    const live = this.#shards.get(number);
    if (live === undefined) throw new RangeError(`entry of time series: no shard ${number}`);
    return live;
  }

  // ---- reading

  databases(): readonly Database[] {
    return this.#catalog.databases();
  }

  database(name: string): Database | undefined {
    return this.#catalog.database(name);
  }

  *scan(request: ScanRequest): Slices<SeriesScan> {
    const totals = yield* scanTotals(this.#shardsScanned(request), request);
    // Shards may have been dropped meanwhile.
    return totals ?? (yield* scanShards(this.#shardsScanned(request), request));
  }

  #shardsScanned({ database, retentionPolicy, from, to }: ScanRequest): LiveShard[] {
    const policy = this.#catalog.expectPolicy(database, retentionPolicy);
    return this.#touching(policy.shards, from, to);
  }

  *measurements(selection: SeriesSelection): Slices<string[]> {
    const names = yield* measurementsIn(this.#shardsOf(selection), selection.filter);
    const { measurement } = selection;
    return measurement === undefined ? names : names.filter((name) => name === measurement);
  }

  fieldKeys(selection: SeriesSelection & { measurement: string }): FieldKey[] {
    return fieldKeysIn(this.#shardsOf(selection), selection.measurement);
  }

  tagKeys(selection: SeriesSelection & { measurement: string }): Slices<string[]> {
    return tagKeysIn(this.#shardsOf(selection), selection.measurement, selection.filter);
  }

  tagValues(selection: SeriesSelection & { measurement: string }, tag: string): Slices<string[]> {
    return tagValuesIn(this.#shardsOf(selection), selection.measurement, tag, selection.filter);
  }

  seriesKeys(selection: SeriesSelection): Slices<string[]> {
    return seriesKeysIn(this.#shardsOf(selection), selection.measurement, selection.filter);
  }

  seriesCardinality(selection: SeriesSelection): Slices<number> {
    return cardinalityIn(this.#shardsOf(selection), selection.measurement, selection.filter);
  }

  /** Of all policies, unless it names one. */
  #shardsOf({ database, retentionPolicy, from, to }: SeriesSelection): LiveShard[] {
    const state = this.#catalog.state(database);
    if (state === undefined) return [];
    const isNamed = retentionPolicy !== undefined && retentionPolicy !== '';
    return state.policies
      .filter(({ name }) => !isNamed || name === retentionPolicy)
      .flatMap(({ shards }) => this.#touching(shards, from, to));
  }

  #touching(
    spans: readonly ShardSpan[],
    from: bigint | undefined,
    to: bigint | undefined,
  ): LiveShard[] {
    return spans
      .map(({ number }) => this.#liveShard(number))
      .filter((live) => live.clip(from, to) !== undefined);
  }

  // ---- memory and disk

  get congested(): boolean {
    return this.#upkeep.congested;
  }

  drained(): Promise<void> {
    return this.#upkeep.drained();
  }

  get failure(): Error | undefined {
    return this.#upkeep.failure;
  }

  background(budgetMs: number, blocks = true): boolean {
    if (!this.#isOpen) return false;
    this.#tidy();
    return this.#upkeep.background(budgetMs, blocks);
  }

  /** Only a manifest that does not list them lets the files of dropped shards go. */
  #tidy(): void {
    const now = this.#clock.monotonic();
    if (this.#gone.length === 0 || this.#isCheckpointing || now < this.#tidyAgainAt) return;
    this.#tidyAgainAt = now + tidyEveryMs;
    this.checkpoint().catch(() => {
      // The next checkpoint that the log asks for reports it.
    });
  }

  checkpoint(): Promise<number> {
    const mine = this.#checkpoint
      .catch(() => {})
      .then(async () => {
        this.#isCheckpointing = true;
        try {
          let index = await this.#tryCheckpoint();
          while (index === undefined) index = await this.#tryCheckpoint();
          return index;
        } finally {
          this.#isCheckpointing = false;
        }
      });
    this.#checkpoint = mine;
    return mine;
  }

  /**
   * Undefined when a shard was dropped meanwhile. It is not made durable any more, and a manifest that still lists it
   * would have the log replayed over less than it goes on from.
   */
  async #tryCheckpoint(): Promise<number | undefined> {
    const index = this.#appliedIndex;
    const state = { appliedIndex: index, era: this.#era, catalog: this.#catalog.save() };
    const shards = [...this.#shards.values()].map((live) => ({ live, head: live.shard.head }));
    const gone = this.#gone.slice();
    for (const { live, head } of shards) await this.#makeDurable(live, head);
    if (shards.some(({ live }) => live.isDropped)) return undefined;
    await writeEngineManifest(this.#disk, this.#directory, state);
    await this.#removeGone(gone);
    return index;
  }

  /** Has the rows up to those now in `head` flushed. */
  async #makeDurable(live: LiveShard, head: ShardHead): Promise<void> {
    const { shard } = live;
    while (!live.isDropped && (shard.isFlushing || (shard.head === head && head.rows > 0))) {
      if (!this.#isOpen) throw new Error('closed');
      if (!shard.isFlushing) shard.sealHead();
      this.#upkeep.flushSlice(live, sliceMs, false);
      if (this.failure !== undefined) throw this.failure;
      await this.#untilReady(shard);
    }
    // One that is under way may have begun before what is to be persisted now.
    for (let rounds = shard.isPersisting ? 2 : 1; rounds > 0; rounds--) {
      while (!live.isDropped && shard.persistSlice(sliceMs, false)) {
        await this.#untilReady(shard);
        if (!this.#isOpen) throw new Error('closed');
      }
    }
    await nextTurn();
  }

  /** Until it can go on: with the disk's answer, or with other work on the shard, which is helped along. */
  async #untilReady({ waiting }: Shard): Promise<void> {
    if (waiting === undefined) return nextTurn();
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        if (this.#isOpen) this.#upkeep.background(sliceMs, false);
        resolve();
      }, patienceMs);
    });
    await Promise.race([waiting, patience]);
    clearTimeout(timer);
  }

  async #removeGone(directories: readonly string[]): Promise<void> {
    this.#gone = this.#gone.filter((directory) => !directories.includes(directory));
    for (const directory of directories) await removeShardFilesAsync(this.#disk, directory);
  }

  shards(): SeriesShard[] {
    return [...this.#shards.values()]
      .map(({ span, shard }) => ({ ...span, changedAt: shard.appliedIndex }))
      .sort((a, b) => a.number - b.number);
  }

  exportSnapshot(selection: SnapshotSelection = {}): AsyncIterable<Buffer> {
    const wantsDatabase = (name: string): boolean => selection.database?.(name) ?? true;
    const wantsShard = (number: number): boolean => selection.shard?.(number) ?? true;
    const catalog = this.#catalog.save();
    const shards = [...this.#shards.values()];
    return exportEntries(
      {
        ...catalog,
        databases: catalog.databases.filter(({ name }) => wantsDatabase(name)),
        shards: catalog.shards.filter(({ database }) => wantsDatabase(database)),
      },
      shards.filter(({ span }) => wantsDatabase(span.database) && wantsShard(span.number)),
      (database, bytes) => selection.given?.(database, bytes),
    );
  }

  importer(rename: (database: string) => string | undefined): SeriesImporter {
    return new ExportImporter(rename, () => this.#catalog.nextShard);
  }

  async importSnapshot(entries: AsyncIterable<Buffer>, appliedIndex: number): Promise<void> {
    await this.#checkpoint.catch(() => {});
    for (const number of this.#shards.keys()) this.#letGo(number);
    this.#preparer.forgetAll();
    this.#catalog = new Catalog();
    this.#era++;
    this.#index = appliedIndex;
    this.#importing = true;
    try {
      for await (const entry of entries) {
        this.#reader.read(entry, 0, entry.length, this);
        if (this.#upkeep.congested) await this.#upkeep.drained();
      }
    } finally {
      this.#importing = false;
    }
    this.#appliedIndex = appliedIndex;
    await this.checkpoint();
  }

  stats(): SeriesEngineStats {
    const stats: SeriesEngineStats = {
      databases: this.#catalog.databaseCount,
      shards: this.#shards.size,
      series: 0,
      headPoints: 0,
      headBytes: 0,
      indexBytes: 0,
      memoryBytes: this.#pool.idleBytes,
      files: 0,
      diskBytes: 0,
      pendingCompactionBytes: 0,
      extra: {},
    };
    let flushes = 0;
    let compactions = 0;
    let tombstones = 0;
    for (const live of this.#shards.values()) {
      const shard = live.shard.stats();
      stats.series += live.series;
      stats.headPoints += shard.headPoints;
      stats.headBytes += shard.headBytes;
      stats.indexBytes += shard.indexBytes;
      stats.files += shard.files;
      stats.diskBytes += shard.diskBytes;
      stats.pendingCompactionBytes += shard.pendingCompactionBytes;
      flushes += shard.flushes;
      compactions += shard.compactions;
      tombstones += shard.tombstones;
    }
    stats.memoryBytes += stats.headBytes + stats.indexBytes;
    stats.extra = {
      flushes,
      compactions,
      tombstones,
      flush_failures: this.#upkeep.flushFailures,
      compaction_failures: this.#upkeep.compactionFailures,
      idle_page_bytes: this.#pool.idleBytes,
      ...this.#headroom(),
    };
    return stats;
  }

  /** Series that the fullest database may still get, when there is a limit. */
  #headroom(): Record<string, number> {
    const { seriesPerDatabase } = this.limits;
    if (seriesPerDatabase === Infinity) return {};
    const counts = new Map<string, number>();
    for (const { span, series } of this.#shards.values()) {
      counts.set(span.database, (counts.get(span.database) ?? 0) + series);
    }
    const most = Math.max(0, ...counts.values());
    return { series_headroom: Math.max(0, seriesPerDatabase - most) };
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
