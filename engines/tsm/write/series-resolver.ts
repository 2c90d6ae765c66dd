// Finds the numbers of series in a shard: of known ones in its index, of new ones by counting on, as long
// as the limits allow.

import type { SeriesCache } from '../../../universal-row/series/series-cache.ts';
import type { SeriesLimit } from './series-limit.ts';
import type { ShardDraft } from './shard-draft.ts';

/** Finds the numbers of series that the handles do not have yet. */
export class SeriesResolver {
  /** Handles of new series, in the order of their numbers. */
  readonly added: number[];
  /** Why the first one was refused. */
  refusal: string | undefined = undefined;
  readonly #draft: ShardDraft;
  readonly #cache: SeriesCache;
  readonly #limit: SeriesLimit;
  readonly #refused = new Set<number>();

  constructor(draft: ShardDraft, cache: SeriesCache, limit: SeriesLimit, added: number[]) {
    this.#draft = draft;
    this.#cache = cache;
    this.#limit = limit;
    this.added = added;
  }

  /** Its number plus one; 0 when it is refused. */
  find(handle: number): number {
    const draft = this.#draft;
    const cache = this.#cache;
    const { numbers } = draft.handles;
    const keys = cache.keys(handle);
    const start = cache.keyStart(handle);
    const end = cache.keyEnd(handle);
    const found = draft.index?.findSeries(keys, start, end, cache.keyHash(handle)) ?? -1;
    if (found >= 0) return (numbers[handle] = found + 1);
    if (this.#refused.has(handle)) return 0;
    const refusal = this.#limit.refusal(handle);
    if (refusal !== undefined) {
      this.refusal ??= refusal;
      this.#refused.add(handle);
      return 0;
    }
    this.added.push(handle);
    draft.newHandles.push(handle);
    return (numbers[handle] = ++draft.seriesCount);
  }
}
