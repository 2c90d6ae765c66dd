// Reads of an engine: its catalog, and its shards by database, policy and time.

import type {
  Database,
  FieldKey,
  ScanRequest,
  SeriesScan,
  SeriesSelection,
} from '../../contracts/series-store.ts';
import type { Slices } from '../../universal-row/slices.ts';
import { Catalog, type ShardSpan } from './catalog.ts';
import { scanTotals } from './group-scan.ts';
import type { LiveShard } from './live-shard.ts';
import {
  cardinalityIn,
  fieldKeysIn,
  measurementsIn,
  seriesKeysIn,
  tagKeysIn,
  tagValuesIn,
} from './schema.ts';
import { scanShards } from './series-scan.ts';

export class ShardReads {
  protected catalog = new Catalog();
  /** By number. */
  protected readonly live = new Map<number, LiveShard>();

  protected liveShard(number: number): LiveShard {
    const live = this.live.get(number);
    if (live === undefined) throw new RangeError(`entry of time series: no shard ${number}`);
    return live;
  }

  databases(): readonly Database[] {
    return this.catalog.databases();
  }

  database(name: string): Database | undefined {
    return this.catalog.database(name);
  }

  *scan(request: ScanRequest): Slices<SeriesScan> {
    const totals = yield* scanTotals(this.#shardsScanned(request), request);
    // Shards may have been dropped meanwhile.
    return totals ?? (yield* scanShards(this.#shardsScanned(request), request));
  }

  #shardsScanned({ database, retentionPolicy, from, to }: ScanRequest): LiveShard[] {
    const policy = this.catalog.expectPolicy(database, retentionPolicy);
    return this.#touching(policy.shards, from, to);
  }

  *measurements(selection: SeriesSelection): Slices<string[]> {
    const names = yield* measurementsIn(this.shardsOf(selection), selection.filter);
    const { measurement } = selection;
    return measurement === undefined ? names : names.filter((name) => name === measurement);
  }

  fieldKeys(selection: SeriesSelection & { measurement: string }): FieldKey[] {
    return fieldKeysIn(this.shardsOf(selection), selection.measurement);
  }

  tagKeys(selection: SeriesSelection & { measurement: string }): Slices<string[]> {
    return tagKeysIn(this.shardsOf(selection), selection.measurement, selection.filter);
  }

  tagValues(selection: SeriesSelection & { measurement: string }, tag: string): Slices<string[]> {
    return tagValuesIn(this.shardsOf(selection), selection.measurement, tag, selection.filter);
  }

  seriesKeys(selection: SeriesSelection): Slices<string[]> {
    return seriesKeysIn(this.shardsOf(selection), selection.measurement, selection.filter);
  }

  seriesCardinality(selection: SeriesSelection): Slices<number> {
    return cardinalityIn(this.shardsOf(selection), selection.measurement, selection.filter);
  }

  /** Shards of all policies, unless the selection names one. */
  protected shardsOf({ database, retentionPolicy, from, to }: SeriesSelection): LiveShard[] {
    const state = this.catalog.state(database);
    if (state === undefined) return [];
    const isNamed = retentionPolicy !== undefined && retentionPolicy !== '';
    return state.policies
      .filter(({ name }) => !isNamed || name === retentionPolicy)
      .flatMap(({ shards }) => this.#touching(shards, from, to));
  }

  #touching(
    spans: readonly ShardSpan[],
    from: bigint | undefined,
    to: bigint | undefined,
  ): LiveShard[] {
    return spans
      .map(({ number }) => this.liveShard(number))
      .filter((live) => live.clip(from, to) !== undefined);
  }
}
