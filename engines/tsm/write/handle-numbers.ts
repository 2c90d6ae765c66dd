// Maps the handles of a cache to the series numbers of a shard, so that a series that was written before is found by
// one array access.

import type { SeriesCache } from '../../../universal-row/series/series-cache.ts';

/** Shards written to in turn. Beyond these numbers, the one that was written to longest ago is forgotten. */
const keptShards = 4096;
/** Shards whose numbers are kept in any case. */
const keptAnyway = 16;
/** Numbers that the shards may have together before further shards are dropped: 64 MiB. */
const keptNumbers = 16 * 1024 * 1024;

export class HandleNumbers {
  /** By handle: the series' number plus one; 0 when it has not been looked up. */
  numbers = new Uint32Array(0);
  #cache: SeriesCache | undefined = undefined;
  #generation = 0;

  /** Makes the array one for this cache as it is now. */
  adopt(cache: SeriesCache): void {
    if (this.#cache !== cache || this.#generation !== cache.generation) {
      this.#cache = cache;
      this.#generation = cache.generation;
      this.numbers.fill(0);
    }
    if (this.numbers.length >= cache.size) return;
    const longer = new Uint32Array(Math.max(cache.size, this.numbers.length * 2, 256));
    longer.set(this.numbers);
    this.numbers = longer;
  }
}

export class HandleNumbersByShard {
  /** In the order of their last use. */
  readonly #shards = new Map<number, HandleNumbers>();
  /** In all of them. Only `of` makes one longer. */
  #numbers = 0;

  /** For the current cache. `known` are numbers of the shard that must not be evicted meanwhile. */
  of(shard: number, cache: SeriesCache, known?: HandleNumbers): HandleNumbers {
    const found = known ?? this.#shards.get(shard) ?? new HandleNumbers();
    this.forget(shard);
    found.adopt(cache);
    this.#shards.set(shard, found);
    this.#numbers += found.numbers.length;
    while (this.#isTooMuch) {
      const [oldest] = this.#shards.keys();
      this.forget(oldest!);
    }
    return found;
  }

  get #isTooMuch(): boolean {
    const { size } = this.#shards;
    return size > keptShards || (size > keptAnyway && this.#numbers > keptNumbers);
  }

  /** Numbers of the shard have lost their meaning. */
  forget(shard: number): void {
    this.#numbers -= this.#shards.get(shard)?.numbers.length ?? 0;
    this.#shards.delete(shard);
  }

  clear(): void {
    this.#shards.clear();
    this.#numbers = 0;
  }
}
