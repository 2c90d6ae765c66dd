// A pod of time series: one engine, one log, one thread. What a client changes is put into words by the
// engine, logged, and applied from the log's own bytes, so that the leader does just what a replay does.

import type { Slices } from '../universal-row/slices.ts';
import type { Clock } from '../universal-row/environment.ts';
import type { MaybePromise } from '../universal-row/maybe-promise.ts';
import type { PointBatch } from '../universal-row/series/point-batch.ts';
import {
  type CatalogChange,
  type Database,
  type FieldKey,
  ReadOnlyError,
  type ScanRequest,
  SeriesError,
  type SeriesScan,
  type SeriesSelection,
  type SeriesStore,
  type WriteOutcome,
} from '../contracts/series-store.ts';
import type {
  PointRules,
  PortableSeriesEngine,
  SeriesEngineStats,
} from '../engines/series-engine.ts';
import type { StepSource, StepWatcher } from '../contracts/step-watcher.ts';
import { backgroundWork, contendedSliceMs, type PodAdmission } from '../contracts/pod-admission.ts';
import type { SeriesBackgroundWork } from './background-work.ts';
import type { LogPins } from './backup/log-pins.ts';
import { type CheckpointStats, Checkpoints } from './checkpoints.ts';
import type { ReplicatedLog } from './replicator/replicated-log.ts';
import type { TableRules, TableRulesByName } from './table-rules.ts';

/** See `SeriesPod.parts`. */
export interface SeriesPodParts {
  readonly engine: PortableSeriesEngine;
  readonly log: ReplicatedLog;
  readonly pins: LogPins | undefined;
  readonly background: SeriesBackgroundWork | undefined;
}

export interface SeriesPodOptions {
  engine: PortableSeriesEngine;
  log: ReplicatedLog;
  /** Where incremental backups go on from. */
  pins?: LogPins | undefined;
  /** What databases have of properties. It is live: a change takes effect at the next action. */
  tables?: TableRulesByName | undefined;
  /** Told of backups and restores, for whoever charges them. */
  background?: SeriesBackgroundWork | undefined;
  clock: Clock;
  /** Who else is about: what happens by itself then holds others up for shorter. */
  admission?: PodAdmission | undefined;
  /** Hears of maintenance that takes long. */
  steps?: StepWatcher | undefined;
  /** A checkpoint is made whenever the log has grown by this much. */
  checkpointBytes: number;
  /** Milliseconds between two looks for shards that are older than their policy keeps. */
  retentionIntervalMs: number;
  /** Told about failures that no client asked about. */
  report: (level: 'info' | 'warn' | 'error', message: string, fields?: object) => void;
}

export interface SeriesPodStats extends CheckpointStats {
  pointsWritten: number;
  pointsRefused: number;
  /** Writes that had to wait for the engine to catch up. */
  congestedWrites: number;
  loadedEntries: number;
}

const noTables: TableRulesByName = new Map();

function nanoseconds(ms: number): bigint {
  return BigInt(ms) * 1_000_000n;
}

function pointRulesOf({ ttlDefaultMs, maxRowBytes }: TableRules): PointRules {
  return { retention: nanoseconds(ttlDefaultMs), maxPointBytes: maxRowBytes };
}

/** How long background work may hold up requests at a time, and how long it pauses when there is more. */
const backgroundBudgetMs = 3;

/** What a pod does by itself in one go. */
const maintenance: StepSource = {
  stepInfo: () => ({ what: 'maintenance of time series', tenant: backgroundWork, bytes: 0 }),
};
const busyPauseMs = 4;
/** Where several tenants are about. */
const crowdedPauseMs = 1;
const idlePauseMs = 50;

export class SeriesPod implements SeriesStore {
  readonly stats: SeriesPodStats = {
    pointsWritten: 0,
    pointsRefused: 0,
    congestedWrites: 0,
    checkpoints: 0,
    lastCheckpointMs: 0,
    lastCheckpointAt: 0,
    checkpointFailures: 0,
    loadedEntries: 0,
  };

  readonly #engine: PortableSeriesEngine;
  readonly #log: ReplicatedLog;
  readonly #pins: LogPins | undefined;
  readonly #background: SeriesBackgroundWork | undefined;
  readonly #tables: TableRulesByName;
  readonly #clock: Clock;
  readonly #admission: PodAdmission | undefined;
  readonly #steps: StepWatcher | undefined;
  readonly #retentionIntervalMs: number;
  readonly #report: SeriesPodOptions['report'];
  #timer: NodeJS.Timeout | undefined;
  #nextRetention = 0;
  readonly #checkpoints: Checkpoints;
  /** Of the last change. */
  #entryBytes = 0;

  constructor(options: SeriesPodOptions) {
    this.#engine = options.engine;
    this.#log = options.log;
    this.#pins = options.pins;
    this.#background = options.background;
    this.#tables = options.tables ?? noTables;
    this.#clock = options.clock;
    this.#admission = options.admission;
    this.#steps = options.steps;
    this.#retentionIntervalMs = options.retentionIntervalMs;
    this.#report = options.report;
    const { engine, log, clock, report, checkpointBytes: everyBytes } = options;
    const { stats } = this;
    this.#checkpoints = new Checkpoints({ engine, log, clock, everyBytes, stats, report });
  }

  /** Begins the work that happens by itself: flushing, compaction, retention, checkpoints. */
  start(): void {
    this.#nextRetention = this.#clock.monotonic();
    this.#schedule(idlePauseMs);
  }

  // ---- changes

  write(database: string, retentionPolicy: string, batch: PointBatch): MaybePromise<WriteOutcome> {
    const rules = this.#expectWritable(database);
    if (this.#engine.congested && this.writeFailure === undefined) {
      this.stats.congestedWrites++;
      this.#schedule(0);
      const again = (): MaybePromise<WriteOutcome> => this.write(database, retentionPolicy, batch);
      // After a failure the write is refused for its reason.
      return this.#engine.drained().then(again, again);
    }
    const outcome = this.#change(() =>
      this.#engine.prepareWrite(
        database,
        retentionPolicy,
        batch,
        this.#clock.now(),
        this.#log.writer,
        rules && pointRulesOf(rules),
      ),
    );
    outcome.logBytes = this.#entryBytes;
    this.stats.pointsWritten += outcome.written;
    this.stats.pointsRefused += outcome.dropped;
    return outcome;
  }

  change(change: CatalogChange): void {
    // One that is there already stays as it is.
    if (change.kind !== 'createDatabase') this.#expectWritable(change.database);
    this.administer(change);
  }

  /** As `change`, whatever the database's properties are. */
  administer(change: CatalogChange): void {
    this.#change(() => this.#engine.prepareChange(change, this.#log.writer));
  }

  deletePoints(selection: SeriesSelection): Slices<void> {
    return this.#delete('points', selection);
  }

  dropSeries(selection: SeriesSelection): Slices<void> {
    return this.#delete('series', selection);
  }

  *#delete(kind: 'points' | 'series', selection: SeriesSelection): Slices<void> {
    this.#expectWritable(selection.database);
    for (const part of this.#engine.deletion(kind, selection)) {
      if (part !== undefined) {
        this.#expectWritable(selection.database);
        this.#change(() => part(this.#log.writer));
      }
      yield;
    }
  }

  /** For whatever clients change. Looked at in the tick in which it is done. */
  #expectWritable(database: string): TableRules | undefined {
    const rules = this.#tables.get(database);
    if (rules?.readOnly === true) throw new ReadOnlyError(`database is read-only: ${database}`);
    return rules;
  }

  /** Puts into words, logs, applies. One entry; none when `prepare` has nothing to say. */
  #change<T>(prepare: () => T): T {
    const failure = this.writeFailure;
    if (failure !== undefined) throw new SeriesError(`write failed: ${failure.message}`);
    const { writer } = this.#log;
    this.#log.begin();
    const start = writer.pos;
    let result: T;
    try {
      result = prepare();
    } catch (error) {
      this.#log.abandon();
      this.#engine.discard();
      throw error;
    }
    const end = writer.pos;
    this.#entryBytes = end - start;
    const index = this.#log.end();
    // The bytes stay where they are until the turn is written out.
    if (index !== 0) this.#engine.apply(writer.buf, start, end, index);
    return result;
  }

  // ---- reads: the engine's own

  databases(): readonly Database[] {
    return this.#engine.databases().map((database) => this.#asInForce(database));
  }

  database(name: string): Database | undefined {
    const database = this.#engine.database(name);
    return database && this.#asInForce(database);
  }

  #asInForce(database: Database): Database {
    const rules = this.#tables.get(database.name);
    if (rules === undefined) return database;
    const retention = nanoseconds(rules.ttlDefaultMs);
    return {
      ...database,
      retentionPolicies: database.retentionPolicies.map((policy) =>
        this.#engine.policyInForce(policy, retention),
      ),
      isReadOnly: rules.readOnly,
      quotaMode: rules.quotaMode,
    };
  }

  /** Another one whenever there may be other databases than before. */
  get catalogVersion(): number {
    return this.#engine.catalogVersion;
  }

  scan(request: ScanRequest): Slices<SeriesScan> {
    const bypassesCaches = this.#tables.get(request.database)?.cacheBypass === true;
    return this.#engine.scan(bypassesCaches ? { ...request, bypassesCaches } : request);
  }

  measurements(selection: SeriesSelection): Slices<string[]> {
    return this.#engine.measurements(selection);
  }

  fieldKeys(selection: SeriesSelection & { measurement: string }): FieldKey[] {
    return this.#engine.fieldKeys(selection);
  }

  tagKeys(selection: SeriesSelection & { measurement: string }): Slices<string[]> {
    return this.#engine.tagKeys(selection);
  }

  tagValues(selection: SeriesSelection & { measurement: string }, tag: string): Slices<string[]> {
    return this.#engine.tagValues(selection, tag);
  }

  seriesKeys(selection: SeriesSelection): Slices<string[]> {
    return this.#engine.seriesKeys(selection);
  }

  seriesCardinality(selection: SeriesSelection): Slices<number> {
    return this.#engine.seriesCardinality(selection);
  }

  // ---- backups

  /** What backups and restores work on, beside the requests: whoever touches it ends the turn first. */
  get parts(): SeriesPodParts {
    const background = this.#background;
    return { engine: this.#engine, log: this.#log, pins: this.#pins, background };
  }

  /** What `prepare` puts into words, as one entry. Waits while the engine is behind. */
  async ingest(prepare: () => void): Promise<void> {
    while (this.#engine.congested && this.writeFailure === undefined) {
      this.#schedule(0);
      await this.#engine.drained();
    }
    this.#change(prepare);
    this.#log.endTurn();
  }

  // ---- turns

  endTurn(): number {
    return this.#log.endTurn();
  }

  whenSafe(position: number, then: () => void): void {
    this.#log.whenSafe(position, then);
  }

  // ---- what happens by itself

  #schedule(pauseMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#round(), pauseMs);
    this.#timer.unref();
  }

  #round(): void {
    let more = false;
    const startedAt = this.#clock.monotonic();
    try {
      more = this.tick();
    } catch (error) {
      this.#report('error', 'upkeep of time series failed', { err: error });
    }
    this.#steps?.ended(startedAt, this.#clock.monotonic(), maintenance);
    if (!more) this.#schedule(idlePauseMs);
    else this.#schedule(this.#isContended ? crowdedPauseMs : busyPauseMs);
  }

  get #isContended(): boolean {
    return this.#admission?.isContended(this.#clock.monotonic()) === true;
  }

  /** One round of upkeep; true when more is left to do. */
  tick(): boolean {
    if (this.writeFailure === undefined && this.#clock.monotonic() >= this.#nextRetention) {
      this.#nextRetention = this.#clock.monotonic() + this.#retentionIntervalMs;
      this.#change(() =>
        this.#engine.prepareRetention(this.#clock.now(), this.#log.writer, (database) =>
          nanoseconds(this.#tables.get(database)?.ttlDefaultMs ?? 0),
        ),
      );
    }
    this.#log.endTurn();
    // Whoever waits for room is not made to wait for a pause as well.
    const budget = this.#isContended ? contendedSliceMs : backgroundBudgetMs;
    const more = this.#engine.background(this.#engine.congested ? 4 * budget : budget, false);
    this.#checkpoints.makeIfDue();
    return more;
  }

  /** Makes a checkpoint and releases the log before it; one at a time. */
  checkpoint(): Promise<void> {
    return this.#checkpoints.make();
  }

  get writeFailure(): Error | undefined {
    return this.#log.failure ?? this.#engine.failure;
  }

  engineStats(): SeriesEngineStats {
    return this.#engine.stats();
  }

  logStatus(): ReturnType<ReplicatedLog['status']> {
    return this.#log.status();
  }

  setFsync(policy: ReplicatedLog['fsyncPolicy']): void {
    this.#log.fsyncPolicy = policy;
  }

  /** Lets the last writes reach the disk, and closes. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#checkpoints.running;
    this.endTurn();
    await this.#log.close();
    await this.#engine.close();
  }
}
