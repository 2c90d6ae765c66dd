// One group of time series, as one store: requests go to the replica that leads, in this process or at another node, and
// wait for a short while where none is known to lead.

import {
  type CatalogChange,
  type Database,
  type FieldKey,
  NotLeaderError,
  OutcomeUnknownError,
  type ScanRequest,
  type SeriesScan,
  type SeriesSelection,
  type SeriesStore,
  ThrottledError,
  UnavailableError,
  type WriteOutcome,
} from '../../../contracts/series-store.ts';
import type { MaybePromise } from '../../../universal-row/maybe-promise.ts';
import { offered, repeated } from '../../../universal-row/series/batch-identity.ts';
import type { PointBatch } from '../../../universal-row/series/point-batch.ts';
import { awaited, type Slices, whenFinished } from '../../../universal-row/slices.ts';
import type { DatabaseSource } from '../tenants/database-index.ts';
import { RemoteSeriesStore } from './remote-series-store.ts';
import type { SeriesLink } from './series-link.ts';

/** A replica of the group in this process. */
export interface LocalReplica extends SeriesStore, DatabaseSource {
  readonly role: 'leader' | 'follower' | 'learner';
  /** Last entry of the log that reads here may have seen. */
  readonly appliedIndex: number;
  administer(change: CatalogChange): MaybePromise<void>;
  /** `databases` without the properties in force; absent where that is the same. */
  keptDatabases?(): readonly Database[];
}

export interface GroupSeriesOptions {
  readonly group: number;
  readonly tenant: number;
  /**
   * The replica on this node, if there is one. It answers all reads. A follower first asks the leader for the log
   * index that it must have applied.
   */
  readonly local: () => LocalReplica | undefined;
  /** The node that leads, as far as known here; 0 if unknown. */
  readonly leader: () => number;
  /** Undefined for a node that is not known. */
  readonly linkOf: (node: number) => SeriesLink | undefined;
  /** Reports that a node does not lead. `leader` is the node that it names instead; 0 if it knows none. */
  readonly notThere: (node: number, leader: number) => void;
  readonly epoch?: (() => number) | undefined;
  /** Milliseconds within which a request is tried again. */
  readonly waitMs: () => number;
  /** Milliseconds that one attempt at another node has; 0 or absent: no limit but the link's. */
  readonly timeoutMs?: (() => number) | undefined;
  readonly knowsMarks?: (() => boolean) | undefined;
  /** Before each attempt of a change of databases; its rejection ends the change. */
  readonly beforeChange?: (() => Promise<void>) | undefined;
}

type Place = LocalReplica | RemoteSeriesStore;

interface Refreshed {
  readonly number: number;
  readonly place: Place | undefined;
  /** Last entry of the log that these databases may have in them. */
  readonly index: number;
}

type MeasurementOf = SeriesSelection & { measurement: string };

/** Replica ids tell their node. */
const replicasPerNode = 2 ** 20;
const retryMs = 50;
const noLimit = (): number => 0;
/** Attempts that follow a hint at once. */
const maxHops = 2;

/** Attempts of one request. */
class Attempts {
  readonly #until: number;
  #hops = 0;
  /** An attempt may have changed something. */
  isUnknown = false;
  /** The replica here could not answer: it does not hear of the leader, or gets another state. */
  avoidsHere = false;

  constructor(waitMs: number) {
    this.#until = performance.now() + waitMs;
  }

  /** Waits before the next attempt after this error. Throws when there is no further attempt. */
  async next(error: UnavailableError): Promise<void> {
    if (error instanceof OutcomeUnknownError) this.isUnknown = true;
    if (error instanceof NotLeaderError && error.leader !== 0 && this.#hops++ < maxHops) return;
    const ms = error instanceof ThrottledError ? Math.max(1, error.retryMs) : retryMs;
    if (performance.now() + ms > this.#until) {
      throw this.isUnknown ? new OutcomeUnknownError() : error;
    }
    await new Promise((resolve) => setTimeout(resolve, ms));
  }
}

export class GroupSeriesStore implements SeriesStore, DatabaseSource {
  readonly #options: GroupSeriesOptions;
  readonly #remotes = new Map<number, RemoteSeriesStore>();
  /** What databases were read from last, and its version. */
  #source: DatabaseSource | undefined;
  #sourceVersion = -1;
  #version = 0;
  #seenHere = 0;
  #refreshes = 0;
  /** Whose databases were brought up to date last, and by which refresh. */
  #refreshed: Refreshed = { number: 0, place: undefined, index: 0 };
  /** Requests that use the databases of the last refresh. */
  #holders = 0;
  /** The node that led last; 0 for none or this one. */
  #lastLeader = 0;
  #isClosed = false;

  constructor(options: GroupSeriesOptions) {
    this.#options = options;
  }

  /** The highest index of the group's log that an answer may have seen. */
  get seenIndex(): number {
    let seen = this.#seenHere;
    for (const { seenIndex } of this.#remotes.values()) seen = Math.max(seen, seenIndex);
    return seen;
  }

  // ---- places

  /** Where to read. Throws `NotLeaderError`. */
  #reader({ avoidsHere }: Attempts): Place {
    const local = this.#options.local();
    // One that is being filled may take long.
    const mayBeHere = local?.role === 'leader' || (local?.role === 'follower' && !avoidsHere);
    return mayBeHere ? local! : this.#remote();
  }

  /** Where to write. Throws `NotLeaderError`. */
  #writer(): Place {
    const local = this.#options.local();
    if (local?.role !== 'leader') return this.#remote();
    this.#leads(0);
    return local;
  }

  /** Where the last leader is gone, requests that it has not answered are repeated at the new one. */
  #leads(node: number): void {
    const last = this.#lastLeader;
    if (node === last) return;
    this.#lastLeader = node;
    if (last !== 0) this.#options.linkOf(last)?.suspect();
  }

  #remote(): RemoteSeriesStore {
    const node = this.#options.leader();
    const link = node === 0 ? undefined : this.#options.linkOf(node);
    if (link === undefined || this.#isClosed) throw new NotLeaderError(0);
    this.#leads(node);
    const known = this.#remotes.get(node);
    if (known?.link === link) return known;
    known?.close();
    const { group, tenant, epoch, timeoutMs = noLimit, knowsMarks } = this.#options;
    const remote = new RemoteSeriesStore({ link, group, tenant, epoch, timeoutMs, knowsMarks });
    remote.seenIndex = known?.seenIndex ?? 0;
    this.#remotes.set(node, remote);
    return remote;
  }

  #failedAt(place: Place | undefined, error: UnavailableError, attempts: Attempts): void {
    if (!(error instanceof NotLeaderError)) return;
    attempts.avoidsHere = place !== undefined && place === this.#options.local();
    if (place === undefined) return;
    const leader = Math.floor(error.leader / replicasPerNode);
    for (const [node, remote] of this.#remotes) {
      if (remote === place) this.#options.notThere(node, leader);
    }
  }

  #answeredBy(place: Place): void {
    if (place instanceof RemoteSeriesStore) return;
    this.#seenHere = Math.max(this.#seenHere, place.appliedIndex);
  }

  /** Runs at the leader. `mayRepeat`: also where it may have been done before. */
  async #atLeader<T>(
    mayRepeat: boolean,
    run: (place: Place, isUnknown: boolean) => MaybePromise<T>,
    choose: (attempts: Attempts) => Place = () => this.#writer(),
  ): Promise<T> {
    const attempts = new Attempts(this.#options.waitMs());
    for (;;) {
      let place: Place | undefined;
      try {
        place = choose(attempts);
        const result = await run(place, attempts.isUnknown);
        this.#answeredBy(place);
        return result;
      } catch (error) {
        if (!(error instanceof UnavailableError)) throw error;
        const isUnknown = error instanceof OutcomeUnknownError;
        if (isUnknown && (!mayRepeat || error.isFinal)) throw error;
        this.#failedAt(place, error, attempts);
        await attempts.next(error);
      }
    }
  }

  *#read<T>(open: (place: Place) => Slices<T>): Slices<T> {
    const attempts = new Attempts(this.#options.waitMs());
    for (;;) {
      let place: Place | undefined;
      let failure: UnavailableError;
      try {
        place = this.#reader(attempts);
        const result = yield* open(place);
        this.#answeredBy(place);
        return result;
      } catch (error) {
        if (!(error instanceof UnavailableError)) throw error;
        failure = error;
      }
      this.#failedAt(place, failure, attempts);
      yield* awaited(attempts.next(failure));
    }
  }

  // ---- databases

  /**
   * While requests use the last refresh: the databases of the place that was refreshed, unless the replica here has the same log entries.
   * That replica may have been opened just now, and a leader that was elected just now may not have told its databases. The place is used
   * even if its replica has left this node, or its node is gone.
   */
  #databases(): DatabaseSource & Pick<SeriesStore, 'database'> {
    const local = this.#options.local();
    const { place, index } = this.#refreshed;
    const isHere = local !== undefined && local.appliedIndex >= index;
    if (this.#holders > 0 && !isHere && place !== undefined) return place;
    if (local !== undefined) return local;
    let remote: RemoteSeriesStore | undefined;
    try {
      remote = this.#remote();
    } catch (error) {
      if (!(error instanceof NotLeaderError)) throw error;
    }
    if (remote?.hasCatalog === true) return remote;
    // Until the next leader has told its catalog, the last one's is the best that is known.
    for (const known of this.#remotes.values()) if (known.hasCatalog) return known;
    return noDatabases;
  }

  get catalogVersion(): number {
    const source = this.#databases();
    if (source !== this.#source || source.catalogVersion !== this.#sourceVersion) {
      this.#source = source;
      this.#sourceVersion = source.catalogVersion;
      this.#version++;
    }
    return this.#version;
  }

  databases(): readonly Database[] {
    return this.#databases().databases();
  }

  database(name: string): Database | undefined {
    return this.#databases().database(name);
  }

  /**
   * Resolves when `databases` includes all changes that were answered before. It does not go back behind them until the result is
   * called.
   */
  async refresh(): Promise<() => void> {
    const number = ++this.#refreshes;
    const release = (): void => {
      // No request uses these databases any more, and their replica may be closed.
      if (--this.#holders === 0) this.#refreshed = { ...this.#refreshed, place: undefined };
    };
    this.#holders++;
    try {
      await this.#atLeader(
        true,
        async (place) => {
          const index = await refreshed(place);
          if (number > this.#refreshed.number) this.#refreshed = { number, place, index };
        },
        (attempts) => this.#reader(attempts),
      );
    } catch (error) {
      release();
      throw error;
    }
    return release;
  }

  /** The databases as of now, without the properties in force. */
  keptDatabases(): Promise<readonly Database[]> {
    return this.#atLeader(
      true,
      async (place) => {
        if (place instanceof RemoteSeriesStore) return await place.keptDatabases();
        await refreshed(place);
        return place.keptDatabases?.() ?? place.databases();
      },
      (attempts) => this.#reader(attempts),
    );
  }

  change(change: CatalogChange): Promise<void> {
    return this.#change((place) => place.change(change));
  }

  /** Like `change`, ignoring the database's properties. */
  administer(change: CatalogChange): Promise<void> {
    return this.#change((place) => place.administer(change));
  }

  async #change(run: (place: Place) => MaybePromise<void>): Promise<void> {
    await this.#atLeader(false, async (place) => {
      await this.#options.beforeChange?.();
      await run(place);
    });
    // A replica here that follows may not have it yet.
    const local = this.#options.local();
    if (local !== undefined && local.role !== 'leader') (await this.refresh())();
  }

  // ---- points

  write(database: string, retentionPolicy: string, batch: PointBatch): MaybePromise<WriteOutcome> {
    return this.#atLeader(true, (place, isUnknown) => {
      batch.identity = isUnknown ? repeated(batch.identity) : offered(batch.identity);
      return place.write(database, retentionPolicy, batch);
    });
  }

  *deletePoints(selection: SeriesSelection): Slices<void> {
    yield* this.#delete((place) => place.deletePoints(selection));
  }

  *dropSeries(selection: SeriesSelection): Slices<void> {
    yield* this.#delete((place) => place.dropSeries(selection));
  }

  /** In slices of the caller where the leader is here. */
  *#delete(run: (place: Place) => Slices<void>): Slices<void> {
    const attempts = new Attempts(this.#options.waitMs());
    for (;;) {
      let place: Place | undefined;
      let failure: UnavailableError;
      try {
        place = this.#writer();
        yield* run(place);
        this.#answeredBy(place);
        return;
      } catch (error) {
        if (!(error instanceof UnavailableError) || error instanceof OutcomeUnknownError) {
          throw error;
        }
        failure = error;
      }
      this.#failedAt(place, failure, attempts);
      yield* awaited(attempts.next(failure));
    }
  }

  // ---- reads

  scan(request: ScanRequest): Slices<SeriesScan> {
    return this.#read((place) => place.scan(request));
  }

  measurements(selection: SeriesSelection): Slices<string[]> {
    return this.#read((place) => place.measurements(selection));
  }

  fieldKeys(selection: MeasurementOf): Slices<FieldKey[]> {
    return this.#read((place) => place.fieldKeys(selection));
  }

  tagKeys(selection: MeasurementOf): Slices<string[]> {
    return this.#read((place) => place.tagKeys(selection));
  }

  tagValues(selection: MeasurementOf, tag: string): Slices<string[]> {
    return this.#read((place) => place.tagValues(selection, tag));
  }

  seriesKeys(selection: SeriesSelection): Slices<string[]> {
    return this.#read((place) => place.seriesKeys(selection));
  }

  seriesCardinality(selection: SeriesSelection): Slices<number> {
    return this.#read((place) => place.seriesCardinality(selection));
  }

  // ---- ticks: answers of a group come once they are committed

  endTick(): number {
    return -1;
  }

  whenSafe(_position: number, then: () => void): void {
    then();
  }

  /** Ends the use of the store. */
  close(): void {
    this.#isClosed = true;
    for (const remote of this.#remotes.values()) remote.close();
  }
}

const noDatabases: DatabaseSource & Pick<SeriesStore, 'database'> = {
  catalogVersion: 0,
  databases: () => [],
  database: () => undefined,
};

/**
 * A strong read of nothing: the catalog includes all changes that were committed before. Resolves to the last entry of the log
 * that it may have in it.
 */
async function refreshed(place: Place): Promise<number> {
  if (place instanceof RemoteSeriesStore) return await place.refresh();
  await whenFinished(place.measurements({ database: '', reads: 'strong' }));
  return place.appliedIndex;
}
