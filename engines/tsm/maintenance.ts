// Keeps memory within bounds and files few: flushes heads when together they are too large or nothing is
// written to them any more, and compacts files. All in slices.

import type { Clock } from '../../universal-row/environment.ts';
import { everyTick, type MaintenanceSlices } from '../../contracts/maintenance-slices.ts';
import type { LiveShard } from './live-shard.ts';

interface MaintenanceOptions {
  readonly clock: Clock;
  /** Heads are flushed when all together are larger. At twice that writes wait. */
  readonly headBytes: number;
  /** A head without a write for so long is flushed. */
  readonly coldAfterMs: number;
  /** When slices may run while writes wait. */
  slices(): MaintenanceSlices | undefined;
  /** Most values that a read of one series may go through before the head is flushed. At twice as many, writes wait. */
  readonly longestRead: number;
}

const flushRetryMs = 1000;
const compactionRetryMs = 30_000;
const compactionLookMs = 500;
const idlePumpMs = 20;

interface Waiter {
  resolve: () => void;
  reject: (reason: unknown) => void;
}

export class Maintenance {
  failure: Error | undefined = undefined;
  /** The shard of the failure. */
  #failed: LiveShard | undefined = undefined;
  compactionFailures = 0;
  flushFailures = 0;
  headBytes = 0;
  readonly #options: MaintenanceOptions;
  readonly #shards: ReadonlyMap<number, LiveShard>;
  /** Shards whose heads take too long to read. */
  readonly #longHeads = new Set<LiveShard>();
  /** Shards whose heads take more than twice that long to read. Writes wait while there are any. */
  readonly #overlongHeads = new Set<LiveShard>();
  #flushing: LiveShard | undefined = undefined;
  #compacting: LiveShard | undefined = undefined;
  #flushAgainAt = -Infinity;
  #compactAgainAt = -Infinity;
  readonly #waiters: Waiter[] = [];
  #pumping = false;
  #closed = false;

  constructor(options: MaintenanceOptions, shards: ReadonlyMap<number, LiveShard>) {
    this.#options = options;
    this.#shards = shards;
  }

  get congested(): boolean {
    return this.headBytes > 2 * this.#options.headBytes || this.#overlongHeads.size > 0;
  }

  /**
   * A head must be flushed for its size, or for the cost of reading it: flushing must keep up with
   * the writes.
   */
  get isBehind(): boolean {
    const isLarge = this.headBytes > this.#options.headBytes;
    return isLarge || this.#flushing !== undefined || this.#longHeads.size > 0;
  }

  /** Far more than waiting writers can cause: flushes whether or not a write waits. */
  get isOverrun(): boolean {
    return this.headBytes > 4 * this.#options.headBytes;
  }

  /** The heads of the shard have changed. */
  recount(live: LiveShard): void {
    // A flush cannot release the memory of an empty head, so no write waits for it.
    const holdsRows = live.shard.head.rows > 0 || live.shard.isFlushing;
    const bytes = live.isDropped || !holdsRows ? 0 : live.shard.headBytes;
    this.headBytes += bytes - live.countedHeadBytes;
    live.countedHeadBytes = bytes;
    const longest = live.isDropped ? 0 : live.shard.head.longestRead;
    const { longestRead } = this.#options;
    if (longest > longestRead) this.#longHeads.add(live);
    else this.#longHeads.delete(live);
    if (longest > 2 * longestRead) this.#overlongHeads.add(live);
    else this.#overlongHeads.delete(live);
    if (this.#waiters.length > 0 && !this.congested) {
      for (const waiter of this.#waiters.splice(0)) waiter.resolve();
    }
  }

  forget(live: LiveShard): void {
    live.isDropped = true;
    if (this.#failed === live) this.failure = this.#failed = undefined;
    this.recount(live);
    if (this.#flushing === live) this.#flushing = undefined;
    if (this.#compacting === live) this.#compacting = undefined;
  }

  /** Resolves when writers may continue. */
  drained(): Promise<void> {
    if (!this.congested) return Promise.resolve();
    if (this.failure !== undefined) return Promise.reject(this.failure);
    return new Promise((resolve, reject) => {
      this.#waiters.push({ resolve, reject });
      if (this.#pumping) return;
      this.#pumping = true;
      void this.#pump();
    });
  }

  /** Flushes in each slice that it gets while writes wait. */
  async #pump(): Promise<void> {
    try {
      while (this.#waiters.length > 0 && !this.#closed) {
        const slices = this.#options.slices() ?? everyTick;
        const worked = await slices.run(
          true,
          (ms) => !this.#closed && this.#work(ms, false, false),
        );
        const waiting = this.#flushing?.shard.waiting;
        if (waiting !== undefined) await waiting;
        // Nothing can be done before it is time to try again.
        else if (!worked) await new Promise((resolve) => setTimeout(resolve, idlePumpMs));
      }
    } finally {
      this.#pumping = false;
    }
  }

  close(): void {
    this.#closed = true;
    for (const waiter of this.#waiters.splice(0)) waiter.resolve();
  }

  /** Works for about `budgetMs`. Without `blocks`, stops where it would wait for the disk. Returns true when work is left. */
  background(budgetMs: number, blocks: boolean): boolean {
    return this.#work(budgetMs, true, blocks);
  }

  #work(budgetMs: number, compacts: boolean, blocks: boolean): boolean {
    const { clock } = this.#options;
    const end = clock.monotonic() + budgetMs;
    for (;;) {
      const left = end - clock.monotonic();
      if (left <= 0) return true;
      const flushed = this.flushLargest(left, blocks);
      const flushWaits = this.#flushing?.shard.waiting !== undefined;
      if (flushed && !flushWaits) continue;
      // A flush may wait for a compaction to proceed.
      const compacted = compacts && this.#compactSome(left, blocks);
      if (!flushed && !compacted) return false;
      if (flushWaits || this.#compacting?.shard.waiting !== undefined) return true;
    }
  }

  /** Flushes the largest head. Returns false if there is nothing to flush, or if it is too early to try again. */
  flushLargest(budgetMs: number, blocks: boolean): boolean {
    if (this.#options.clock.monotonic() < this.#flushAgainAt) return false;
    const live = this.#flushing ?? this.#nextToFlush();
    if (live === undefined) return false;
    this.#flushing = live;
    live.shard.sealHead();
    this.flushSlice(live, budgetMs, blocks);
    if (!live.shard.isFlushing) this.#flushing = undefined;
    return true;
  }

  #nextToFlush(): LiveShard | undefined {
    const { headBytes, coldAfterMs, longestRead, clock } = this.#options;
    const tooMuch = this.headBytes > headBytes;
    const coldSince = clock.monotonic() - coldAfterMs;
    let largest: LiveShard | undefined;
    for (const live of this.#shards.values()) {
      if (live.shard.isFlushing) return live;
      if (live.shard.head.rows === 0) continue;
      if (live.shard.head.longestRead > longestRead) return live;
      if (!tooMuch && live.lastWriteAt > coldSince) continue;
      if (live.countedHeadBytes > (largest?.countedHeadBytes ?? -1)) largest = live;
    }
    return largest;
  }

  /** One slice of a flush, whether maintenance or a checkpoint began it. Throws nothing: see `failure`. */
  flushSlice(live: LiveShard, budgetMs: number, blocks: boolean): void {
    try {
      if (live.shard.isFlushing) live.shard.flushSlice(budgetMs, blocks);
      if (!live.shard.isFlushing) this.failure = undefined;
    } catch (error) {
      this.#fail(live, error);
    }
    this.recount(live);
  }

  /** The disk did not take something. */
  #fail(live: LiveShard, error: unknown): void {
    this.#failed = live;
    const reason = error instanceof Error ? error.message : String(error);
    this.failure = new Error(`flushing ${live.shard.directory}: ${reason}`, { cause: error });
    this.flushFailures++;
    this.#flushAgainAt = this.#options.clock.monotonic() + flushRetryMs;
    for (const waiter of this.#waiters.splice(0)) waiter.reject(this.failure);
  }

  #compactSome(budgetMs: number, blocks: boolean): boolean {
    const now = this.#options.clock.monotonic();
    if (this.#compacting !== undefined) return this.#compact(this.#compacting, budgetMs, blocks);
    if (now < this.#compactAgainAt) return false;
    const live = this.#fullest();
    if (live !== undefined) return this.#compact(live, budgetMs, blocks);
    // A shard that is not written to any more is made one file, which it does not call pending.
    const coldSince = now - this.#options.coldAfterMs;
    for (const cold of this.#shards.values()) {
      if (cold.lastWriteAt > coldSince) continue;
      if (this.#compact(cold, budgetMs, blocks) && this.#compacting !== undefined) return true;
    }
    this.#compactAgainAt = now + compactionLookMs;
    return false;
  }

  /** False when it failed. */
  #compact(live: LiveShard, budgetMs: number, blocks: boolean): boolean {
    try {
      this.#compacting = live.shard.compactSlice(budgetMs, blocks) ? live : undefined;
      return true;
    } catch {
      // The shards it would merge stay readable, and the failure is counted.
      this.compactionFailures++;
      this.#compacting = undefined;
      this.#compactAgainAt = this.#options.clock.monotonic() + compactionRetryMs;
      return false;
    }
  }

  /** The shard with most to merge. */
  #fullest(): LiveShard | undefined {
    let most: LiveShard | undefined;
    let mostBytes = 0;
    for (const live of this.#shards.values()) {
      const bytes = live.shard.pendingCompactionBytes;
      if (bytes <= mostBytes) continue;
      most = live;
      mostBytes = bytes;
    }
    return most;
  }
}
