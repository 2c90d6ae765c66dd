// A new tenant's one-time credit beyond its quota: load is highest at the start of an application
// (Amazon, "Fairness in multi-tenant systems"). In its first seconds the quota is multiplied; in
// the long run the quota's rate applies.
//
// The credit is computed from the tenant's time of creation and stored nowhere: no restart, no
// other gateway and no change of limits grants it a second time. The multiple bounds its rate as
// well.

interface WarmupCreditOptions {
  /** Times the quota that a new tenant has; 1 for no credit. */
  factor: number;
  /** Duration of the credit in seconds from the tenant's creation; 0 for no credit. */
  seconds: number;
}

const warmupCreditDefaults: WarmupCreditOptions = { factor: 3, seconds: 300 };

export class WarmupCredit {
  readonly #factor: number;
  /** Milliseconds. */
  readonly #end: number;

  /**
   * Credit of a tenant created at `madeAt`. All times here are monotonic milliseconds; `madeAt` may
   * be before any of them.
   */
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
