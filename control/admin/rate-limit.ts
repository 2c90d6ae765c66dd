// A rate limiter per caller, in a table of bounded size.

const mostCallers = 10_000;

interface Bucket {
  tokens: number;
  filledAt: number;
}

export class RateLimit {
  readonly #perSecond: () => number;
  readonly #burstSeconds: number;
  readonly #now: () => number;
  /** In the order of their last request. */
  readonly #buckets = new Map<string, Bucket>();

  /** Unused requests accumulate for `burstSeconds`. 0 a second is no limit. */
  constructor(perSecond: () => number, burstSeconds: number, now = () => performance.now()) {
    this.#perSecond = perSecond;
    this.#burstSeconds = burstSeconds;
    this.#now = now;
  }

  /** Returns 0 if the request may be served; otherwise the seconds after which the caller should retry. */
  take(caller: string): number {
    const perSecond = this.#perSecond();
    if (perSecond === 0) return 0;
    const most = Math.max(1, perSecond * this.#burstSeconds);
    const now = this.#now();
    const bucket = this.#buckets.get(caller) ?? { tokens: most, filledAt: now };
    const earned = ((now - bucket.filledAt) / 1000) * perSecond;
    bucket.tokens = Math.min(most, bucket.tokens + earned);
    bucket.filledAt = now;
    this.#keep(caller, bucket);
    if (bucket.tokens < 1) return Math.ceil((1 - bucket.tokens) / perSecond);
    bucket.tokens--;
    return 0;
  }

  #keep(caller: string, bucket: Bucket): void {
    this.#buckets.delete(caller);
    this.#buckets.set(caller, bucket);
    if (this.#buckets.size <= mostCallers) return;
    const [oldest] = this.#buckets.keys();
    this.#buckets.delete(oldest!);
  }
}
