// One quota for all servers, counted by the tracker of its key (Amazon, "Fairness in multi-tenant systems"). While the key
// is slow the tracker is asked for every request. Beyond a rate that would make the tracker a hot spot servers ask for
// more at once and decide by themselves until that is used up: the faster the key, the larger the leases, and the
// tracker is asked about as often as before.
//
// A server keeps one `LeasedQuota` for a key, and has one question in flight at a time:
//
//   decide -> yes | no | wait       for each request; one that waits is decided again after an answer
//   ask -> units                    after each decision: units to request from the tracker, 0 for none
//   answer, or unreachable          its result

import { TokenBucket } from '../../../request-units/token-bucket.ts';

interface QuotaTrackerOptions {
  /** Tokens that may accumulate, in seconds of the quota. */
  burstSeconds: number;
  /** Units a second asked of a key up to which each request is asked for by itself; Infinity for no leases. */
  leaseAbove: number;
  /** Whether the bucket starts full. */
  beginsFull: boolean;
}

const quotaTrackerDefaults: QuotaTrackerOptions = {
  burstSeconds: 1,
  leaseAbove: 1000,
  beginsFull: true,
};

/** Time constant of a key's rate, in milliseconds. */
const memoryMs = 250;
/** A server that did not ask for so long, milliseconds, is not counted among those that do. */
const silentMs = 1000;

/**
 * Counts for one key. Further results besides the units granted are in its fields until the next
 * question.
 */
export class QuotaTracker {
  /** For so many milliseconds there is no use in asking for more than was granted. */
  refusedMs = 0;
  /** A lease is to last so many milliseconds; 0 for none. */
  leaseMs = 0;
  readonly #options: QuotaTrackerOptions;
  readonly #bucket: TokenBucket;
  readonly #askedAt = new Map<string, number>();
  /** Units that servers have seen, fading. */
  #seen = 0;
  #seenAt: number;
  #prunedAt: number;

  /** `quota` in units a second. */
  constructor(quota: number, now: number, options: Partial<QuotaTrackerOptions> = {}) {
    this.#options = { ...quotaTrackerDefaults, ...options };
    this.#bucket = new TokenBucket(quota, quota * this.#options.burstSeconds, now);
    if (!this.#options.beginsFull) this.#bucket.takeSome(Infinity, now);
    this.#seenAt = now;
    this.#prunedAt = now;
  }

  setQuota(quota: number, now: number): void {
    this.#bucket.reshape(quota, quota * this.#options.burstSeconds, now);
  }

  /** Units that were granted did not reach the server, and will not. */
  giveBack(units: number, now: number): void {
    this.#bucket.debit(-units, now);
  }

  /** A server wants units, and has seen so many since it last asked. Returns how many it gets: some, all or none. */
  ask(server: string, wanted: number, seen: number, now: number): number {
    this.#observe(server, seen, now);
    const { leaseAbove } = this.#options;
    const rate = (this.#seen / memoryMs) * 1000;
    this.leaseMs = rate > leaseAbove ? (this.#askedAt.size * 1000) / leaseAbove : 0;
    const granted = this.#bucket.takeSome(wanted, now);
    this.refusedMs = granted < wanted ? Math.max(this.leaseMs, this.#bucket.wait(1, now)) : 0;
    return granted;
  }

  #observe(server: string, seen: number, now: number): void {
    if (now > this.#seenAt) {
      this.#seen *= Math.exp((this.#seenAt - now) / memoryMs);
      this.#seenAt = now;
    }
    this.#seen += seen;
    this.#askedAt.set(server, now);
    if (now < this.#prunedAt + silentMs / 4) return;
    this.#prunedAt = now;
    for (const [other, at] of this.#askedAt) {
      if (now - at > silentMs) this.#askedAt.delete(other);
    }
  }
}

interface LeasedQuotaOptions {
  /** Units of a lease that were not used for so long are forgotten, milliseconds. */
  keepMs: number;
  /** While the tracker cannot be reached: units a second by which the server decides alone. */
  aloneRate: number;
  /** Until the tracker is tried again, milliseconds. */
  retryMs: number;
}

const leasedQuotaDefaults: LeasedQuotaOptions = {
  keepMs: 1000,
  aloneRate: 0,
  retryMs: 1000,
};

type LeaseDecision = 'yes' | 'no' | 'wait';

/** A server's side of a quota that is counted elsewhere. */
export class LeasedQuota {
  readonly #options: LeasedQuotaOptions;
  readonly #alone: TokenBucket;
  #tokens = 0;
  #tokensUntil = 0;
  #refusedUntil = -Infinity;
  /** Units of the requests that wait. */
  #waiting = 0;
  /** Since the last question. */
  #seen = 0;
  #seenBefore = 0;
  /** Units a millisecond. */
  #rate = 0;
  #leaseMs = 0;
  #asked = 0;
  #askedAt: number;
  #isAlone = false;
  /** From the question to its answer, milliseconds. */
  #tripMs = 0;

  constructor(now: number, options: Partial<LeasedQuotaOptions> = {}) {
    this.#options = { ...leasedQuotaDefaults, ...options };
    this.#alone = new TokenBucket(this.#options.aloneRate, this.#options.aloneRate, now);
    this.#askedAt = now;
  }

  decide(cost: number, now: number): LeaseDecision {
    this.#seen += cost;
    return this.#decide(cost, now);
  }

  /** A request that waits, after an answer. */
  decideAgain(cost: number, now: number): LeaseDecision {
    this.#waiting = Math.max(0, this.#waiting - cost);
    return this.#decide(cost, now);
  }

  /** Units that are to be asked of the tracker now; `seen` goes along. 0 if nothing is. */
  ask(now: number): number {
    if (this.#asked > 0) return 0;
    const passed = now - this.#askedAt;
    if (this.#isAlone && passed < this.#options.retryMs) return 0;
    if (this.#waiting === 0 && !this.#isAlone && !this.#runsOut(now)) return 0;
    // Long silence says little about later demand.
    if (passed > 0) this.#rate = (this.#rate + this.#seen / passed) / 2;
    const ahead = this.#leaseMs > 0 ? this.#rate * (this.#leaseMs + 2 * this.#tripMs) : 0;
    this.#asked = Math.max(1, this.#waiting, this.#waiting + ahead - this.#tokens);
    this.#askedAt = now;
    this.#seenBefore = this.#seen;
    this.#seen = 0;
    return this.#asked;
  }

  /** Demand seen until the last question was asked. */
  get seen(): number {
    return this.#seenBefore;
  }

  /** Applies the tracker's answer; waiting requests are then decided again. */
  answer(granted: number, refusedMs: number, leaseMs: number, now: number): void {
    this.#dropOld(now);
    this.#tokens += granted;
    this.#tokensUntil = now + this.#options.keepMs;
    this.#leaseMs = leaseMs;
    if (granted < this.#asked) this.#refusedUntil = now + refusedMs;
    const trip = now - this.#askedAt;
    this.#tripMs = this.#tripMs === 0 ? trip : (this.#tripMs * 7 + trip) / 8;
    this.#asked = 0;
    this.#isAlone = false;
  }

  /** No answer came in time; those that wait are to be decided again. */
  unreachable(): void {
    this.#asked = 0;
    this.#isAlone = true;
  }

  #decide(cost: number, now: number): LeaseDecision {
    this.#dropOld(now);
    if (this.#tokens >= cost) {
      this.#tokens -= cost;
      return 'yes';
    }
    if (this.#isAlone) return this.#alone.take(cost, now) ? 'yes' : 'no';
    if (now < this.#refusedUntil) return 'no';
    this.#waiting += cost;
    return 'wait';
  }

  #dropOld(now: number): void {
    if (now > this.#tokensUntil) this.#tokens = 0;
  }

  /** A lease is requested before the last one is used up, so that no request has to wait for it. */
  #runsOut(now: number): boolean {
    if (this.#leaseMs === 0 || this.#seen === 0 || now < this.#refusedUntil) return false;
    return this.#tokens <= this.#rate * 2 * this.#tripMs;
  }
}
