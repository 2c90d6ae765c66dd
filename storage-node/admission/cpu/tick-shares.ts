// What each tenant has had of one round of the event loop, against its part of it. A round serves all that have sent
// something: with a hundred connections it is long, whoever they belong to. As long as no tenant has more than its part
// of it, nobody gains by lining up, which costs as much as a tenth of a small command.

export interface TickSharesOptions {
  /** Times its part that a tenant may have: what is random is no flood. */
  headroom: number;
  /** Milliseconds that any tenant may have. */
  freeMs: number;
  /** Tenants count that have asked for anything within one to two times this. */
  aboutMs: number;
}

export const tickSharesDefaults: TickSharesOptions = {
  headroom: 1.5,
  freeMs: 0.02,
  aboutMs: 100,
};

interface Part {
  readonly tenant: number;
  weight: number;
  /** Of this round, if `round` says so. */
  ms: number;
  round: number;
  /** The last period in which it asked. */
  period: number;
}

export class TickShares {
  readonly #options: TickSharesOptions;
  readonly #parts = new Map<number, Part>();
  #round = 0;
  #roundMs = 0;
  /** Who asked last, and when: what goes by until the next one does is its time. */
  #last: Part | undefined;
  #askedAt = -Infinity;
  #period = 0;
  #periodAt = -Infinity;
  /** Of the tenants that asked in the period before, and in this one. */
  #weightBefore = 0;
  #weight = 0;

  constructor(options: Partial<TickSharesOptions> = {}) {
    this.#options = { ...tickSharesDefaults, ...options };
  }

  /** When the last one asked, or the round began. */
  get askedAt(): number {
    return this.#askedAt;
  }

  /** Tenants weigh 1 unless it is said otherwise. */
  setWeight(tenant: number, weight: number): void {
    const part = this.#partOf(tenant);
    if (part.period === this.#period) this.#weight += weight - part.weight;
    part.weight = weight;
  }

  forget(tenant: number): void {
    this.#parts.delete(tenant);
    if (this.#last?.tenant === tenant) this.#last = undefined;
  }

  begin(now: number): void {
    this.#round++;
    this.#roundMs = 0;
    this.#last = undefined;
    this.#askedAt = now;
    if (now - this.#periodAt < this.#options.aboutMs) return;
    this.#periodAt = now;
    this.#period++;
    this.#weightBefore = this.#weight;
    this.#weight = 0;
  }

  /** Work of the tenant has come, and runs now or waits. Returns whether the tenant is within its part of the round. */
  asked(tenant: number, now: number): boolean {
    const last = this.#last;
    if (last !== undefined) {
      const ms = now - this.#askedAt;
      last.ms += ms;
      this.#roundMs += ms;
    }
    this.#askedAt = now;
    const part = last?.tenant === tenant ? last : this.#partOf(tenant);
    this.#last = part;
    if (part.round !== this.#round) {
      part.round = this.#round;
      part.ms = 0;
    }
    if (part.period !== this.#period) {
      part.period = this.#period;
      this.#weight += part.weight;
    }
    const { headroom, freeMs } = this.#options;
    const weights = Math.max(this.#weight, this.#weightBefore);
    return part.ms <= freeMs + (headroom * this.#roundMs * part.weight) / weights;
  }

  #partOf(tenant: number): Part {
    let part = this.#parts.get(tenant);
    if (part === undefined) {
      this.#parts.set(tenant, (part = { tenant, weight: 1, ms: 0, round: -1, period: -1 }));
    }
    return part;
  }
}
