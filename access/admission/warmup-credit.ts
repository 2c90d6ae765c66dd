// What a new tenant or table may use beyond its quota, once: load is highest when something is started (Amazon, "Fairness
// in multi-tenant systems"). Its rate in the long run stays that of its quota.
//
// Two buckets in series: one that nothing fills, and one that bounds the speed at which it is emptied.

import { BucketSeries } from './bucket-series.ts';

export interface WarmupCreditOptions {
  /** Times the quota that can be had with the credit; 1 for no credit. */
  factor: number;
  /** For so many seconds. */
  seconds: number;
}

export const warmupCreditDefaults: WarmupCreditOptions = { factor: 3, seconds: 300 };

export class WarmupCredit {
  readonly #buckets: BucketSeries;
  #left: number;

  /**
   * `quota` is that with which the tenant begins, or a gateway's share of it, in units a second. `spent` is what was
   * taken of the credit before: a gateway that starts again gives it no second time.
   */
  constructor(
    quota: number,
    now: number,
    { options = {}, spent = 0 }: { options?: Partial<WarmupCreditOptions>; spent?: number } = {},
  ) {
    const { factor, seconds } = { ...warmupCreditDefaults, ...options };
    const speed = (factor - 1) * quota;
    this.#left = Math.max(0, speed * seconds - spent);
    this.#buckets = new BucketSeries(
      [
        { rate: 0, capacity: this.#left },
        { rate: speed, capacity: speed },
      ],
      now,
    );
  }

  /** Units. */
  get left(): number {
    return this.#left;
  }

  /** Of a request that the quota has no room for: all of its cost, or nothing. */
  take(cost: number, now: number): boolean {
    if (this.#left < cost || !this.#buckets.take(cost, now)) return false;
    this.#left -= cost;
    return true;
  }
}
