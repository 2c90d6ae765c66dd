// The time series of all tenants, each a pod or several groups, as the one store that the gateway asks. Databases are
// distinguished by the tenant's number in front of their names.

import { ownerOf } from '../../access/influx/tenants/database-names.ts';
import type { DatabaseSource } from '../../access/influx/tenants/database-index.ts';
import {
  type CatalogChange,
  type Database,
  type FieldKey,
  NotLeaderError,
  type ScanRequest,
  type SeriesScan,
  type SeriesSelection,
  type SeriesStore,
  type WriteOutcome,
} from '../../contracts/series-store.ts';
import type { Partition } from '../../access/influx/partitions/partitioned-store.ts';
import type { MaybePromise } from '../../universal-row/maybe-promise.ts';
import type { PointBatch } from '../../universal-row/series/point-batch.ts';
import type { Slices } from '../../universal-row/slices.ts';

interface SeriesPodsOptions {
  /** Undefined where this node has no replica of the tenant's, and cannot ask for them. */
  readonly storeOf: (tenant: number) => Partition | undefined;
  readonly all: () => readonly Partition[];
}

/** Larger than the number of catalog changes of any pod. */
const changesOfPods = 2 ** 40;

export class SeriesPods implements SeriesStore, DatabaseSource {
  readonly #options: SeriesPodsOptions;
  #changes = 0;

  constructor(options: SeriesPodsOptions) {
    this.#options = options;
  }

  /** There are other stores than before. */
  changed(): void {
    this.#changes++;
  }

  get catalogVersion(): number {
    let version = this.#changes * changesOfPods;
    for (const { catalogVersion } of this.#options.all()) version += catalogVersion;
    return version;
  }

  #find(database: string): Partition | undefined {
    return this.#options.storeOf(ownerOf(database).tenant);
  }

  /** Throws `NotLeaderError`. */
  #storeOf({ database }: { readonly database: string }): Partition {
    const store = this.#find(database);
    if (store === undefined) throw new NotLeaderError(0);
    return store;
  }

  databases(): readonly Database[] {
    return this.#options.all().flatMap((store) => store.databases());
  }

  database(name: string): Database | undefined {
    return this.#storeOf({ database: name }).database(name);
  }

  change(change: CatalogChange): MaybePromise<void> {
    return this.#storeOf(change).change(change);
  }

  /** Like `change`, ignoring the database's properties. */
  administer(change: CatalogChange): MaybePromise<void> {
    return this.#storeOf(change).administer(change);
  }

  write(database: string, retentionPolicy: string, batch: PointBatch): MaybePromise<WriteOutcome> {
    return this.#storeOf({ database }).write(database, retentionPolicy, batch);
  }

  scan(request: ScanRequest): Slices<SeriesScan> {
    return this.#storeOf(request).scan(request);
  }

  measurements(selection: SeriesSelection): Slices<string[]> {
    return this.#storeOf(selection).measurements(selection);
  }

  fieldKeys(selection: SeriesSelection & { measurement: string }): Slices<FieldKey[]> {
    return this.#storeOf(selection).fieldKeys(selection);
  }

  tagKeys(selection: SeriesSelection & { measurement: string }): Slices<string[]> {
    return this.#storeOf(selection).tagKeys(selection);
  }

  tagValues(selection: SeriesSelection & { measurement: string }, tag: string): Slices<string[]> {
    return this.#storeOf(selection).tagValues(selection, tag);
  }

  seriesKeys(selection: SeriesSelection): Slices<string[]> {
    return this.#storeOf(selection).seriesKeys(selection);
  }

  seriesCardinality(selection: SeriesSelection): Slices<number> {
    return this.#storeOf(selection).seriesCardinality(selection);
  }

  deletePoints(selection: SeriesSelection): Slices<void> {
    return this.#storeOf(selection).deletePoints(selection);
  }

  dropSeries(selection: SeriesSelection): Slices<void> {
    return this.#storeOf(selection).dropSeries(selection);
  }

  /** Answers of a pod with several copies are committed. */
  endTick(): number {
    return -1;
  }

  whenSafe(_position: number, then: () => void): void {
    then();
  }
}
