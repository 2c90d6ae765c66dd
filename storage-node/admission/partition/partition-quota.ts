// The ceiling of one partition at the node's entry, before any queue (ABase, section 4.2): with hash sharding traffic is
// even over partitions, so that one far above its part is skewed, and hurts its neighbours.

import { TokenBucket } from '../../../request-units/token-bucket.ts';

/** Most debt, in seconds of its rate: the excess is forgiven, as for tenants over Redis. */
const debtSeconds = 10;

export class PartitionQuota {
  readonly #bucket: TokenBucket;

  /**
   * `part` is the tenant's quota over its partitions, units a second; `headroom` times that is the ceiling; `atOnce` are
   * the units that may be taken at once.
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
