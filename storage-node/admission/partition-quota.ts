// The ceiling of one partition at the node's entry, before any queue (ABase, section 4.2): with hash sharding traffic is
// even over partitions, so that one far above its part is skewed, and hurts its neighbours.

import { TokenBucket } from '../../request-units/token-bucket.ts';

/** Times its part of the quota that a partition may take. */
export const partitionHeadroom = 3;

export class PartitionQuota {
  readonly #bucket: TokenBucket;

  /** `part` is the tenant's quota over its partitions, units a second. */
  constructor(part: number, now: number, headroom = partitionHeadroom) {
    const rate = part * headroom;
    // A tenth of a second's worth: what is beyond it would wait in the node's queues.
    this.#bucket = new TokenBucket(rate, rate / 10, now);
  }

  admit(cost: number, now: number): boolean {
    return this.#bucket.take(cost, now);
  }

  setPart(part: number, now: number, headroom = partitionHeadroom): void {
    const rate = part * headroom;
    this.#bucket.reshape(rate, rate / 10, now);
  }
}
