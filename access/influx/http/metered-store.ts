// A store as one query uses it: counts its index lookups and its changes, and reads as late a state as
// the query may.

import type { Slices } from '../../../universal-row/slices.ts';
import { type MaybePromise, whenReady } from '../../../universal-row/maybe-promise.ts';
import type { PointBatch } from '../../../universal-row/series/point-batch.ts';
import type {
  CatalogChange,
  Database,
  FieldKey,
  ScanRequest,
  SeriesReads,
  SeriesScan,
  SeriesSelection,
  SeriesStore,
  WriteOutcome,
} from '../../../contracts/series-store.ts';
import type { SeriesWork } from '../../../request-units/series-pricer.ts';

// A change of the catalog is an entry of about so many bytes.
const changeBytes = 128;

export class MeteredStore implements SeriesStore {
  readonly #store: SeriesStore;
  readonly #work: SeriesWork;
  readonly #reads: SeriesReads | undefined;

  constructor(store: SeriesStore, work: SeriesWork, reads?: SeriesReads) {
    this.#store = store;
    this.#work = work;
    this.#reads = reads;
  }

  databases(): readonly Database[] {
    return this.#listed(this.#store.databases());
  }

  database(name: string): Database | undefined {
    return this.#store.database(name);
  }

  change(change: CatalogChange): MaybePromise<void> {
    return whenReady(this.#store.change(change), () => this.#changed());
  }

  write(database: string, retentionPolicy: string, batch: PointBatch): MaybePromise<WriteOutcome> {
    return this.#store.write(database, retentionPolicy, batch);
  }

  scan(request: ScanRequest): Slices<SeriesScan> {
    return this.#store.scan(this.#asLate(request));
  }

  *measurements(selection: SeriesSelection): Slices<string[]> {
    return this.#listed(yield* this.#store.measurements(this.#asLate(selection)));
  }

  *fieldKeys(selection: SeriesSelection & { measurement: string }): Slices<FieldKey[]> {
    return this.#listed(yield* this.#store.fieldKeys(this.#asLate(selection)));
  }

  *tagKeys(selection: SeriesSelection & { measurement: string }): Slices<string[]> {
    return this.#listed(yield* this.#store.tagKeys(this.#asLate(selection)));
  }

  *tagValues(selection: SeriesSelection & { measurement: string }, tag: string): Slices<string[]> {
    return this.#listed(yield* this.#store.tagValues(this.#asLate(selection), tag));
  }

  *seriesKeys(selection: SeriesSelection): Slices<string[]> {
    return this.#listed(yield* this.#store.seriesKeys(this.#asLate(selection)));
  }

  *seriesCardinality(selection: SeriesSelection): Slices<number> {
    const count = yield* this.#store.seriesCardinality(this.#asLate(selection));
    this.#work.names += count;
    return count;
  }

  *deletePoints(selection: SeriesSelection): Slices<void> {
    yield* this.#store.deletePoints(selection);
    this.#changed();
  }

  *dropSeries(selection: SeriesSelection): Slices<void> {
    yield* this.#store.dropSeries(selection);
    this.#changed();
  }

  endTick(): number {
    return this.#store.endTick();
  }

  whenSafe(position: number, then: () => void): void {
    this.#store.whenSafe(position, then);
  }

  #asLate<S extends SeriesSelection | ScanRequest>(selection: S): S {
    return this.#reads === undefined ? selection : { ...selection, reads: this.#reads };
  }

  #listed<T extends readonly unknown[]>(names: T): T {
    this.#work.names += names.length;
    return names;
  }

  #changed(): void {
    this.#work.batches++;
    this.#work.logBytes += changeBytes;
  }
}
