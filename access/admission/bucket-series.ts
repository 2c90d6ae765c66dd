// Token buckets in series: a request must pass all of them (Amazon, "Fairness in multi-tenant systems").
// A slow bucket with a large capacity and a fast bucket with a small capacity admit a large burst at a bounded rate.

import { TokenBucket } from '../../request-units/token-bucket.ts';

export interface BucketShape {
  /** Units a second. */
  rate: number;
  capacity: number;
}

/** Interface of one bucket or several combined, as a limiter uses it: see `TokenBucket`. */
export interface LimiterBucket {
  balance(now: number): number;
  beyond(part: number, now: number): number;
  admit(cost: number, now: number): boolean;
  debit(cost: number, now: number): void;
  waitForAny(now: number): number;
}

export class BucketSeries implements LimiterBucket {
  readonly #buckets: readonly TokenBucket[];

  constructor(buckets: readonly TokenBucket[]) {
    this.#buckets = buckets;
  }

  /** A series of full buckets. */
  static of(shapes: readonly BucketShape[], now: number): BucketSeries {
    return new BucketSeries(
      shapes.map(({ rate, capacity }) => new TokenBucket(rate, capacity, now)),
    );
  }

  /** Balance of the bucket that has the least. */
  balance(now: number): number {
    let least = Infinity;
    for (const bucket of this.#buckets) least = Math.min(least, bucket.balance(now));
    return least;
  }

  beyond(part: number, now: number): number {
    let least = Infinity;
    for (const bucket of this.#buckets) least = Math.min(least, bucket.beyond(part, now));
    return least;
  }

  /** Debits all buckets if each of them has the cost, else none. Returns whether it did. */
  take(cost: number, now: number): boolean {
    if (this.balance(now) < cost) return false;
    this.debit(cost, now);
    return true;
  }

  /** Debits all buckets if each has a positive balance, else none. Returns whether it did. */
  admit(cost: number, now: number): boolean {
    if (this.balance(now) <= 0) return false;
    this.debit(cost, now);
    return true;
  }

  debit(cost: number, now: number): void {
    for (const bucket of this.#buckets) bucket.debit(cost, now);
  }

  /** Milliseconds until all buckets have the cost, if no units are taken meanwhile. */
  wait(cost: number, now: number): number {
    let longest = 0;
    for (const bucket of this.#buckets) longest = Math.max(longest, bucket.wait(cost, now));
    return longest;
  }

  waitForAny(now: number): number {
    let longest = 0;
    for (const bucket of this.#buckets) longest = Math.max(longest, bucket.waitForAny(now));
    return longest;
  }
}
