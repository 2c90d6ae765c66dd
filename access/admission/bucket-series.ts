// Token buckets one behind the other: a request must pass all of them (Amazon, "Fairness in multi-tenant systems").
// A slow one with a large capacity and a fast one with a small one let a large burst through, at a bounded speed.

import { TokenBucket } from '../../request-units/token-bucket.ts';

export interface BucketShape {
  /** Units a second. */
  rate: number;
  capacity: number;
}

export class BucketSeries {
  readonly #buckets: readonly TokenBucket[];

  constructor(shapes: readonly BucketShape[], now: number) {
    this.#buckets = shapes.map(({ rate, capacity }) => new TokenBucket(rate, capacity, now));
  }

  /** From all of them or from none. */
  take(cost: number, now: number): boolean {
    for (const bucket of this.#buckets) if (bucket.balance(now) < cost) return false;
    for (const bucket of this.#buckets) bucket.debit(cost, now);
    return true;
  }

  /** Milliseconds until all have it, if nobody takes any. */
  wait(cost: number, now: number): number {
    let longest = 0;
    for (const bucket of this.#buckets) longest = Math.max(longest, bucket.wait(cost, now));
    return longest;
  }
}
