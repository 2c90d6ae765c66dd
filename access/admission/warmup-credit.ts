// What a new tenant may use beyond its quota, once: load is highest when something is started (Amazon, "Fairness in
// multi-tenant systems"). For its first seconds its quota counts several times; its rate in the long run stays that of
// its quota.
//
// All of the credit follows from when the tenant was made, and nothing of it is kept anywhere: no restart, no other
// gateway and no change of its limits gives it a second time. Being had at that speed only, it is bounded in speed as
// well.

interface WarmupCreditOptions {
  /** Times the quota that a new tenant has; 1 for no credit. */
  factor: number;
  /** For so many seconds from when it was made; 0 for no credit. */
  seconds: number;
}

const warmupCreditDefaults: WarmupCreditOptions = { factor: 3, seconds: 300 };

export class WarmupCredit {
  readonly #factor: number;
  /** Milliseconds. */
  readonly #end: number;

  /** Of a tenant that was made at `madeAt`, monotonic milliseconds as all times here; it may be before any of them. */
  constructor(madeAt: number, options: Partial<WarmupCreditOptions> = {}) {
    const { factor, seconds } = { ...warmupCreditDefaults, ...options };
    this.#factor = factor;
    this.#end = madeAt + seconds * 1000;
  }

  /** Times its quota that the tenant has now. */
  factor(now: number): number {
    return now < this.#end ? this.#factor : 1;
  }

  /** Units beyond the quota, in units a second, that it can still have. */
  left(quota: number, now: number): number {
    return (Math.max(0, this.#end - now) / 1000) * (this.#factor - 1) * quota;
  }
}
