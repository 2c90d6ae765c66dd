// Pods of time series, one for each tenant, as the one store that the gateway asks. Databases are distinguished by the
// tenant's number in front of their names.

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
import type { SeriesPod } from '../../storage-node/series-pod.ts';
import type { MaybePromise } from '../../universal-row/maybe-promise.ts';
import type { PointBatch } from '../../universal-row/series/point-batch.ts';
import type { Slices } from '../../universal-row/slices.ts';

interface SeriesPodsOptions {
  /** Undefined where this node has none of the tenant. */
  readonly podOf: (tenant: number) => SeriesPod | undefined;
  readonly all: () => readonly SeriesPod[];
}

/** No pod changes its catalog so often. */
const changesOfPods = 2 ** 40;

export class SeriesPods implements SeriesStore, DatabaseSource {
  readonly #options: SeriesPodsOptions;
  #changes = 0;

  constructor(options: SeriesPodsOptions) {
    this.#options = options;
  }

  /** There are other pods than before. */
  changed(): void {
    this.#changes++;
  }

  get catalogVersion(): number {
    let version = this.#changes * changesOfPods;
    for (const { catalogVersion } of this.#options.all()) version += catalogVersion;
    return version;
  }

  #find(database: string): SeriesPod | undefined {
    return this.#options.podOf(ownerOf(database).tenant);
  }

  /** Throws `NotLeaderError`. */
  #podOf({ database }: { readonly database: string }): SeriesPod {
    const pod = this.#find(database);
    if (pod === undefined) throw new NotLeaderError(0);
    return pod;
  }

  databases(): readonly Database[] {
    return this.#options.all().flatMap((pod) => pod.databases());
  }

  database(name: string): Database | undefined {
    return this.#find(name)?.database(name);
  }

  change(change: CatalogChange): MaybePromise<void> {
    return this.#podOf(change).change(change);
  }

  /** Like `change`, ignoring the database's properties. */
  administer(change: CatalogChange): MaybePromise<void> {
    return this.#podOf(change).administer(change);
  }

  write(database: string, retentionPolicy: string, batch: PointBatch): MaybePromise<WriteOutcome> {
    return this.#podOf({ database }).write(database, retentionPolicy, batch);
  }

  scan(request: ScanRequest): Slices<SeriesScan> {
    return this.#podOf(request).scan(request);
  }

  measurements(selection: SeriesSelection): Slices<string[]> {
    return this.#podOf(selection).measurements(selection);
  }

  fieldKeys(selection: SeriesSelection & { measurement: string }): Slices<FieldKey[]> {
    return this.#podOf(selection).fieldKeys(selection);
  }

  tagKeys(selection: SeriesSelection & { measurement: string }): Slices<string[]> {
    return this.#podOf(selection).tagKeys(selection);
  }

  tagValues(selection: SeriesSelection & { measurement: string }, tag: string): Slices<string[]> {
    return this.#podOf(selection).tagValues(selection, tag);
  }

  seriesKeys(selection: SeriesSelection): Slices<string[]> {
    return this.#podOf(selection).seriesKeys(selection);
  }

  seriesCardinality(selection: SeriesSelection): Slices<number> {
    return this.#podOf(selection).seriesCardinality(selection);
  }

  deletePoints(selection: SeriesSelection): Slices<void> {
    return this.#podOf(selection).deletePoints(selection);
  }

  dropSeries(selection: SeriesSelection): Slices<void> {
    return this.#podOf(selection).dropSeries(selection);
  }

  /** Answers of a pod with several copies are committed. */
  endTurn(): number {
    return -1;
  }

  whenSafe(_position: number, then: () => void): void {
    then();
  }
}
