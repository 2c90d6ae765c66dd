// Token buckets one behind the other: a request must pass all of them (Amazon, "Fairness in multi-tenant systems").
// A slow one with a large capacity and a fast one with a small one let a large burst through, at a bounded speed.

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

  /** Full ones. */
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

  /** From all of them or from none. */
  take(cost: number, now: number): boolean {
    if (this.balance(now) < cost) return false;
    this.debit(cost, now);
    return true;
  }

  /** From all of them if nothing is owed to any. */
  admit(cost: number, now: number): boolean {
    if (this.balance(now) <= 0) return false;
    this.debit(cost, now);
    return true;
  }

  debit(cost: number, now: number): void {
    for (const bucket of this.#buckets) bucket.debit(cost, now);
  }

  /** Milliseconds until all have it, if none is taken. */
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
