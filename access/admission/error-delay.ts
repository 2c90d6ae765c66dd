// How long an error's reply is held back where the balancer in front picks who has fewest requests outstanding (Amazon,
// "Fairness in multi-tenant systems"): a gateway that fails at once would look the least busy, and draw all traffic. An
// error that takes as long as a success draws no more than its share.
//
// What waits is a connection and a code, no buffer. Off unless the balancer is of that kind.

export interface ErrorDelayOptions {
  enabled: boolean;
  /** The longest that an error may take, milliseconds. */
  capMs: number;
  /** Successes of about this long, milliseconds, make the median; of the time before when there were none. */
  windowMs: number;
}

export const errorDelayDefaults: ErrorDelayOptions = {
  enabled: false,
  capMs: 100,
  windowMs: 10_000,
};

// Latencies from 2^-6 ms on in eighths of a doubling: the median is off by 4 % at most.
const partsPerDoubling = 8;
const smallest = 2 ** -6;
const cells = 24 * partsPerDoubling;
/** A median is good for a hundredth of its window. */
const looksPerWindow = 100;

export class ErrorDelay {
  readonly #options: ErrorDelayOptions;
  /** Successes by latency, of the half window that has begun and of the one before. */
  #current = new Uint32Array(cells);
  #previous = new Uint32Array(cells);
  #count = 0;
  #previousCount = 0;
  #turnsAt = 0;
  #median: number | undefined;
  #looksAt = 0;

  constructor(options: Partial<ErrorDelayOptions> = {}) {
    this.#options = { ...errorDelayDefaults, ...options };
  }

  /** A request was answered as it should be, after so many milliseconds. */
  succeeded(latencyMs: number, now: number): void {
    if (now >= this.#turnsAt) this.#turn(now);
    const cell = Math.floor(Math.log2(latencyMs / smallest) * partsPerDoubling);
    const at = Math.max(0, Math.min(cells - 1, cell));
    this.#current[at]!++;
    this.#count++;
  }

  /** Milliseconds for which an error that is ready after `elapsedMs` is to be held back. */
  delay(elapsedMs: number, now: number): number {
    const { enabled, capMs } = this.#options;
    if (!enabled) return 0;
    return Math.max(0, Math.min(capMs, this.median(now)) - elapsedMs);
  }

  /** Of successes, milliseconds: the last that was known when there are none, and beyond all when there never were. */
  median(now: number): number {
    if (now >= this.#turnsAt) this.#turn(now);
    if (now >= this.#looksAt) {
      this.#looksAt = now + this.#options.windowMs / looksPerWindow;
      this.#look();
    }
    return this.#median ?? Infinity;
  }

  #turn(now: number): void {
    const half = this.#options.windowMs / 2;
    // What was there last is looked at before it goes: it may be the last for long.
    this.#look();
    const isLong = now >= this.#turnsAt + half;
    const gone = this.#previous;
    this.#previous = this.#current;
    this.#previousCount = this.#count;
    this.#current = gone.fill(0);
    this.#count = 0;
    if (isLong) {
      this.#previous.fill(0);
      this.#previousCount = 0;
    }
    this.#turnsAt = now + half;
  }

  #look(): void {
    const all = this.#count + this.#previousCount;
    if (all === 0) return;
    let below = 0;
    for (let cell = 0; cell < cells; cell++) {
      below += this.#current[cell]! + this.#previous[cell]!;
      if (below * 2 < all) continue;
      this.#median = smallest * 2 ** ((cell + 0.5) / partsPerDoubling);
      return;
    }
  }
}
