// Frees dropped rows and tables a slice at a time, so that no drop takes long, regardless of its size.

import type { Clock } from '../../universal-row/environment.ts';
import type { ByteMap } from './byte-map.ts';
import type { Collection, Detached } from './collection.ts';

const blocksPerSlice = 256;

export class Reclaimer {
  readonly #clock: Clock;
  readonly #queue: Detached[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(detached: Detached): void {
    this.#queue.push(detached);
  }

  /** A collection whose row is gone. */
  addCollection(collection: Collection): void {
    if (collection.held) collection.dropped = true;
    else this.add(collection);
  }

  /** Frees for about `budgetMs`; true when more is left. */
  run(budgetMs: number): boolean {
    const end = this.#clock.monotonic() + budgetMs;
    for (;;) {
      const last = this.#queue.at(-1);
      if (last === undefined) return false;
      if (last.dismantle(blocksPerSlice)) this.#queue.splice(this.#queue.indexOf(last), 1);
      if (this.#clock.monotonic() >= end) return this.#queue.length > 0;
    }
  }

  pendingBytes(): number {
    let bytes = 0;
    for (const detached of this.#queue) bytes += detached.bytes();
    return bytes;
  }
}

/** All rows of a table that was cleared. */
export class RetiredRows implements Detached {
  readonly #map: ByteMap;
  readonly #collections: (Collection | undefined)[];
  readonly #reclaimer: Reclaimer;

  constructor(map: ByteMap, collections: (Collection | undefined)[], reclaimer: Reclaimer) {
    this.#map = map;
    this.#collections = collections;
    this.#reclaimer = reclaimer;
  }

  bytes(): number {
    let bytes = this.#map.blockBytes;
    for (const collection of this.#collections) bytes += collection?.bytes() ?? 0;
    return bytes;
  }

  dismantle(limit: number): boolean {
    for (let left = limit; this.#collections.length > 0; left--) {
      if (left === 0) return false;
      const collection = this.#collections.at(-1);
      if (collection === undefined) {
        this.#collections.pop();
      } else if (collection.held) {
        this.#collections.pop();
        this.#reclaimer.addCollection(collection);
      } else {
        if (collection.dismantle(limit)) this.#collections.pop();
        return false;
      }
    }
    return this.#map.dismantle(limit);
  }
}
