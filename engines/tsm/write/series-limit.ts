// Decides whether a new series may be added, by all limits. A limit is checked only when it may be
// reached: a tag cannot have more values than there are series.

import type { SeriesCache } from '../../../universal-row/series/series-cache.ts';
import { decodeSeriesKey } from '../../../universal-row/series/series-key.ts';
import type { SeriesLimits } from '../../series-engine.ts';
import type { ShardDraft } from './shard-draft.ts';

/** A database's part of a series limit that it shares with others. */
export interface DatabaseShare {
  readonly series: number;
  readonly refusal: string;
}

export class SeriesLimit {
  share: DatabaseShare | undefined;
  readonly #limits: SeriesLimits;
  readonly #draft: ShardDraft;
  readonly #cache: SeriesCache;
  readonly #measurement: number;
  /** Series of the database and of the measurement, new ones before this group included. */
  readonly #inDatabase: number;
  readonly #inMeasurement: number;
  /** New series of this group. */
  readonly #added: readonly number[];
  /** Values of tags in them that the index does not have; undefined until they matter. */
  #newValues: Map<string, Set<string>> | undefined = undefined;
  #listed = 0;

  constructor(
    limits: SeriesLimits,
    draft: ShardDraft,
    cache: SeriesCache,
    measurement: number,
    inDatabase: number,
    added: readonly number[],
  ) {
    this.#limits = limits;
    this.#draft = draft;
    this.#cache = cache;
    this.#measurement = measurement;
    this.#inDatabase = inDatabase;
    this.#inMeasurement = draft.seriesOf(measurement);
    this.#added = added;
  }

  /** Why the series cannot be added after those that were; undefined when it can. */
  refusal(handle: number): string | undefined {
    const { seriesPerDatabase, valuesPerTag } = this.#limits;
    const added = this.#added.length;
    if (this.#inDatabase + added >= seriesPerDatabase) {
      return `max-series-per-database limit exceeded: (${seriesPerDatabase})`;
    }
    if (this.share !== undefined && this.#inDatabase + added >= this.share.series) {
      return this.share.refusal;
    }
    return this.#inMeasurement + added >= valuesPerTag ? this.#tagRefusal(handle) : undefined;
  }

  #tagRefusal(handle: number): string | undefined {
    const limit = this.#limits.valuesPerTag;
    for (; this.#listed < this.#added.length; this.#listed++) {
      this.#list(this.#added[this.#listed]!);
    }
    const { measurement, tags } = this.#name(handle);
    for (const [tag, value] of tags) {
      const fresh = this.#newValues?.get(tag);
      const indexed = this.#hasIndex ? this.#index.tagValueCount(this.#measurement, tag) : 0;
      const count = indexed + (fresh?.size ?? 0);
      if (count < limit || fresh?.has(value) === true || this.#isIndexed(tag, value)) continue;
      const where = `measurement="${measurement}" tag="${tag}" value="${value}"`;
      return `max-values-per-tag limit exceeded (${count}/${limit}): ${where}`;
    }
    return undefined;
  }

  #list(handle: number): void {
    this.#newValues ??= new Map();
    for (const [tag, value] of this.#name(handle).tags) {
      if (this.#isIndexed(tag, value)) continue;
      let values = this.#newValues.get(tag);
      if (values === undefined) this.#newValues.set(tag, (values = new Set()));
      values.add(value);
    }
  }

  get #hasIndex(): boolean {
    const { index } = this.#draft;
    return this.#measurement >= 0 && this.#measurement < (index?.measurementCount ?? 0);
  }

  get #index() {
    return this.#draft.index!;
  }

  #isIndexed(tag: string, value: string): boolean {
    if (!this.#hasIndex) return false;
    return this.#index.hasTagValue(this.#measurement, tag, value);
  }

  #name(handle: number) {
    const cache = this.#cache;
    return decodeSeriesKey(cache.keys(handle), cache.keyStart(handle), cache.keyEnd(handle));
  }
}
