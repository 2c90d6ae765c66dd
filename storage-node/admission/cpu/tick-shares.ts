// The time each tenant has used of one event-loop tick, compared with its fair share. A tick serves
// all connections with new requests: with a hundred of them it is long, regardless of their tenants.
// While no tenant exceeds its share, queueing helps none, and it costs a tenth of a small command.

interface TickSharesOptions {
  /** Times its share that a tenant may use: random load exceeds it now and then. */
  headroom: number;
  /** Milliseconds that any tenant may use. */
  freeMs: number;
  /** Tenants are active for one to two times this after their last request. */
  activeMs: number;
}

export const tickSharesDefaults: TickSharesOptions = {
  headroom: 1.5,
  freeMs: 0.02,
  activeMs: 100,
};

interface Share {
  readonly tenant: number;
  weight: number;
  /** Used in the tick of number `tick`. */
  ms: number;
  tick: number;
  /** The last period in which it had a request. */
  period: number;
}

export class TickShares {
  readonly #options: TickSharesOptions;
  readonly #shares = new Map<number, Share>();
  #tick = 0;
  #tickMs = 0;
  /** The tenant of the last request, and when it came: the time until the next one is its. */
  #last: Share | undefined;
  #askedAt = -Infinity;
  #period = 0;
  #periodAt = -Infinity;
  /** Weights of tenants active in the period before, and in this one. */
  #weightBefore = 0;
  #weight = 0;

  constructor(options: Partial<TickSharesOptions> = {}) {
    this.#options = { ...tickSharesDefaults, ...options };
  }

  /** When the last request came, or the tick began. */
  get askedAt(): number {
    return this.#askedAt;
  }

  /** 1 unless set. */
  setWeight(tenant: number, weight: number): void {
    const share = this.#shareOf(tenant);
    if (share.period === this.#period) this.#weight += weight - share.weight;
    share.weight = weight;
  }

  forget(tenant: number): void {
    this.#shares.delete(tenant);
    if (this.#last?.tenant === tenant) this.#last = undefined;
  }

  begin(now: number): void {
    this.#tick++;
    this.#tickMs = 0;
    this.#last = undefined;
    this.#askedAt = now;
    if (now - this.#periodAt < this.#options.activeMs) return;
    this.#periodAt = now;
    this.#period++;
    this.#weightBefore = this.#weight;
    this.#weight = 0;
  }

  /** A request of the tenant came, and runs now or is queued. Returns whether the tenant is within its share of the tick. */
  asked(tenant: number, now: number): boolean {
    const last = this.#last;
    if (last !== undefined) {
      const ms = now - this.#askedAt;
      last.ms += ms;
      this.#tickMs += ms;
    }
    this.#askedAt = now;
    const share = last?.tenant === tenant ? last : this.#shareOf(tenant);
    this.#last = share;
    if (share.tick !== this.#tick) {
      share.tick = this.#tick;
      share.ms = 0;
    }
    if (share.period !== this.#period) {
      share.period = this.#period;
      this.#weight += share.weight;
    }
    const { headroom, freeMs } = this.#options;
    const weights = Math.max(this.#weight, this.#weightBefore);
    return share.ms <= freeMs + (headroom * this.#tickMs * share.weight) / weights;
  }

  #shareOf(tenant: number): Share {
    let share = this.#shares.get(tenant);
    if (share === undefined) {
      this.#shares.set(tenant, (share = { tenant, weight: 1, ms: 0, tick: -1, period: -1 }));
    }
    return share;
  }
}
