// Time series divided into partitions, as one store. The hash of measurement and tags selects the partition of a series, so
// all points of a series are together. Every partition stores the databases and policies; the copy of the first one is
// authoritative. Answers of all partitions are merged.

import type { Slices } from '../../../universal-row/slices.ts';
import type { MaybePromise } from '../../../universal-row/maybe-promise.ts';
import type { PointBatch } from '../../../universal-row/series/point-batch.ts';
import { compareText } from '../../../universal-row/series/series-key.ts';
import {
  type CatalogChange,
  type Database,
  type FieldKey,
  isMissing,
  NotLeaderError,
  type ScanRequest,
  type SeriesScan,
  type SeriesSelection,
  type SeriesStore,
  UnavailableError,
  type WriteOutcome,
} from '../../../contracts/series-store.ts';
import type { DatabaseSource } from '../tenants/database-index.ts';
import { BatchSplitter, SeriesPlaces } from './batch-splitter.ts';
import { mergedScan } from './merged-scan.ts';
import { mergedNames } from './merged-names.ts';
import { together } from './together.ts';
import { TickPositions } from './tick-positions.ts';

export interface Partition extends SeriesStore, DatabaseSource {
  /** Like `change`, ignoring the database's properties. */
  administer(change: CatalogChange): MaybePromise<void>;
}

interface PartitionedStoreOptions {
  /** By number, at least two. */
  partitions: readonly Partition[];
  /** Gives all partitions the databases and policies of the first. */
  align: () => MaybePromise<void>;
}

/** Splitters that are kept while no batch is under way. */
const keptSplitters = 4;

export class PartitionedStore implements Partition {
  readonly #partitions: readonly Partition[];
  readonly #first: Partition;
  readonly #align: () => MaybePromise<void>;
  readonly #places: SeriesPlaces;
  readonly #splitters: BatchSplitter[] = [];
  readonly #ticks: TickPositions;
  /** A change has failed after some partitions had made it. */
  #isUneven = false;

  constructor({ partitions, align }: PartitionedStoreOptions) {
    this.#partitions = partitions;
    this.#first = partitions[0]!;
    this.#align = align;
    this.#places = new SeriesPlaces(partitions.length);
    this.#ticks = new TickPositions(partitions);
  }

  // ---- databases

  get catalogVersion(): number {
    return this.#first.catalogVersion;
  }

  databases(): readonly Database[] {
    return this.#first.databases();
  }

  database(name: string): Database | undefined {
    return this.#first.database(name);
  }

  change(change: CatalogChange): MaybePromise<void> {
    return this.#changeAll((partition) => partition.change(change));
  }

  administer(change: CatalogChange): MaybePromise<void> {
    return this.#changeAll((partition) => partition.administer(change));
  }

  /**
   * Changes all partitions. A partition after the first that failed is made equal to the first before the next
   * change.
   */
  #changeAll(make: (partition: Partition) => MaybePromise<void>): MaybePromise<void> {
    if (this.#isUneven) {
      const aligned = this.#align();
      if (aligned instanceof Promise) return aligned.then(() => this.#changeEach(make));
    }
    return this.#changeEach(make);
  }

  #changeEach(make: (partition: Partition) => MaybePromise<void>): MaybePromise<void> {
    this.#isUneven = false;
    const [first, ...others] = this.#partitions;
    // What it refuses, all would refuse.
    const made = make(first!);
    if (made instanceof Promise) return made.then(() => this.#changeOthers(others, make));
    return this.#changeOthers(others, make);
  }

  #changeOthers(
    others: readonly Partition[],
    make: (partition: Partition) => MaybePromise<void>,
  ): MaybePromise<void> {
    const pending: Promise<void>[] = [];
    const errors: unknown[] = [];
    for (const partition of others) {
      try {
        const made = make(partition);
        if (made instanceof Promise) pending.push(made);
      } catch (error) {
        errors.push(error);
      }
    }
    if (pending.length > 0) return this.#whenChanged(pending, errors);
    this.#expectEven(errors);
  }

  async #whenChanged(pending: readonly Promise<void>[], errors: unknown[]): Promise<void> {
    for (const settled of await Promise.allSettled(pending)) {
      if (settled.status === 'rejected') errors.push(settled.reason);
    }
    this.#expectEven(errors);
  }

  #expectEven(errors: readonly unknown[]): void {
    if (errors.length === 0) return;
    this.#isUneven = true;
    throw worst(errors);
  }

  // ---- points

  write(database: string, retentionPolicy: string, batch: PointBatch): MaybePromise<WriteOutcome> {
    const splitter = this.#splitters.pop() ?? new BatchSplitter(this.#places);
    const results: MaybePromise<WriteOutcome>[] = [];
    const errors: unknown[] = [];
    let isPending = false;
    for (const [i, part] of splitter.split(batch).entries()) {
      if (part.rows === 0) continue;
      // The others' points are stored whatever happens to one: the body is sent again as a whole.
      try {
        const result = this.#partitions[i]!.write(database, retentionPolicy, part);
        if (result instanceof Promise) isPending = true;
        results.push(result);
      } catch (error) {
        errors.push(error);
      }
    }
    if (isPending) return this.#whenWritten(splitter, results, errors);
    this.#keep(splitter);
    if (errors.length > 0) throw worst(errors);
    return total(results as WriteOutcome[]);
  }

  /** Until then the parts are the partitions'. */
  async #whenWritten(
    splitter: BatchSplitter,
    results: readonly MaybePromise<WriteOutcome>[],
    errors: unknown[],
  ): Promise<WriteOutcome> {
    const outcomes: WriteOutcome[] = [];
    for (const settled of await Promise.allSettled(results.map(async (one) => await one))) {
      if (settled.status === 'fulfilled') outcomes.push(settled.value);
      else errors.push(settled.reason);
    }
    this.#keep(splitter);
    if (errors.length > 0) throw worst(errors);
    return total(outcomes);
  }

  #keep(splitter: BatchSplitter): void {
    if (this.#splitters.length < keptSplitters) this.#splitters.push(splitter);
  }

  *scan(request: ScanRequest): Slices<SeriesScan> {
    const scans = yield* together(
      this.#partitions.map((one) => this.#explained(one, request, one.scan(request))),
      (scan) => scan.close(),
    );
    return yield* mergedScan(scans);
  }

  /** Where the first partition has the database, one that has not made it yet is told as out of reach. */
  *#explained<T>(
    partition: Partition,
    { database }: { readonly database: string },
    work: Slices<T>,
  ): Slices<T> {
    try {
      return yield* work;
    } catch (error) {
      const isFirst = partition === this.#first || this.#first.database(database) === undefined;
      if (isFirst || !isMissing(error)) throw error;
      throw new UnavailableError('not all partitions have it yet', { cause: error });
    }
  }

  /** Deletes in one partition after the other. After a failure, a repeated deletion continues where it stopped. */
  *deletePoints(selection: SeriesSelection): Slices<void> {
    for (const partition of this.#partitions) {
      yield* this.#explained(partition, selection, partition.deletePoints(selection));
    }
  }

  *dropSeries(selection: SeriesSelection): Slices<void> {
    for (const partition of this.#partitions) {
      yield* this.#explained(partition, selection, partition.dropSeries(selection));
    }
  }

  // ---- the schema

  measurements(selection: SeriesSelection): Slices<string[]> {
    return this.#names((partition) => partition.measurements(selection));
  }

  tagKeys(selection: SeriesSelection & { measurement: string }): Slices<string[]> {
    return this.#names((partition) => partition.tagKeys(selection));
  }

  tagValues(selection: SeriesSelection & { measurement: string }, tag: string): Slices<string[]> {
    return this.#names((partition) => partition.tagValues(selection, tag));
  }

  seriesKeys(selection: SeriesSelection): Slices<string[]> {
    return this.#names((partition) => partition.seriesKeys(selection));
  }

  *#names(list: (partition: Partition) => Slices<string[]>): Slices<string[]> {
    return yield* mergedNames(yield* together(this.#partitions.map(list)));
  }

  /** A field that partitions have with different types is listed with each. */
  *fieldKeys(selection: SeriesSelection & { measurement: string }): Slices<FieldKey[]> {
    const lists = yield* together(
      this.#partitions.map((partition) => partition.fieldKeys(selection)),
    );
    const keys = new Map<string, FieldKey>();
    for (const key of lists.flat()) keys.set(`${key.type} ${key.name}`, key);
    return [...keys.values()].sort(
      (a, b) => compareText(a.name, b.name) || compareText(a.type, b.type),
    );
  }

  *seriesCardinality(selection: SeriesSelection): Slices<number> {
    const counts = yield* together(
      this.#partitions.map((partition) => partition.seriesCardinality(selection)),
    );
    return counts.reduce((sum, count) => sum + count, 0);
  }

  // ---- ticks

  endTick(): number {
    return this.#ticks.end();
  }

  whenSafe(position: number, then: () => void): void {
    this.#ticks.whenSafe(position, then);
  }
}

function total(outcomes: readonly WriteOutcome[]): WriteOutcome {
  const sum: WriteOutcome = { written: 0, dropped: 0, error: undefined };
  for (const { written, dropped, error, logBytes } of outcomes) {
    sum.written += written;
    sum.dropped += dropped;
    sum.error ??= error;
    if (logBytes !== undefined) sum.logBytes = (sum.logBytes ?? 0) + logBytes;
  }
  return sum;
}

/**
 * The error to answer for all partitions: an error that makes clients retry, if there is one. Other partitions may
 * have stored their points, so the error must not claim that nothing was done.
 */
export function worst(errors: readonly unknown[]): unknown {
  const first = errors.find((error) => error instanceof UnavailableError) ?? errors[0];
  if (!(first instanceof NotLeaderError)) return first;
  return new UnavailableError(first.message, { cause: first });
}
