// A cache and a trace of requests for items of very different sizes: half of them up to .12 kB, a tenth over 50 kB, one
// in a hundred over 308 kB, the more popular ones as large as the others.

import { LruItem, SizeAwareLru } from '../../../engines/kv/size-aware-lru.ts';
import type { Chance } from '../sim/chance.ts';

/** Bytes at shares of all items. */
const sizes = [
  [0, 16],
  [0.5, 120],
  [0.9, 50_000],
  [0.99, 308_000],
  [1, 1_000_000],
] as const;

export function sizeOf(chance: Chance): number {
  const share = chance.next();
  for (let i = 1; i < sizes.length; i++) {
    const [to, most] = sizes[i]!;
    const [from, least] = sizes[i - 1]!;
    if (share > to) continue;
    return Math.round(least * (most / least) ** ((share - from) / (to - from)));
  }
  return sizes[sizes.length - 1]![1];
}

export interface Cache {
  /** Whether the item was there; it is afterwards. */
  access(id: number, bytes: number): boolean;
}

class Item extends LruItem {
  readonly id: number;

  constructor(id: number) {
    super();
    this.id = id;
  }

  ghostKey(): number {
    return this.id;
  }
}

export class SizeAwareCache implements Cache {
  readonly #lru: SizeAwareLru;
  readonly #items = new Map<number, Item>();
  readonly #capacity: number;

  constructor(capacity: number, windowAccesses: number) {
    this.#lru = new SizeAwareLru({ windowAccesses });
    this.#capacity = capacity;
  }

  access(id: number, bytes: number): boolean {
    const found = this.#items.get(id);
    if (found !== undefined) {
      this.#lru.hit(found);
      return true;
    }
    const item = new Item(id);
    this.#items.set(id, item);
    this.#lru.add(item, bytes);
    while (this.#lru.bytes > this.#capacity) {
      const victim = this.#lru.victim() as Item;
      this.#items.delete(victim.id);
      this.#lru.noteEvicted(victim);
      this.#lru.remove(victim);
    }
    return false;
  }
}

export class PlainCache implements Cache {
  /** Bytes by id, the least recently used first. */
  readonly #items = new Map<number, number>();
  readonly #capacity: number;
  #bytes = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  access(id: number, bytes: number): boolean {
    const isHit = this.#items.delete(id);
    this.#items.set(id, bytes);
    if (!isHit) this.#bytes += bytes;
    for (const [oldest, size] of this.#items) {
      if (this.#bytes <= this.#capacity) break;
      this.#items.delete(oldest);
      this.#bytes -= size;
    }
    return isHit;
  }
}
