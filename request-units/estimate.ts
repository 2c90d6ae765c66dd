// Estimates a request's cost from previous requests. The exact cost is known only afterwards; explain and admission need
// it before. Token buckets settle the difference: see token-bucket.ts.

/** Bytes that are one unit of `abase`'s policy. */
const unitBytes = 2048;
/** Even a read from a cache costs its node something. */
const cheapestRead = 0.1;

const windowReads = 100;
const fastReads = 10;
// Before anything was read: 1 kB, and nothing of it in a cache.
const firstBytes = 1024;

/** The sizes and hits of the last reads of a tenant. */
export class ReadHistory {
  private readonly sizes = new Float64Array(windowReads);
  private readonly hits = new Uint8Array(windowReads);
  private next = 0;
  private count = 0;
  private sumBytes = 0;
  private sumHits = 0;
  private fastHits = 0;

  observe(bytes: number, hit: boolean): void {
    const { sizes, hits, next } = this;
    if (this.count === windowReads) {
      this.sumBytes -= sizes[next]!;
      this.sumHits -= hits[next]!;
    } else this.count++;
    const leavesFast = (next + windowReads - fastReads) % windowReads;
    if (this.count > fastReads) this.fastHits -= hits[leavesFast]!;
    sizes[next] = bytes;
    hits[next] = hit ? 1 : 0;
    this.sumBytes += bytes;
    this.sumHits += hits[next]!;
    this.fastHits += hits[next]!;
    this.next = (next + 1) % windowReads;
  }

  /** Expected size of the next read. */
  get expectedBytes(): number {
    return this.count === 0 ? firstBytes : this.sumBytes / this.count;
  }

  /**
   * How likely the next read is a hit. A cache can grow cold within seconds, so the last few reads count when
   * they hit less than the others.
   */
  get expectedHit(): number {
    if (this.count === 0) return 0;
    const all = this.sumHits / this.count;
    return Math.min(all, this.fastHits / Math.min(this.count, fastReads));
  }

  /** Policy `abase`: only reads from disk count. */
  get readUnits(): number {
    const missed = this.expectedBytes * (1 - this.expectedHit);
    return Math.max(cheapestRead, missed / unitBytes);
  }

  /** Expected cost, between those of a hit and of a miss. */
  between(hitCost: number, missCost: number): number {
    const hit = this.expectedHit;
    return hit * hitCost + (1 - hit) * missCost;
  }
}

const rememberedKinds = 512;
const newestStatement = 0.25;
const firstStatement = 1;

/** Cost of statements that differ only in their values, learned from previous ones. */
export class StatementHistory {
  /** By kind, a number; the one that was met longest ago comes first. */
  readonly #means = new Map<number, number>();

  /** Units of the next one; 1 for a kind that is not known. */
  expected(kind: number): number {
    return this.#means.get(kind) ?? firstStatement;
  }

  observe(kind: number, cost: number): void {
    const mean = this.#means.get(kind);
    this.#means.delete(kind);
    this.#means.set(kind, mean === undefined ? cost : mean + newestStatement * (cost - mean));
    if (this.#means.size <= rememberedKinds) return;
    const [oldest] = this.#means.keys();
    this.#means.delete(oldest!);
  }
}
