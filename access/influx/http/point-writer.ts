// From line protocol to the store: parses a body as it comes, stores batch after batch, and reports
// errors with InfluxDB's texts. Parsers are reused, each for one body at a time.

import type { Clock } from '../../../universal-row/environment.ts';
import type { MaybePromise } from '../../../universal-row/maybe-promise.ts';
import { type BatchIdentity, batchId } from '../../../universal-row/series/batch-identity.ts';
import type { PointBatch, PointGroup } from '../../../universal-row/series/point-batch.ts';
import type { SeriesStore, WriteOutcome } from '../../../contracts/series-store.ts';
import type { SeriesWork } from '../../../request-units/series-pricer.ts';
import { type PodAdmission, TimeSlice } from '../../../contracts/pod-admission.ts';
import { defaultLineParserLimits, LineParser } from '../line-protocol/line-parser.ts';
import type { HotNames } from '../../gateway/hot-names.ts';
import { BatchPace, leastRows } from './batch-pace.ts';
import type { GroupCommit } from './group-commit.ts';
import type { ExchangeMemory } from './exchange-memory.ts';
import { HttpError, MemoryRefusal } from './http-error.ts';
import type { InfluxCounters } from './influx-metrics.ts';
import { SeriesCaches } from './series-caches.ts';

export interface WriteTarget {
  /** Number of the tenant; `store` is its view of the data. */
  readonly tenant: number;
  readonly store: SeriesStore;
  readonly database: string;
  /** '' for the default one. */
  readonly retentionPolicy: string;
  /** As the request has it; '' for nanoseconds. */
  readonly precision: string;
  /** Called again before each batch: throws once the caller has lost its rights. */
  readonly check?: () => void;
  /** Counters of the work done. */
  readonly work?: SeriesWork | undefined;
  /** Unix milliseconds: the time of points without one. Absent: now. */
  readonly receivedAt?: number | undefined;
  /** Of the body: see `Exchange`. */
  readonly identity?: BatchIdentity | undefined;
  /** The store is about to be given a batch. */
  readonly given?: (() => void) | undefined;
  /** Account of its parser's memory. */
  memory?: ExchangeMemory | undefined;
  /** Milliseconds for which the request was queued for admission. */
  waitedMs?: number;
}

interface PointWriterOptions {
  commit: GroupCommit;
  counters: InfluxCounters;
  clock: Clock;
  /** Samples the series that are written, while hot names are wanted. */
  hot?: (() => HotNames | undefined) | undefined;
  /** Schedules the time slices. */
  podAdmission?: PodAdmission | undefined;
  /**
   * Milliseconds in which a complete body, or each piece of a streamed one, must be stored and safe; 0 for no limit.
   */
  timeoutMs: number;
}

/**
 * Outcome of a body. `dropped` and `error` count points that could be parsed, but were not stored.
 */
export interface WriteReport extends WriteOutcome {
  /** Lines that could not be read, with the reasons; '' for none. */
  readonly parseErrors: string;
  /** Not all lines were bad. */
  readonly hasGoodLines: boolean;
}

/** Thrown for a store that is too far behind. The text makes clients retry. */
class WriteTimeout extends HttpError {
  constructor(isV2: boolean) {
    super(isV2 ? 503 : 500, 'timeout', { headers: { 'Retry-After': '1' } });
  }
}

/** Least fraction of the time limit for a request that has waited. */
const leastTimeout = 0.25;
// Limit of streamed bodies: each holds a parser and part of a batch until its client has sent all of it.
const maxFlowing = 64;
// Two are needed to have one at hand while the store works on another's batch.
const keptParsers = 4;
const samplesPerBatch = 4;
/** Size of a value of a point, its time included, approximate. */
const bytesPerValue = 16;
/** Longest time slice while no other tenant competes. */
const sliceMs = 8;

/**
 * Number of streamed bodies by tenant. A tenant may have at most as many as slots are free, so slow senders of one tenant
 * do not lock out the others.
 */
class Flows {
  #all = 0;
  readonly #byTenant = new Map<number, number>();

  mayBegin(tenant: number): boolean {
    return (this.#byTenant.get(tenant) ?? 0) < maxFlowing - this.#all;
  }

  begin(tenant: number): void {
    this.#all++;
    this.#byTenant.set(tenant, (this.#byTenant.get(tenant) ?? 0) + 1);
  }

  end(tenant: number): void {
    this.#all--;
    const left = this.#byTenant.get(tenant)! - 1;
    if (left === 0) this.#byTenant.delete(tenant);
    else this.#byTenant.set(tenant, left);
  }
}

export class PointWriter {
  readonly #options: PointWriterOptions;
  readonly #caches = new SeriesCaches();
  readonly #parsers: LineParser[] = [];
  readonly #flows = new Flows();
  readonly #pace = new BatchPace();
  readonly #queue: (() => void)[] = [];

  constructor(options: PointWriterOptions) {
    this.#options = options;
  }

  /** A body in memory, or a stream. Resolves when the stored points are durable. */
  async write(
    target: WriteTarget,
    body: readonly Buffer[] | AsyncIterable<Buffer>,
    isV2: boolean,
  ): Promise<WriteReport> {
    // Clients give up after a while, whatever the reason for the wait.
    const all = this.#options.timeoutMs;
    const timeoutMs = Math.max(all - (target.waitedMs ?? 0), leastTimeout * all);
    if (isArray(body))
      return await this.#write(target, body, { isV2, timeoutMs, waitsForLog: true });
    const { tenant } = target;
    while (!this.#flows.mayBegin(tenant)) {
      await new Promise<void>((resolve) => this.#queue.push(resolve));
    }
    this.#flows.begin(tenant);
    try {
      return await this.#write(target, body, { isV2, timeoutMs, waitsForLog: true });
    } finally {
      this.#flows.end(tenant);
      // A write that may not begin is queued again.
      for (const retry of this.#queue.splice(0)) retry();
    }
  }

  /** As `write`, however long it takes, but it does not wait for the log. */
  async store(target: WriteTarget, body: readonly Buffer[]): Promise<WriteReport> {
    return await this.#write(target, body, { isV2: false, timeoutMs: 0, waitsForLog: false });
  }

  async #write(
    target: WriteTarget,
    body: readonly Buffer[] | AsyncIterable<Buffer>,
    waits: Waits,
  ): Promise<WriteReport> {
    const cache = this.#caches.of(target.tenant);
    const parser = this.#parsers.pop() ?? new LineParser(cache);
    const run = new WriteRun(this.#options, target, parser, waits, this.#pace);
    try {
      const now = target.receivedAt ?? this.#options.clock.now();
      parser.begin({ precision: target.precision, now, cache });
      if (isArray(body)) {
        for (const piece of body) {
          run.push(piece);
          await run.storeBatches();
        }
      } else {
        for await (const piece of run.received(body)) {
          run.push(piece);
          await run.storeBatches();
          if (target.memory?.parserHolds(parser.heldBytes) === false) {
            throw new MemoryRefusal(waits.isV2);
          }
        }
      }
      parser.finish();
      await run.storeBatches();
      const report = run.report();
      if (run.hasChanged && waits.waitsForLog) await run.within(this.#options.commit.safe());
      return report;
    } finally {
      // A batch that the store still has is its parser's too.
      void run.idle.then(() => {
        if (this.#parsers.length < keptParsers) this.#parsers.push(parser);
      });
    }
  }
}

function valuesOf({ columns }: PointGroup): number {
  return columns.reduce((sum, { count }) => sum + count, 0);
}

/** Waits of a run, and their durations. */
interface Waits {
  /** Decides how a timeout is told. */
  isV2: boolean;
  /** 0 for no limit. */
  timeoutMs: number;
  waitsForLog: boolean;
}

function isArray(body: readonly Buffer[] | AsyncIterable<Buffer>): body is readonly Buffer[] {
  return Array.isArray(body);
}

/** One body on its way. */
class WriteRun {
  /** The store was given something. */
  hasChanged = false;
  /** Resolves when the store has no batch of this one. */
  idle: Promise<unknown> = Promise.resolve();
  readonly #options: PointWriterOptions;
  readonly #target: WriteTarget;
  readonly #parser: LineParser;
  readonly #waits: Waits;
  readonly #pace: BatchPace;
  readonly #slice: TimeSlice;
  #deadline = 0;
  /** Rows of the current batch, as it would be without competing tenants. */
  #batchRows = 0;
  #batchValues = 0;
  /** In batches before the current one. */
  #rowsBefore = 0;
  readonly #outcome: WriteOutcome = { written: 0, dropped: 0, error: undefined };

  constructor(
    options: PointWriterOptions,
    target: WriteTarget,
    parser: LineParser,
    waits: Waits,
    pace: BatchPace,
  ) {
    this.#options = options;
    this.#target = target;
    this.#parser = parser;
    this.#waits = waits;
    this.#pace = pace;
    this.#slice = new TimeSlice(options.podAdmission, target.tenant, sliceMs);
    this.#restartTimer();
  }

  /** Restarts the time limit with each piece, because the time before includes waiting for the client. */
  async *received(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer, undefined> {
    const pieces = body[Symbol.asyncIterator]();
    try {
      for (;;) {
        const { value, done } = (await this.#slice.awaiting(pieces.next())) as IteratorResult<
          Buffer,
          undefined
        >;
        this.#restartTimer();
        if (done === true) return;
        yield value;
      }
    } finally {
      await pieces.return?.();
    }
  }

  #restartTimer(): void {
    this.#deadline = performance.now() + this.#waits.timeoutMs;
  }

  push(piece: Buffer): void {
    const { work } = this.#target;
    if (work !== undefined) work.lineBytes += piece.length;
    this.#parser.push(piece);
  }

  async storeBatches(): Promise<void> {
    const { commit } = this.#options;
    const { store, database, retentionPolicy, check } = this.#target;
    for (;;) {
      const turn = this.#slice.turn();
      if (turn !== undefined) await turn;
      this.#limitRows();
      const began = performance.now();
      const batch = this.#parser.next();
      if (batch === undefined) {
        // A long line gives nothing, but is looked at, too.
        if (this.#slice.isOver) await this.#slice.yield();
        return;
      }
      if (batch.rows === 0) {
        // Nothing but bad or empty lines for a while.
        if (this.#slice.isOver) await this.#slice.yield();
        continue;
      }
      check?.();
      const hot = this.#options.hot?.();
      if (hot !== undefined) this.#sample(hot, batch);
      batch.identity = this.#identityOf(batch);
      this.#target.given?.();
      const pending = store.write(database, retentionPolicy, batch);
      this.#pace.took(batch.rows, performance.now() - began);
      let outcome: WriteOutcome;
      if (pending instanceof Promise) {
        outcome = await this.#wait(pending);
        this.#slice.restart();
      } else outcome = pending;
      this.#add(outcome, batch);
      this.hasChanged = true;
      commit.changed();
      if (this.#slice.isOver) await this.#slice.yield();
    }
  }

  /**
   * A leader that may have been given the body before must find each batch stored or not, but not part of it: batches end at
   * multiples of the least size where they can, and those of a further attempt are of that size.
   */
  #limitRows(): void {
    const { identity } = this.#target;
    // While tenants compete, about as many as are stored within a time slice.
    const isLeast = this.#slice.isContended || identity?.isRepeated === true;
    const most = isLeast ? leastRows : this.#pace.rows;
    const before = this.#rowsBefore;
    if (identity === undefined) this.#parser.limitRows(most);
    else this.#parser.limitRows(most - (before % leastRows), leastRows, before);
  }

  #identityOf({ rows }: PointBatch): BatchIdentity | undefined {
    const { identity } = this.#target;
    const from = this.#rowsBefore;
    this.#rowsBefore += rows;
    return identity && { ...identity, id: batchId(identity.id, from, rows) };
  }

  /** A few of a batch's points stand for all of them. */
  #sample(hot: HotNames, { groups, rows, cache }: PointBatch): void {
    const { tenant, database } = this.#target;
    const samples = Math.min(rows, samplesPerBatch);
    for (let n = 0; n < samples; n++) {
      let row = Math.floor(Math.random() * rows);
      let at = 0;
      while (row >= groups[at]!.rows) row -= groups[at++]!.rows;
      const group = groups[at]!;
      const handle = group.series[row]!;
      const keys = cache.keys(handle);
      const key = keys.toString('latin1', cache.keyStart(handle), cache.keyEnd(handle));
      const values = valuesOf(group) / group.rows;
      const points = rows / samples;
      hot.add(tenant, database, key, points, points * values, points * values * bytesPerValue);
    }
  }

  #wait(pending: Promise<WriteOutcome>): Promise<WriteOutcome> {
    this.idle = pending.then(
      () => undefined,
      () => undefined,
    );
    return this.within(pending);
  }

  #add({ written, dropped, error, logBytes = 0 }: WriteOutcome, batch: PointBatch): void {
    const { counters } = this.#options;
    const { work } = this.#target;
    if (work !== undefined) {
      // The cost of a write must not depend on other load.
      if (this.#batchRows === 0) work.batches++;
      this.#batchRows += batch.rows;
      for (const group of batch.groups) this.#batchValues += valuesOf(group);
      const { rows, values } = defaultLineParserLimits;
      if (this.#batchRows >= rows || this.#batchValues >= values) {
        this.#batchRows = 0;
        this.#batchValues = 0;
      }
      work.points += written;
      work.logBytes += logBytes;
    }
    counters.pointsWritten += written;
    counters.pointsDropped += dropped;
    this.#outcome.written += written;
    this.#outcome.dropped += dropped;
    this.#outcome.error ??= error;
  }

  /** Waits for the store, but not longer than the client is going to. */
  async within<T>(pending: MaybePromise<T>): Promise<T> {
    if (this.#waits.timeoutMs === 0) return await pending;
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<never>((_resolve, reject) => {
      const left = this.#deadline - performance.now();
      timer = setTimeout(
        () => {
          this.#options.counters.writeTimeouts++;
          reject(new WriteTimeout(this.#waits.isV2));
        },
        Math.max(left, 1),
      );
    });
    try {
      return await Promise.race([pending, timeout]);
    } finally {
      clearTimeout(timer);
    }
  }

  report(): WriteReport {
    const parser = this.#parser;
    const { counters } = this.#options;
    counters.linesRejected += parser.badLines;
    counters.pointsDropped += parser.dropped;
    const { written, dropped, error } = this.#outcome;
    return {
      written,
      dropped: dropped + parser.dropped,
      error: error ?? parser.dropError,
      parseErrors: parser.errors.join('\n'),
      hasGoodLines: parser.goodLines > 0,
    };
  }
}
