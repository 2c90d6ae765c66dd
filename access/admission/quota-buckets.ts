// The token buckets of one tenant's quota: the units it may spend now, given its quota, its peak
// rate and, while it is new, its warm-up credit.

import { TokenBucket } from '../../request-units/token-bucket.ts';
import type { AdmissionRules, Quota } from './admission-rules.ts';
import { BucketSeries, type LimiterBucket } from './bucket-series.ts';
import { WarmupCredit } from './warmup-credit.ts';

/** Seconds of the peak rate that may be spent at once. */
const peakSeconds = 0.1;

export class QuotaBuckets {
  /** Units that can be spent now: of the quota's bucket and of the peak's. */
  spendable: LimiterBucket;
  /** Units a second that the tenant may spend now. */
  rate = 0;
  readonly #rules: AdmissionRules;
  /** Filled at the tenant's quota. */
  #own: TokenBucket;
  /** Bounds the speed of a burst, where there is such a limit. */
  #peak: TokenBucket | undefined;
  #quota: Quota;
  /** When the tenant was made, monotonic milliseconds; -Infinity for long ago. */
  readonly #madeAt: number;
  #credit: WarmupCredit | undefined;
  /** Multiple of the quota that the tenant may spend; above 1 during warm-up. */
  #factor = 1;

  constructor(quota: Quota, rules: AdmissionRules, now: number, madeAt: number) {
    this.#quota = quota;
    this.#rules = rules;
    this.#madeAt = madeAt;
    this.rate = quota.perSecond;
    this.spendable = this.#own = this.#newBucket(now);
  }

  get quota(): Quota {
    return this.#quota;
  }

  /** Units beyond the new quota's capacity are lost; debts stay. */
  setQuota(quota: Quota, now: number): void {
    this.#quota = quota;
    this.#reshape(now);
  }

  rulesChanged(now: number): void {
    const { warmupFactor, warmupSeconds } = this.#rules;
    this.#credit = new WarmupCredit(this.#madeAt, { factor: warmupFactor, seconds: warmupSeconds });
    this.warmUp(now);
    this.#reshape(now);
  }

  /** Starts or ends the multiple of the warm-up credit when that is due. */
  warmUp(now: number): void {
    if (this.#credit === undefined) return;
    const factor = this.#credit.factor(now);
    if (factor === 1) this.#credit = undefined;
    if (factor === this.#factor) return;
    this.#factor = factor;
    this.#reshape(now);
  }

  /** Units beyond the quota that the tenant can still spend in its warm-up; 0 afterwards. */
  warmupLeft(now: number): number {
    return this.#credit?.left(this.#quota.perSecond, now) ?? 0;
  }

  /** Begins anew, without savings or debts. */
  restart(now: number): void {
    this.#own = this.#newBucket(now);
    this.#peak = undefined;
    this.#reshape(now);
  }

  /** Units that the full bucket of the quota could not take since the last call. */
  takeSpilled(now: number): number {
    return this.#own.takeSpilled(now);
  }

  get #capacity(): number {
    return this.rate + this.#quota.burst;
  }

  #newBucket(now: number): TokenBucket {
    return new TokenBucket(this.rate, this.#capacity, now, this.#rules.debtSeconds);
  }

  /** The quota, the warm-up factor or the rules have changed. */
  #reshape(now: number): void {
    this.rate = this.#quota.perSecond * this.#factor;
    this.#own.reshape(this.rate, this.#capacity, now);
    const { peak } = this.#quota;
    if (peak === 0) {
      this.#peak = undefined;
      this.spendable = this.#own;
      return;
    }
    const capacity = peak * peakSeconds;
    if (this.#peak === undefined) {
      this.#peak = new TokenBucket(peak, capacity, now, this.#rules.debtSeconds);
    } else {
      this.#peak.reshape(peak, capacity, now);
    }
    this.spendable = new BucketSeries([this.#own, this.#peak]);
  }
}
