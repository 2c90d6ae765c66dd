// Caches of the series that each tenant wrote recently. Tenants share no cache, for two reasons: the time to read a
// key shows whether the key is cached, and a shard keeps one number per series of each cache that writes to it.

import {
  defaultSeriesCacheLimits,
  type SeriesCacheLimits,
  SharedSeriesCache,
} from '../line-protocol/series-cache-table.ts';

/**
 * Limit in bytes of all caches together. Beyond it, caches of tenants without recent writes are dropped. One cache
 * may hold half of it.
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
