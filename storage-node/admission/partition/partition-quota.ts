// The ceiling of one partition at the node's entry, before any queue (ABase, section 4.2). With hash sharding traffic
// is even over partitions, so a partition far above its share is skewed and harms its neighbours.

import { TokenBucket } from '../../../request-units/token-bucket.ts';

/** Most debt, in seconds of its rate: the excess is forgiven, as for tenants over Redis. */
const debtSeconds = 10;

export class PartitionQuota {
  readonly #bucket: TokenBucket;

  /**
   * `part` is the partition's share of the tenant's quota in units a second. The ceiling is `headroom` times that.
   * `atOnce` is the burst in units.
   */
  constructor(part: number, now: number, headroom: number, atOnce: number) {
    this.#bucket = new TokenBucket(part * headroom, atOnce, now, debtSeconds);
  }

  setPart(part: number, now: number, headroom: number, atOnce: number): void {
    this.#bucket.reshape(part * headroom, atOnce, now);
  }

  /** Milliseconds until a request is admitted; 0 while nothing is owed. */
  waitMs(now: number): number {
    return this.#bucket.waitForAny(now);
  }

  /** Admitted requests have cost so many units. */
  charge(units: number, now: number): void {
    this.#bucket.debit(units, now);
  }

  /** Whether the bucket is full, as if never used. */
  isUntouched(now: number): boolean {
    return this.#bucket.balance(now) === this.#bucket.capacity;
  }
}
