// Slows down clients that guess passwords.
//
// The attempts of an address on a tenant (or of all clients on a user) are checked one after
// another. The first few failures cost nothing; after those every attempt is delayed, longer with
// each failure, up to a limit. An attempt that would have to wait too long is refused unchecked.
// Clients with a cached correct password are not delayed: see `Principals`.

interface LoginLimits {
  /** Limit of concurrent attempts. Beyond the free failures, attempts run one at a time. */
  atOnce: number;
  /** Failures that cause no delay. */
  free: number;
  /** Delay after the first failure beyond the free ones. Each further failure doubles the delay, up to `maxMs`. */
  firstMs: number;
  maxMs: number;
  /** Attempts that would wait longer are refused. */
  patienceMs: number;
  /** Milliseconds without a failure after which the failures are forgotten. */
  forgetMs: number;
  /** Limit of keys whose failures are remembered; those with the most recent failures are kept. */
  entries: number;
}

/** Limits for one address and one tenant. */
export const addressLimits: LoginLimits = {
  atOnce: 4,
  free: 10,
  firstMs: 10,
  maxMs: 250,
  patienceMs: 10_000,
  forgetMs: 60_000,
  entries: 10_000,
};

/**
 * Limits for one user, from any address. Attempts are not queued here: a user is not locked out by
 * another client's guesses.
 */
export const userLimits: LoginLimits = {
  ...addressLimits,
  atOnce: Infinity,
  maxMs: 1000,
  patienceMs: Infinity,
};

// Limit of waiting attempts of one key, however short the wait is.
const maxWaiting = 10_000;

interface Entry {
  failures: number;
  failedAt: number;
  running: number;
  waiting: (() => void)[];
}

export class LoginLimiter {
  readonly #options: LoginLimits;
  readonly #monotonic: () => number;
  // In the order of their last failure.
  readonly #entries = new Map<string, Entry>();

  constructor(options: LoginLimits, monotonic: () => number = () => performance.now()) {
    this.#options = options;
    this.#monotonic = monotonic;
  }

  /**
   * Resolves to true when an attempt may be made, and to false if it is refused. The caller calls `leave` after each
   * admitted attempt.
   */
  async enter(key: string): Promise<boolean> {
    let entry = this.#entries.get(key);
    if (entry === undefined) {
      entry = { failures: 0, failedAt: 0, running: 0, waiting: [] };
      this.#entries.set(key, entry);
    }
    const { forgetMs, patienceMs } = this.#options;
    if (this.#monotonic() - entry.failedAt > forgetMs) entry.failures = 0;
    if (entry.running < this.#atOnce(entry)) entry.running++;
    else {
      const ahead = entry.waiting.length;
      if (ahead >= maxWaiting || ahead * this.#distance(entry) > patienceMs) return false;
      const { waiting } = entry;
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
    const distance = this.#distance(entry);
    if (distance > 0) await new Promise((resolve) => setTimeout(resolve, distance));
    return true;
  }

  leave(key: string, failed: boolean): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    if (failed) {
      entry.failures++;
      entry.failedAt = this.#monotonic();
      this.#entries.delete(key);
      this.#entries.set(key, entry);
    }
    entry.running--;
    while (entry.waiting.length > 0 && entry.running < this.#atOnce(entry)) {
      entry.running++;
      entry.waiting.shift()!();
    }
    if (entry.failures === 0 && entry.running === 0) this.#entries.delete(key);
    else this.#limit();
  }

  #limit(): void {
    if (this.#entries.size <= this.#options.entries) return;
    for (const [key, entry] of this.#entries) {
      // Those with attempts under way are as many as there are clients, at most.
      if (entry.running > 0) continue;
      this.#entries.delete(key);
      return;
    }
  }

  /** Milliseconds that an attempt waits before it may run. */
  #distance({ failures }: Entry): number {
    const { free, firstMs, maxMs } = this.#options;
    if (failures <= free) return 0;
    return Math.min(maxMs, firstMs * 2 ** Math.min(30, failures - free - 1));
  }

  #atOnce({ failures }: Entry): number {
    const { free, atOnce } = this.#options;
    return failures > free && atOnce !== Infinity ? 1 : atOnce;
  }

  get size(): number {
    return this.#entries.size;
  }
}
