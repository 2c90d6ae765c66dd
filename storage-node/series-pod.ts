// A pod of time series: one engine, one log, one thread. The engine encodes a client's changes. The pod logs them and
// applies the bytes of the log, so a leader does exactly what a replay does. If the log may lose entries, they are
// applied after the commit (series-replica.ts), and reads wait until this pod is known to lead.

import { awaited, oneSlice, type Slices } from '../universal-row/slices.ts';
import type { ReadBounds } from '../universal-row/command.ts';
import type { Clock } from '../universal-row/environment.ts';
import type { MaybePromise } from '../universal-row/maybe-promise.ts';
import type { PointBatch } from '../universal-row/series/point-batch.ts';
import {
  NotLeaderError,
  type CatalogChange,
  type Database,
  type FieldKey,
  ReadOnlyError,
  type ScanRequest,
  SeriesError,
  type AppliedState,
  type SeriesReads,
  type SeriesScan,
  type SeriesSelection,
  type SeriesStore,
  UnavailableError,
  type WriteOutcome,
} from '../contracts/series-store.ts';
import type {
  PointRules,
  PortableSeriesEngine,
  SeriesEngineStats,
} from '../engines/series-engine.ts';
import type { StepSource, StepWatcher } from '../contracts/step-watcher.ts';
import { backgroundWork, type PodAdmission } from '../contracts/pod-admission.ts';
import type { SeriesBackgroundWork } from './background-work.ts';
import type { LogPins } from './backup/log-pins.ts';
import { isShadowDatabase } from './backup/shadow.ts';
import { type CheckpointStats, Checkpoints } from './checkpoints.ts';
import type { LogRole, PartitionLog } from './replicator/partition-log.ts';
import { ScheduledMaintenance } from './scheduled-maintenance.ts';
import { SeriesReplica } from './series-replica.ts';
import type { TableRules, TableRulesByName } from './table-rules.ts';

/** Target of a read. */
interface Read {
  readonly database: string;
  readonly reads?: SeriesReads | undefined;
}

/** See `SeriesPod.parts`. */
interface SeriesPodParts {
  readonly engine: PortableSeriesEngine;
  readonly log: PartitionLog;
  readonly pins: LogPins | undefined;
  readonly background: SeriesBackgroundWork | undefined;
}

export interface SeriesPodOptions {
  engine: PortableSeriesEngine;
  log: PartitionLog;
  /** Where incremental backups continue from. */
  pins?: LogPins | undefined;
  /** Properties of databases. The object is live: a change takes effect at the next action. */
  tables?: TableRulesByName | undefined;
  /** Receives reports of backups and restores, for charging them. */
  background?: SeriesBackgroundWork | undefined;
  clock: Clock;
  /** Schedules maintenance between requests. */
  admission?: PodAdmission | undefined;
  /** Hears of maintenance that takes long. */
  steps?: StepWatcher | undefined;
  /** A checkpoint is made whenever the log has grown by this much. */
  checkpointBytes: number;
  /** Milliseconds between two looks for shards that are older than their policy keeps. */
  retentionIntervalMs: number;
  /** Whether the node of a replica reads states with removed series; unset, all do. */
  knowsRemoved?: ((replica: number) => boolean) | undefined;
  /** Told about failures that no client asked about. */
  report: (level: 'info' | 'warn' | 'error', message: string, fields?: object) => void;
}

interface SeriesPodStats extends CheckpointStats {
  pointsWritten: number;
  pointsRefused: number;
  /** Writes that had to wait for the engine to catch up. */
  congestedWrites: number;
  loadedEntries: number;
}

const noTables: TableRulesByName = new Map();
/** Of the reason of a refusal that is kept with a batch. */
const mostErrorLength = 500;

function nanoseconds(ms: number): bigint {
  return BigInt(ms) * 1_000_000n;
}

/** Throws `NotLeaderError` where the state was replaced or closed meanwhile: what was found may be of neither. */
function* readable<T>(
  replica: SeriesReplica,
  bounds: ReadBounds | AppliedState | undefined,
  open: () => Slices<T>,
  release: (result: T) => void,
): Slices<T> {
  yield* awaited(replica.readable(bounds));
  const { state } = replica;
  if (state === undefined) throw new NotLeaderError(replica.leader);
  let result: T;
  try {
    result = yield* open();
  } catch (error) {
    if (replica.state === state) throw error;
    throw new NotLeaderError(replica.leader);
  }
  if (replica.state === state) return result;
  release(result);
  throw new NotLeaderError(replica.leader);
}

function pointRulesOf({ ttlDefaultMs, maxRowBytes }: TableRules): PointRules {
  return { retention: nanoseconds(ttlDefaultMs), maxPointBytes: maxRowBytes };
}

/** Milliseconds of a round while no tenants compete for the thread, and of the pause before the next one. */
const backgroundBudgetMs = 3;

/** One round of a pod's maintenance. */
const maintenance: StepSource = {
  stepInfo: () => ({ what: 'maintenance of time series', tenant: backgroundWork, bytes: 0 }),
};
const busyPauseMs = 4;
/** While several tenants compete for the thread: rounds are shorter then. */
const contendedPauseMs = 1;
const idlePauseMs = 50;
/** Longest pause of an idle replica: there may be thousands of them. */
const longestPauseMs = 1000;

export class SeriesPod implements SeriesStore {
  readonly stats: SeriesPodStats = {
    pointsWritten: 0,
    pointsRefused: 0,
    congestedWrites: 0,
    checkpoints: 0,
    lastCheckpointMs: 0,
    lastCheckpointAt: 0,
    lastCheckpointIndex: 0,
    checkpointFailures: 0,
    loadedEntries: 0,
  };

  readonly #engine: PortableSeriesEngine;
  readonly #log: PartitionLog;
  /** Absent where the log has one copy. */
  readonly #replica: SeriesReplica | undefined;
  readonly #pins: LogPins | undefined;
  readonly #background: SeriesBackgroundWork | undefined;
  readonly #tables: TableRulesByName;
  readonly #clock: Clock;
  readonly #maintenance: ScheduledMaintenance;
  readonly #steps: StepWatcher | undefined;
  readonly #retentionIntervalMs: number;
  readonly #report: SeriesPodOptions['report'];
  #timer: NodeJS.Timeout | undefined;
  /** A round of maintenance is queued in the CPU scheduler, with the weight of maintenance or with that of a tenant. */
  #isQueued = false;
  #isUrgent = false;
  /** Counts the requests for a round. */
  #requests = 0;
  #nextRetention = 0;
  readonly #checkpoints: Checkpoints;
  /** Index of the last entry when it was looked at last, and at the last checkpoint. */
  /** What `catalogVersion` was asked of last. */
  #seenCatalog = { version: 0, states: 0 };
  #catalogVersion = 0;
  #seenIndex = -1;
  #checkpointIndex = -1;
  #idleMs = idlePauseMs;
  /** Size of the last change. */
  #entryBytes = 0;

  constructor(options: SeriesPodOptions) {
    this.#engine = options.engine;
    this.#log = options.log;
    this.#pins = options.pins;
    this.#background = options.background;
    this.#tables = options.tables ?? noTables;
    this.#clock = options.clock;
    this.#maintenance = new ScheduledMaintenance(options.admission, options.clock);
    options.engine.slices = this.#maintenance;
    this.#steps = options.steps;
    this.#retentionIntervalMs = options.retentionIntervalMs;
    this.#report = options.report;
    const { engine, log, clock, report, checkpointBytes: everyBytes } = options;
    const { stats } = this;
    const checkpoint = async (): Promise<number> => {
      this.#checkpointIndex = await engine.checkpoint();
      return this.#checkpointIndex;
    };
    const checkpointed = { checkpoint };
    this.#checkpoints = new Checkpoints({
      ...{ engine: checkpointed, log, clock, everyBytes, stats, report },
    });
    if (!log.mayLose) return;
    this.#replica = new SeriesReplica({
      ...{ engine, log, clock, knowsRemoved: options.knowsRemoved },
      hurry: () => this.#schedule(0),
      checkpoint: () => void this.checkpoint(),
    });
    log.listen(this.#replica);
  }

  /** A log with one copy is always led. */
  get role(): LogRole {
    return this.#replica?.role ?? 'leader';
  }

  /** The replica that leads; 0 while none is known, and where there is one copy. */
  get leader(): number {
    return this.#replica?.leader ?? 0;
  }

  /** Begins the work that happens by itself: flushing, compaction, retention, checkpoints. */
  start(): void {
    this.#nextRetention = this.#clock.monotonic();
    this.#schedule(idlePauseMs);
  }

  // ---- changes

  write(database: string, retentionPolicy: string, batch: PointBatch): MaybePromise<WriteOutcome> {
    if (this.#replica !== undefined) {
      return this.#writeCommitted(this.#replica, database, retentionPolicy, batch);
    }
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
    this.#hurry();
    this.stats.pointsWritten += outcome.written;
    this.stats.pointsRefused += outcome.dropped;
    return outcome;
  }

  /** As `write`, where this waits for the commit. */
  async #writeCommitted(
    replica: SeriesReplica,
    database: string,
    retentionPolicy: string,
    batch: PointBatch,
  ): Promise<WriteOutcome> {
    const { writer } = this.#log;
    const outcome = await replica.change(
      () => {
        const rules = this.#expectWritable(database);
        const start = writer.pos;
        const now = this.#clock.now();
        const prepared = this.#engine.prepareWrite(
          database,
          retentionPolicy,
          batch,
          now,
          writer,
          rules && pointRulesOf(rules),
        );
        // A batch of which nothing is stored may be prepared again.
        if (batch.identity !== undefined && writer.pos > start) {
          const { written, dropped } = prepared;
          // The error may name measurements and fields in full.
          const error = prepared.error?.slice(0, mostErrorLength);
          this.#engine.prepareStored({ id: batch.identity.id, written, dropped, error }, writer);
        }
        prepared.logBytes = writer.pos - start;
        return prepared;
      },
      () => this.#engine.joinsWrite(database, retentionPolicy, batch),
      batch.identity,
    );
    this.#hurry();
    this.stats.pointsWritten += outcome.written;
    this.stats.pointsRefused += outcome.dropped;
    return outcome;
  }

  change(change: CatalogChange): MaybePromise<void> {
    return this.#changeCatalog(change, () => {
      // One that is there already stays as it is.
      if (change.kind !== 'createDatabase') this.#expectWritable(change.database);
    });
  }

  /** Like `change`, ignoring the database's properties. */
  administer(change: CatalogChange): MaybePromise<void> {
    return this.#changeCatalog(change, () => {});
  }

  #changeCatalog(change: CatalogChange, check: () => void): MaybePromise<void> {
    const prepare = (): void => {
      check();
      this.#engine.prepareChange(change, this.#log.writer);
    };
    if (this.#replica !== undefined) return this.#replica.change(prepare);
    this.#change(prepare);
  }

  deletePoints(selection: SeriesSelection): Slices<void> {
    return this.#delete('points', selection);
  }

  dropSeries(selection: SeriesSelection): Slices<void> {
    return this.#delete('series', selection);
  }

  *#delete(kind: 'points' | 'series', selection: SeriesSelection): Slices<void> {
    this.#expectWritable(selection.database);
    const replica = this.#replica;
    if (replica !== undefined) yield* awaited(replica.leading());
    let hasBegun = false;
    for (const part of this.#engine.deletion(kind, selection)) {
      if (part !== undefined) {
        const prepare = (): void => {
          this.#expectWritable(selection.database);
          // Behind the entries of deletions before it.
          if (!hasBegun) replica?.expectInTime(selection.mark);
          part(this.#log.writer);
          hasBegun = true;
        };
        if (replica === undefined) this.#change(prepare);
        else yield* awaited(replica.change(prepare));
      }
      yield;
    }
    replica?.deleted();
  }

  /** Checks the rules for clients' changes, in the tick of the change. */
  #expectWritable(database: string): TableRules | undefined {
    const rules = this.#tables.get(database);
    if (rules?.readOnly === true) throw new ReadOnlyError(`database is read-only: ${database}`);
    return rules;
  }

  /** Encodes, logs and applies a change. One entry; none when `prepare` encodes nothing. */
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
    // The bytes stay where they are until the tick is written out.
    if (index !== 0) this.#engine.apply(writer.buf, start, end, index);
    return result;
  }

  // ---- reads: the engine's own

  databases(): readonly Database[] {
    return this.keptDatabases().map((database) => this.#asInForce(database));
  }

  database(name: string): Database | undefined {
    const replaced = this.#replica?.replaced?.databases;
    const database =
      replaced === undefined
        ? this.#engine.database(name)
        : replaced.find((one) => one.name === name);
    return database && this.#asInForce(database);
  }

  /** As they are kept, without the properties in force. */
  keptDatabases(): readonly Database[] {
    return this.#replica?.replaced?.databases ?? this.#engine.databases();
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
    const { catalogVersion } = this.#engine;
    const states = this.#replica?.states ?? 0;
    if (catalogVersion !== this.#seenCatalog.version || states !== this.#seenCatalog.states) {
      this.#seenCatalog = { version: catalogVersion, states };
      this.#catalogVersion++;
    }
    return this.#catalogVersion;
  }

  /** Resolves when the state here has all that was committed before the call; where it leads, if it does so for certain. */
  async refresh(): Promise<void> {
    await this.#replica?.readable();
  }

  scan(request: ScanRequest): Slices<SeriesScan> {
    const bypassesCaches = this.#tables.get(request.database)?.cacheBypass === true;
    return this.#read(
      request,
      () => this.#engine.scan(bypassesCaches ? { ...request, bypassesCaches } : request),
      (scan) => scan.close(),
    );
  }

  measurements(selection: SeriesSelection): Slices<string[]> {
    return this.#read(selection, () => this.#engine.measurements(selection));
  }

  fieldKeys(selection: SeriesSelection & { measurement: string }): Slices<FieldKey[]> {
    return this.#read(selection, () => oneSlice(() => this.#engine.fieldKeys(selection)));
  }

  tagKeys(selection: SeriesSelection & { measurement: string }): Slices<string[]> {
    return this.#read(selection, () => this.#engine.tagKeys(selection));
  }

  tagValues(selection: SeriesSelection & { measurement: string }, tag: string): Slices<string[]> {
    return this.#read(selection, () => this.#engine.tagValues(selection, tag));
  }

  seriesKeys(selection: SeriesSelection): Slices<string[]> {
    return this.#read(selection, () => this.#engine.seriesKeys(selection));
  }

  seriesCardinality(selection: SeriesSelection): Slices<number> {
    return this.#read(selection, () => this.#engine.seriesCardinality(selection));
  }

  #read<T>(of: Read, open: () => Slices<T>, release: (result: T) => void = () => {}): Slices<T> {
    const replica = this.#replica;
    return replica === undefined ? open() : readable(replica, this.#boundsOf(of), open, release);
  }

  #boundsOf({ database, reads }: Read): ReadBounds | AppliedState | undefined {
    if (reads === undefined) return this.#tables.get(database)?.readBounds;
    return reads === 'strong' ? undefined : reads;
  }

  /** Resolves when it certainly leads, and has since the call. Rejects with `NotLeaderError`. */
  async leading(): Promise<void> {
    await this.#replica?.leading();
  }

  /** Whether it follows, and its state is no older. */
  isWithin(bounds: ReadBounds): boolean {
    return this.#replica?.isWithin(bounds) === true;
  }

  /** Last entry of the log that reads here may have seen. */
  get appliedIndex(): number {
    return this.#replica?.replaced?.appliedIndex ?? this.#engine.appliedIndex;
  }

  // ---- backups

  /**
   * Parts of the pod for backups and restores, besides requests: their caller ends the tick first.
   */
  get parts(): SeriesPodParts {
    const background = this.#background;
    return { engine: this.#engine, log: this.#log, pins: this.#pins, background };
  }

  /**
   * Logs and applies the changes that `prepare` encodes, as one entry. Waits while the engine is
   * behind.
   */
  async ingest(prepare: () => void): Promise<void> {
    while (this.#engine.congested && this.writeFailure === undefined) {
      this.#schedule(0);
      await this.#engine.drained();
    }
    if (this.#replica !== undefined) return await this.#replica.change(prepare);
    this.#change(prepare);
    this.#log.endTick();
  }

  // ---- ticks

  endTick(): number {
    // With several copies of the log, changes are answered when they are committed.
    return this.#replica === undefined ? this.#log.endTick() : -1;
  }

  whenSafe(position: number, then: () => void): void {
    this.#log.whenSettled(position, () => then());
  }

  // ---- maintenance
  //

  #schedule(pauseMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      if (!this.#isQueued) this.#enqueue(this.#engine.isBehind);
    }, pauseMs);
    this.#timer.unref();
  }

  #enqueue(isUrgent: boolean): void {
    this.#isQueued = true;
    this.#isUrgent = isUrgent;
    const request = ++this.#requests;
    this.#maintenance.start(isUrgent, () => {
      // Another one took its place in the queue.
      if (request === this.#requests) this.#round();
    });
  }

  /** A round that was queued while there was little to do would wait for as long as tenants compete. */
  #hurry(): void {
    if (this.#isQueued && !this.#isUrgent && this.#engine.isBehind) this.#enqueue(true);
  }

  #round(): void {
    this.#isQueued = false;
    // Closed while it was queued.
    if (this.#timer === undefined) return;
    let more = false;
    const startedAt = this.#clock.monotonic();
    try {
      more = this.tick();
    } catch (error) {
      this.#report('error', 'maintenance of time series failed', { err: error });
    }
    this.#steps?.ended(startedAt, this.#clock.monotonic(), maintenance);
    if (!more) this.#schedule(this.#idlePause());
    else this.#schedule(this.#maintenance.isContended ? contendedPauseMs : busyPauseMs);
  }

  /** Longer and longer while nothing is written to a replica. */
  #idlePause(): number {
    if (this.#replica === undefined) return idlePauseMs;
    const { appliedIndex } = this.#engine;
    const isIdle = appliedIndex === this.#seenIndex;
    this.#seenIndex = appliedIndex;
    this.#idleMs = isIdle ? Math.min(2 * this.#idleMs, longestPauseMs) : idlePauseMs;
    return this.#idleMs;
  }

  /** One round of maintenance; true when more is left to do. */
  tick(): boolean {
    if (this.writeFailure === undefined && this.#clock.monotonic() >= this.#nextRetention) {
      this.#nextRetention = this.#clock.monotonic() + this.#retentionIntervalMs;
      this.#dropExpired();
    }
    this.endTick();
    this.#replica?.tick();
    const budget = this.#maintenance.sliceMs(this.#engine.isBehind, backgroundBudgetMs);
    const more = this.#engine.background(budget, false);
    // The log of several groups grows by writes of other groups, too.
    if (this.#engine.appliedIndex !== this.#checkpointIndex) this.#checkpoints.makeIfDue();
    return more;
  }

  #dropExpired(): void {
    const prepare = (): void =>
      this.#engine.prepareRetention(this.#clock.now(), this.#log.writer, (database) => {
        // What is being restored is compared with the backup first.
        if (isShadowDatabase(database)) return undefined;
        return nanoseconds(this.#tables.get(database)?.ttlDefaultMs ?? 0);
      });
    if (this.#replica === undefined) this.#change(prepare);
    else if (this.#replica.role === 'leader') {
      this.#replica.change(prepare).catch((error: unknown) => {
        // The next leader repeats the search.
        if (error instanceof UnavailableError) return;
        this.#report('error', 'expired shards were not dropped', { err: error });
      });
    }
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

  logStatus(): ReturnType<PartitionLog['status']> {
    return this.#log.status();
  }

  setFsync(policy: PartitionLog['fsyncPolicy']): void {
    this.#log.fsyncPolicy = policy;
  }

  /** Lets the last writes reach the disk, and closes. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    // A checkpoint may wait for an install, which ends with the replica.
    this.#replica?.close();
    await this.#checkpoints.running;
    this.endTick();
    await this.#log.close();
    await this.#engine.close();
  }
}
