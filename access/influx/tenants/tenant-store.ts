// A store as one tenant sees it: its own databases, by the names its clients use. Databases of
// other tenants are invisible: by name, in lists and counts, and in messages.

import type { Slices } from '../../../universal-row/slices.ts';
import type { MaybePromise } from '../../../universal-row/maybe-promise.ts';
import type { PointBatch } from '../../../universal-row/series/point-batch.ts';
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
  TooLargeError,
  UnavailableError,
  type WriteOutcome,
} from '../../../contracts/series-store.ts';
import type { DatabaseIndex } from './database-index.ts';
import { databasePrefix, isClientName } from './database-names.ts';

interface TenantStoreOptions {
  /** State shared by all tenants. */
  store: SeriesStore;
  index: DatabaseIndex;
  /** The tenant's number. */
  tenant: number;
  /** True unless the tenant is suspended or deleted. */
  isActive: () => boolean;
}

export class TenantStore implements SeriesStore {
  readonly #store: SeriesStore;
  readonly #index: DatabaseIndex;
  readonly #tenant: number;
  readonly #prefix: string;
  readonly #isActive: () => boolean;

  constructor({ store, index, tenant, isActive }: TenantStoreOptions) {
    this.#store = store;
    this.#index = index;
    this.#tenant = tenant;
    this.#prefix = databasePrefix(tenant);
    this.#isActive = isActive;
  }

  // ---- databases

  databases(): readonly Database[] {
    const found: Database[] = [];
    for (const kept of this.#index.of(this.#tenant)) {
      const database = this.#store.database(kept);
      if (database !== undefined) found.push(this.#shown(database));
    }
    return found;
  }

  database(name: string): Database | undefined {
    if (!isClientName(name)) return undefined;
    const database = this.#store.database(this.#prefix + name);
    return database && this.#shown(database);
  }

  #shown(database: Database): Database {
    if (this.#prefix === '') return database;
    return { ...database, name: database.name.slice(this.#prefix.length) };
  }

  change(change: CatalogChange): MaybePromise<void> {
    this.#expectActive();
    if (!isClientName(change.database)) throw this.#unnamed(change);
    const kept = { ...change, database: this.#prefix + change.database };
    return this.#index.change(kept, () => this.#toldLater(() => this.#store.change(kept)));
  }

  #unnamed({ kind, database }: CatalogChange): SeriesError {
    if (kind === 'createDatabase') return new SeriesError('invalid name');
    return new SeriesError(`database not found: ${database}`);
  }

  // ---- points

  write(database: string, retentionPolicy: string, batch: PointBatch): MaybePromise<WriteOutcome> {
    this.#expectActive();
    const kept = this.#kept(database);
    return this.#toldLater(() => this.#store.write(kept, retentionPolicy, batch));
  }

  scan(request: ScanRequest): Slices<SeriesScan> {
    return this.#toldInSlices(this.#store.scan(this.#keptSelection(request)));
  }

  *deletePoints(selection: SeriesSelection): Slices<void> {
    this.#expectActive();
    yield* this.#whileActive(this.#store.deletePoints(this.#keptSelection(selection)));
  }

  *dropSeries(selection: SeriesSelection): Slices<void> {
    this.#expectActive();
    yield* this.#whileActive(this.#store.dropSeries(this.#keptSelection(selection)));
  }

  // ---- the schema

  measurements(selection: SeriesSelection): Slices<string[]> {
    return this.#toldInSlices(this.#store.measurements(this.#keptSelection(selection)));
  }

  fieldKeys(selection: SeriesSelection & { measurement: string }): Slices<FieldKey[]> {
    return this.#toldInSlices(this.#store.fieldKeys(this.#keptSelection(selection)));
  }

  tagKeys(selection: SeriesSelection & { measurement: string }): Slices<string[]> {
    return this.#toldInSlices(this.#store.tagKeys(this.#keptSelection(selection)));
  }

  tagValues(selection: SeriesSelection & { measurement: string }, tag: string): Slices<string[]> {
    return this.#toldInSlices(this.#store.tagValues(this.#keptSelection(selection), tag));
  }

  seriesKeys(selection: SeriesSelection): Slices<string[]> {
    return this.#toldInSlices(this.#store.seriesKeys(this.#keptSelection(selection)));
  }

  seriesCardinality(selection: SeriesSelection): Slices<number> {
    return this.#toldInSlices(this.#store.seriesCardinality(this.#keptSelection(selection)));
  }

  // ---- one tick for all tenants
  //

  endTick(): number {
    return this.#store.endTick();
  }

  whenSafe(position: number, then: () => void): void {
    this.#store.whenSafe(position, then);
  }

  // ---- names

  #keptSelection<S extends { readonly database: string }>(selection: S): S {
    if (this.#prefix === '' && isClientName(selection.database)) return selection;
    return { ...selection, database: this.#kept(selection.database) };
  }

  /** Stands for names that clients cannot use: nothing is found by it. */
  #kept(name: string): string {
    return isClientName(name) ? this.#prefix + name : '';
  }

  #told<T>(ask: () => T): T {
    try {
      return ask();
    } catch (error) {
      throw this.#inClientsWords(error);
    }
  }

  #toldLater<T>(ask: () => MaybePromise<T>): MaybePromise<T> {
    const answer = this.#told(ask);
    if (!(answer instanceof Promise)) return answer;
    return answer.catch((error: unknown) => {
      throw this.#inClientsWords(error);
    });
  }

  *#toldInSlices<T>(slices: Slices<T>): Slices<T> {
    try {
      return yield* slices;
    } catch (error) {
      throw this.#inClientsWords(error);
    }
  }

  /** As `#toldInSlices`; it stops when the tenant is suspended or dropped meanwhile. */
  *#whileActive(slices: Slices<void>): Slices<void> {
    const told = this.#toldInSlices(slices);
    try {
      for (let step = told.next(); step.done !== true; step = told.next()) {
        yield step.value;
        this.#expectActive();
      }
    } finally {
      told.return();
    }
  }

  #inClientsWords(error: unknown): unknown {
    if (!(error instanceof SeriesError) || this.#prefix === '') return error;
    // Their words name no database.
    if (error instanceof UnavailableError || error instanceof TooLargeError) return error;
    const Kind = error instanceof ReadOnlyError ? ReadOnlyError : SeriesError;
    return new Kind(error.message.replaceAll(this.#prefix, ''), { cause: error });
  }

  /** Changes begun before the tenant was suspended or dropped are rejected. */
  #expectActive(): void {
    if (!this.#isActive()) throw new SeriesError('the tenant takes no requests any more');
  }
}
