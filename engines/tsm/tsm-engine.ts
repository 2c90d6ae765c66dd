// The engine for time series: databases and policies in a catalog, points in shards. Changes are
// log entries (ops/op-codec.ts): prepared here, applied here, the same on replay.
//
// On disk are `manifest` (engine-manifest.ts), with the index up to which all entries are applied,
// and a directory for each shard. A shard may hold later entries: replaying them ends in the same
// state. Files of shards that are dropped stay until a manifest without them is written.

import { makeDurableDirectory, syncDirectoryAsync } from '../../universal-row/durable-names.ts';
import { type Clock, type Disk, systemClock } from '../../universal-row/environment.ts';
import type { RecordBatchWriter } from '../../universal-row/record-batch.ts';
import type { MaintenanceSlices } from '../../contracts/maintenance-slices.ts';
import type { PointBatch } from '../../universal-row/series/point-batch.ts';
import type {
  CatalogChange,
  RetentionPolicy,
  SeriesSelection,
  WriteOutcome,
} from '../../contracts/series-store.ts';
import type {
  PointRules,
  PortableSeriesEngine,
  SeriesAllowance,
  SeriesEngineStats,
  SeriesImporter,
  SeriesShare,
  SeriesLimits,
  SeriesShard,
  SeriesSibling,
  SnapshotSelection,
  StoredBatch,
} from '../series-engine.ts';
import {
  Catalog,
  type CatalogState,
  databaseNotFound,
  type EngineChange,
  expiredShards,
  inForce,
  type ShardSpan,
} from './catalog.ts';
import { EngineCheckpoints } from './engine-checkpoints.ts';
import { engineStats } from './engine-stats.ts';
import { readEngineManifest } from './engine-manifest.ts';
import { PagePool } from './head/page-pool.ts';
import { LiveShard } from './live-shard.ts';
import { openShard } from './shard/open-shard.ts';
import type { ShardParts } from './shard/shard-types.ts';
import { removeShardFiles } from './shard/shard-files.ts';
import { shardParts } from './shard-parts.ts';
import { ShardReads } from './shard-reads.ts';
import type { DiskWait } from './sliced-work.ts';
import { exported } from './snapshot.ts';
import { Maintenance } from './maintenance.ts';
import { applyRows } from './ops/apply-rows.ts';
import { putChange, putStored } from './ops/change-codec.ts';
import { EntryReader, type EntryTarget } from './ops/entry-reader.ts';
import { ExportImporter } from './ops/export-importer.ts';
import { SharedImporter } from './ops/shared-importer.ts';
import type { OpReader } from './ops/op-codec.ts';
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
  /** That the databases of one tenant may have together. */
  maxTenantShards?: number;
  /** Values of one series in memory, beyond which its shard's points are written to files. Default 200,000. */
  longestRead?: number;
}

const mebibyte = 1024 * 1024;
/** Some milliseconds of reading. */
const longestRead = 200_000;
/**
 * Most shards of a database. Each takes some 30 kB and a few open files; 4096 weekly shards cover
 * 78 years.
 */
const maxShards = 4096;
const maxTenantShards = 16_384;
const noSiblings: readonly SeriesSibling[] = [];
const shardDirectoryPattern = /^shard-\d+-\d+$/;

export class TsmEngine extends ShardReads implements PortableSeriesEngine, EntryTarget {
  readonly model = 'tsm';
  limits: SeriesLimits;
  seriesAllowance?: ((database: string) => SeriesAllowance | undefined) | undefined;
  /** All databases of a database's tenant; unset, each database is by itself. */
  databasesOfTenant?: ((database: string) => Iterable<string>) | undefined;
  siblings?: readonly SeriesSibling[] | undefined;
  /** Makes all applied entries durable in the log. Files are written only after their entries. */
  syncLog?: (() => Promise<void>) | undefined;
  slices?: MaintenanceSlices | undefined;
  stored: ((batch: StoredBatch) => void) | undefined;
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
  readonly #maintenance: Maintenance;
  readonly #checkpoints: EngineCheckpoints;
  #era = 0;
  #appliedIndex = 0;
  /** Log index of the entry being applied. */
  #index = 0;
  #importing = false;
  /** Rejects for good with an import that has failed. */
  #imported: Promise<void> = Promise.resolve();
  #isOpen = false;

  constructor(options: TsmEngineOptions) {
    super();
    this.#disk = options.disk;
    this.#clock = options.clock ?? systemClock;
    this.#directory = options.directory;
    this.#headBytes = options.headBytes ?? 256 * mebibyte;
    this.#coldAfterMs = options.coldAfterMs ?? 10 * 60_000;
    this.limits = {
      seriesPerDatabase: options.limits?.seriesPerDatabase ?? Infinity,
      valuesPerTag: options.limits?.valuesPerTag ?? Infinity,
    };
    this.#pool = new PagePool(this.#headBytes);
    this.#parts = shardParts(this.#pool);
    this.#preparer = new WritePreparer({
      catalog: () => this.catalog,
      limits: () => this.limits,
      allowance: (database) => this.seriesAllowance?.(database),
      liveShard: (number) => this.live.get(number),
      maxShards: options.maxShards ?? maxShards,
      maxTenantShards: options.maxTenantShards ?? maxTenantShards,
      databasesOfTenant: (database) => this.databasesOfTenant?.(database) ?? [database],
      siblings: () => this.siblings ?? noSiblings,
    });
    this.#maintenance = new Maintenance(
      {
        clock: this.#clock,
        headBytes: this.#headBytes,
        coldAfterMs: this.#coldAfterMs,
        longestRead: options.longestRead ?? longestRead,
        slices: () => this.slices,
      },
      this.live,
    );
    this.#checkpoints = new EngineCheckpoints({
      disk: this.#disk,
      clock: this.#clock,
      directory: this.#directory,
      maintenance: this.#maintenance,
      shards: this.live,
      isOpen: () => this.#isOpen,
      slices: () => this.slices,
      state: () => ({
        appliedIndex: this.#appliedIndex,
        era: this.#era,
        catalog: this.catalog.save(),
      }),
    });
  }

  // ---- life

  async open(): Promise<void> {
    const state = readEngineManifest(this.#disk, this.#directory);
    if (state === undefined) makeDurableDirectory(this.#disk, this.#directory);
    else {
      // The log drops entries, and files of shards are removed, because of this manifest: its name must survive a power cut.
      await syncDirectoryAsync(this.#disk, this.#directory);
      this.catalog = Catalog.load(state.catalog);
      this.#appliedIndex = state.appliedIndex;
      this.#era = state.era;
    }
    this.#isOpen = true;
    const listed = this.catalog.shards();
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
    this.#maintenance.close();
    await this.#checkpoints.idle();
    this.#closeShards();
  }

  #closeShards(): void {
    for (const live of this.live.values()) live.shard.close();
    this.live.clear();
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
      logged: () => this.#logged(),
    });
    const live = new LiveShard(span, shard, this.#clock.monotonic());
    this.live.set(span.number, live);
    this.#maintenance.recount(live);
  }

  #logged(): DiskWait | undefined {
    const later = this.syncLog;
    // Work that blocks belongs to a replay, whose entries came from the log.
    return later === undefined ? undefined : { now: () => {}, later };
  }

  // ---- encoding changes

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

  joinsWrite(database: string, retentionPolicy: string, batch: PointBatch): boolean {
    return this.#preparer.joins(database, retentionPolicy, batch);
  }

  prepareStored(batch: StoredBatch, into: RecordBatchWriter): void {
    putStored(into, batch);
  }

  prepareChange(change: CatalogChange, into: RecordBatchWriter): void {
    if (this.catalog.check(change)) putChange(into, change);
  }

  prepareRename(from: string, to: string, into: RecordBatchWriter): void {
    const change: EngineChange = { kind: 'renameDatabase', database: from, to };
    if (this.catalog.check(change)) putChange(into, change);
  }

  *deletion(
    kind: 'points' | 'series',
    selection: SeriesSelection,
  ): Generator<DeletionPart, void, void> {
    if (this.catalog.state(selection.database) === undefined) {
      throw databaseNotFound(selection.database);
    }
    const shards = this.shardsOf(selection);
    if (kind === 'points') yield* deletePointsParts(shards, selection);
    else yield* dropSeriesParts(shards, selection);
  }

  prepareRetention(
    now: number,
    into: RecordBatchWriter,
    retentionOf?: (database: string) => bigint | undefined,
  ): void {
    for (const number of expiredShards(this.catalog, now, retentionOf)) putDrop(into, number);
  }

  policyInForce(policy: RetentionPolicy, retention: bigint): RetentionPolicy {
    return inForce(policy, retention);
  }

  discard(): void {
    this.#preparer.discard();
  }

  seriesCountOf(database: string): number {
    return this.#preparer.seriesCountOf(database);
  }

  shardCountOf(database: string): number {
    return this.#preparer.shardCountOf(database);
  }

  // ---- applying

  get appliedIndex(): number {
    return this.#appliedIndex;
  }

  get durableIndex(): number {
    let index = this.#appliedIndex;
    for (const { shard } of this.live.values()) index = Math.max(index, shard.persistedIndex);
    return index;
  }

  /**
   * Called after `open` where the log ends before `durableIndex`, as after a power cut. The next entries reuse
   * indexes that shards hold already, and differ from the entries there.
   */
  logEndsAt(index: number): void {
    for (const { shard } of this.live.values()) shard.lowerPersisted(index);
  }

  apply(buf: Buffer, start: number, end: number, index: number): void {
    if (index <= this.#appliedIndex) return;
    this.#index = index;
    this.#reader.read(buf, start, end, this);
    this.#preparer.settle();
    this.#appliedIndex = index;
    // No writer waits between the entries of a replay.
    if (this.#maintenance.isOverrun) this.#flushNow();
  }

  skip(index: number): void {
    this.#appliedIndex = Math.max(this.#appliedIndex, index);
  }

  #flushNow(): void {
    while (this.#maintenance.isOverrun && this.failure === undefined) {
      if (!this.#maintenance.flushLargest(Infinity, true)) return;
    }
  }

  state(state: CatalogState): void {
    this.catalogVersion++;
    this.catalog = Catalog.load(state);
    for (const span of this.catalog.shards()) this.#beginShard(span);
  }

  change(change: EngineChange): void {
    this.catalogVersion++;
    for (const span of this.catalog.make(change)) this.#letGo(span.number);
    if (change.kind === 'renameDatabase') this.#renamed();
  }

  #renamed(): void {
    for (const live of this.live.values()) {
      live.span = this.catalog.shard(live.span.number) ?? live.span;
    }
    this.#preparer.forgetAll();
  }

  makeShard(span: ShardSpan): void {
    if (this.live.has(span.number)) return;
    this.catalog.addShard(span);
    this.#beginShard(span);
  }

  /** Entries that a crash took from the log may have made another shard of this number. */
  #beginShard(span: ShardSpan): void {
    removeShardFiles(this.#disk, `${this.#directory}/${this.#shardName(span.number)}`);
    this.#openShard(span);
  }

  dropShard(number: number): void {
    this.catalog.dropShard(number);
    this.#letGo(number);
  }

  #letGo(number: number): void {
    const live = this.live.get(number);
    if (live === undefined) return;
    this.live.delete(number);
    this.#maintenance.forget(live);
    this.#preparer.forget(number);
    this.#checkpoints.dropped(live.shard.directory);
    live.shard.close();
  }

  rows(number: number, reader: OpReader): void {
    const live = this.liveShard(number);
    const { shard } = live;
    const isKnown = !this.#importing && this.#index <= shard.persistedIndex;
    if (!isKnown) shard.appliedIndex = this.#index;
    live.series += applyRows(reader, shard, !isKnown);
    live.lastWriteAt = this.#clock.monotonic();
    this.#maintenance.recount(live);
  }

  deletePoints(number: number, from: number, to: number, series: Uint32Array): void {
    const { shard } = this.liveShard(number);
    if (this.#index <= shard.persistedIndex) return;
    shard.appliedIndex = this.#index;
    shard.deleteRange(series, from, to);
  }

  removeSeries(number: number, series: Uint32Array): void {
    const live = this.liveShard(number);
    const { index } = live.shard;
    if (this.#index > live.shard.persistedIndex) live.shard.appliedIndex = this.#index;
    for (const one of series) {
      if (index.isRemoved(one)) continue;
      index.removeSeries(one);
      live.series--;
    }
    this.#preparer.forget(number);
  }

  skipSeries(number: number, measurement: number, count: number): void {
    this.liveShard(number).shard.index.skipSeries(measurement, count);
  }

  // ---- memory and disk

  get isBehind(): boolean {
    return this.#maintenance.isBehind;
  }

  get congested(): boolean {
    return this.#maintenance.congested;
  }

  drained(): Promise<void> {
    return this.#maintenance.drained();
  }

  get failure(): Error | undefined {
    return this.#maintenance.failure;
  }

  background(budgetMs: number, blocks = true): boolean {
    if (!this.#isOpen) return false;
    if (!this.#importing) this.#checkpoints.removeDropped();
    return this.#maintenance.background(budgetMs, blocks);
  }

  checkpoint(): Promise<number> {
    // A part of a snapshot is no state: after a crash the one before it is there.
    return this.#imported.then(() =>
      this.#importing ? this.checkpoint() : this.#checkpoints.make(),
    );
  }

  shards(): SeriesShard[] {
    return [...this.live.values()]
      .map(({ span, shard }) => ({ ...span, changedAt: shard.appliedIndex }))
      .sort((a, b) => a.number - b.number);
  }

  get hasRemovedSeries(): boolean {
    return [...this.live.values()].some(({ shard }) => shard.index.hasRemoved);
  }

  exportSnapshot(selection?: SnapshotSelection): AsyncIterable<Buffer> {
    return exported(this.catalog.save(), [...this.live.values()], selection);
  }

  importer(rename: (database: string) => string | undefined, share?: SeriesShare): SeriesImporter {
    if (share !== undefined) {
      const { live } = this;
      return new SharedImporter(rename, share, () => ({ catalog: this.catalog, live }));
    }
    return new ExportImporter(rename, {
      nextShard: () => this.catalog.nextShard,
      has: (shard) => this.live.has(shard),
    });
  }

  async importSnapshot(
    entries: AsyncIterable<Buffer>,
    appliedIndex: number,
    failing: (error: unknown) => Promise<boolean> = () => Promise.resolve(false),
  ): Promise<void> {
    const done = async (work: () => Promise<unknown>): Promise<void> => {
      for (;;) {
        try {
          await work();
          return;
        } catch (error) {
          if (!(await failing(error))) throw error;
        }
      }
    };
    this.#imported = this.#import(entries, appliedIndex, () =>
      done(() => this.#maintenance.drained()),
    );
    await this.#imported;
    await done(() => this.checkpoint());
  }

  async #import(
    entries: AsyncIterable<Buffer>,
    appliedIndex: number,
    drained: () => Promise<void>,
  ): Promise<void> {
    this.#importing = true;
    try {
      await this.#checkpoints.idle();
      for (const number of this.live.keys()) this.#letGo(number);
      this.#preparer.forgetAll();
      this.catalog = new Catalog();
      this.#era++;
      this.#index = appliedIndex;
      for await (const entry of entries) {
        this.#reader.read(entry, 0, entry.length, this);
        if (this.#maintenance.congested) await drained();
      }
    } finally {
      this.#importing = false;
    }
    this.#appliedIndex = appliedIndex;
  }

  stats(): SeriesEngineStats {
    return engineStats({
      databases: this.catalog.databaseCount,
      shards: [...this.live.values()],
      pool: this.#pool,
      maintenance: this.#maintenance,
      seriesPerDatabase: this.limits.seriesPerDatabase,
    });
  }
}
