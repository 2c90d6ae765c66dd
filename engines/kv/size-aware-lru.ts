// A cache order that prefers small items. Items fall into classes by the power of two of their
// size, and each class is an LRU list of its own. A class earns hits; eviction takes the oldest
// item of the class with the fewest hits per byte in a sliding window. Each class keeps the keys of
// its recent evictions: a miss of one of those counts as a hit of the class, so that a class that
// was made too small, or whose items have just become popular, grows back.
//
// Items that bypass the cache form a separate class: they take no room from the others, nor give
// any, and are evicted as soon as they are not read any more.
//
// Items carry their own links, so that a hit allocates nothing.

import { Eldest } from '../../universal-row/eldest.ts';

/** The part of an item that the order needs; its fields are ours once the item is in. */
export abstract class LruItem {
  lruClass = -1;
  lruBytes = 0;
  lruNewer: LruItem | undefined = undefined;
  lruOlder: LruItem | undefined = undefined;
  /** When it was last used, by the owner's count of ticks. */
  lruTick = 0;

  /** Identifies the item among those lost; a collision does little harm. */
  abstract ghostKey(): number;
}

const classCount = 44;
/** Behind those by size. */
const passing = classCount;

function classOf(bytes: number): number {
  return Math.min(classCount - 1, Math.floor(Math.log2(bytes + 1)));
}

class SizeClass {
  newest: LruItem | undefined = undefined;
  oldest: LruItem | undefined = undefined;
  bytes = 0;
  items = 0;
  hits = 0;
  hitsBefore = 0;
  readonly ghosts = new Set<number>();
  readonly eldestGhost = new Eldest(this.ghosts);
}

interface SizeAwareLruOptions {
  /** Hits and misses after which the window slides by half. */
  windowAccesses?: number;
  /** Keys of evicted items kept per class, at most; never more than twice the items it held. */
  ghostsPerClass?: number;
}

export class SizeAwareLru {
  bytes = 0;
  items = 0;
  /** Size of the items that bypass the cache, not included in `bytes`. */
  passingBytes = 0;
  readonly #classes: SizeClass[] = Array.from({ length: classCount + 1 }, () => new SizeClass());
  readonly #windowAccesses: number;
  readonly #ghostsPerClass: number;
  #accesses = 0;

  constructor(options: SizeAwareLruOptions = {}) {
    this.#windowAccesses = options.windowAccesses ?? 65_536;
    this.#ghostsPerClass = options.ghostsPerClass ?? 65_536;
  }

  /** Puts an item in that was just read or written. */
  add(item: LruItem, bytes: number): void {
    const index = classOf(bytes);
    const sizeClass = this.#classes[index]!;
    item.lruClass = index;
    item.lruBytes = bytes;
    sizeClass.bytes += bytes;
    sizeClass.items++;
    this.bytes += bytes;
    this.items++;
    if (sizeClass.ghosts.size > 0 && sizeClass.ghosts.delete(item.ghostKey())) sizeClass.hits++;
    this.#link(sizeClass, item);
    this.#access();
  }

  hit(item: LruItem): void {
    const sizeClass = this.#classes[item.lruClass]!;
    sizeClass.hits++;
    if (sizeClass.newest !== item) {
      this.#unlink(sizeClass, item);
      this.#link(sizeClass, item);
    }
    this.#access();
  }

  /** As `add`, for an item that bypasses the cache. */
  addPassing(item: LruItem, bytes: number): void {
    const sizeClass = this.#classes[passing]!;
    item.lruClass = passing;
    item.lruBytes = bytes;
    sizeClass.bytes += bytes;
    sizeClass.items++;
    this.passingBytes += bytes;
    this.#link(sizeClass, item);
  }

  /** Least recently used of the items that bypass the cache. */
  get oldestPassing(): LruItem | undefined {
    return this.#classes[passing]!.oldest;
  }

  /** Makes it the newest without counting a hit. */
  refresh(item: LruItem): void {
    const sizeClass = this.#classes[item.lruClass]!;
    this.#unlink(sizeClass, item);
    this.#link(sizeClass, item);
  }

  /** Removes an item that is no longer cached, or is cached elsewhere. */
  remove(item: LruItem): void {
    const sizeClass = this.#classes[item.lruClass]!;
    this.#unlink(sizeClass, item);
    sizeClass.bytes -= item.lruBytes;
    sizeClass.items--;
    if (item.lruClass === passing) this.passingBytes -= item.lruBytes;
    else {
      this.bytes -= item.lruBytes;
      this.items--;
    }
    item.lruClass = -1;
    item.lruBytes = 0;
  }

  /** The item grew or shrank. */
  resize(item: LruItem, bytes: number): void {
    const isPassing = item.lruClass === passing;
    const index = isPassing ? passing : classOf(bytes);
    const from = this.#classes[item.lruClass]!;
    from.bytes -= item.lruBytes;
    if (isPassing) this.passingBytes += bytes - item.lruBytes;
    else this.bytes += bytes - item.lruBytes;
    item.lruBytes = bytes;
    if (index !== item.lruClass) {
      const to = this.#classes[index]!;
      this.#unlink(from, item);
      from.items--;
      to.items++;
      item.lruClass = index;
      this.#link(to, item);
    }
    this.#classes[index]!.bytes += bytes;
  }

  /** The item is about to be removed for want of room: its key is kept. */
  noteEvicted(item: LruItem): void {
    const { ghosts, eldestGhost, items } = this.#classes[item.lruClass]!;
    ghosts.add(item.ghostKey());
    if (ghosts.size > Math.min(this.#ghostsPerClass, 64 + 2 * items)) eldestGhost.take();
  }

  /**
   * The item to evict: the oldest item of the class with the fewest hits per byte. Skips classes whose oldest item
   * was used in `busySince` or later; undefined if all are skipped.
   */
  victim(busySince = Infinity): LruItem | undefined {
    let lowest = Infinity;
    let victim: LruItem | undefined;
    // Within half a window of old hits, the older half fades out.
    const fade = 1 - this.#accesses / this.#windowAccesses;
    for (let index = 0; index < classCount; index++) {
      const sizeClass = this.#classes[index]!;
      const { oldest } = sizeClass;
      if (oldest === undefined || oldest.lruTick >= busySince) continue;
      const density = (sizeClass.hits + sizeClass.hitsBefore * fade + 1) / sizeClass.bytes;
      if (density < lowest) {
        lowest = density;
        victim = oldest;
      }
    }
    return victim;
  }

  #access(): void {
    if (++this.#accesses < this.#windowAccesses) return;
    this.#accesses = 0;
    for (const sizeClass of this.#classes) {
      sizeClass.hitsBefore = sizeClass.hits;
      sizeClass.hits = 0;
    }
  }

  #link(sizeClass: SizeClass, item: LruItem): void {
    item.lruNewer = undefined;
    item.lruOlder = sizeClass.newest;
    if (sizeClass.newest === undefined) sizeClass.oldest = item;
    else sizeClass.newest.lruNewer = item;
    sizeClass.newest = item;
  }

  #unlink(sizeClass: SizeClass, item: LruItem): void {
    const { lruNewer, lruOlder } = item;
    if (lruNewer === undefined) sizeClass.newest = lruOlder;
    else lruNewer.lruOlder = lruOlder;
    if (lruOlder === undefined) sizeClass.oldest = lruNewer;
    else lruOlder.lruNewer = lruNewer;
    item.lruNewer = undefined;
    item.lruOlder = undefined;
  }
}
