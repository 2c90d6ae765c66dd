// The series that each tenant wrote lately. Tenants share none: whether a key is known shows in how long it
// takes to read, and a shard keeps one number for each series of the cache that it is written from.

import {
  defaultSeriesCacheLimits,
  type SeriesCacheLimits,
  SharedSeriesCache,
} from '../line-protocol/series-cache-table.ts';

/**
 * Total limit, beyond which caches of tenants without recent writes are dropped. Each may be half
 * of it.
 */
const bytesInAll = 2 * defaultSeriesCacheLimits.bytes;
const usesBetweenLooks = 64;

export class SeriesCaches {
  readonly #bytesInAll: number;
  readonly #limits: SeriesCacheLimits;
  /** By tenant, in the order of their last use. */
  readonly #caches = new Map<number, SharedSeriesCache>();
  #uses = 0;

  constructor(bytes = bytesInAll) {
    this.#bytesInAll = bytes;
    this.#limits = { ...defaultSeriesCacheLimits, bytes: bytes / 2 };
  }

  get size(): number {
    return this.#caches.size;
  }

  of(tenant: number): SharedSeriesCache {
    const found = this.#caches.get(tenant);
    const cache = found ?? new SharedSeriesCache(this.#limits);
    if (found !== undefined) this.#caches.delete(tenant);
    this.#caches.set(tenant, cache);
    if (found === undefined || ++this.#uses % usesBetweenLooks === 0) this.#shrink();
    return cache;
  }

  #shrink(): void {
    let bytes = 0;
    for (const cache of this.#caches.values()) bytes += cache.bytes;
    for (const [tenant, cache] of this.#caches) {
      if (bytes <= this.#bytesInAll || this.#caches.size === 1) return;
      bytes -= cache.bytes;
      this.#caches.delete(tenant);
    }
  }
}
