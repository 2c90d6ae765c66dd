// How long an error's reply is delayed where the balancer in front picks the server with the fewest requests outstanding
// (Amazon, "Fairness in multi-tenant systems"): a gateway that fails at once would look the least busy, and draw all traffic.
// An error that takes as long as a success draws no more than its share.
//
// A connection and a code wait, no buffer. Disabled unless the balancer is of that kind.

interface ErrorDelayOptions {
  enabled: boolean;
  /** The longest that an error may take, milliseconds. */
  capMs: number;
  /**
   * Number of last successes for the median, regardless of their age: at a gateway that begins to fail,
   * the last successes are the slowest of its accepted requests.
   */
  successes: number;
}

const errorDelayDefaults: ErrorDelayOptions = {
  enabled: false,
  capMs: 100,
  successes: 1000,
};

// Histogram of latencies from 2^-6 ms on, with eight cells for each doubling: the error of the median is at most 5 %.
const partsPerDoubling = 8;
const smallest = 2 ** -6;
const cells = 24 * partsPerDoubling;
/** The median is computed again after so many successes. */
const between = 16;

export class ErrorDelay {
  /** They may change. */
  readonly options: ErrorDelayOptions;
  /** Histograms of the current half of the window, and of the half before it. */
  #current = new Uint32Array(cells);
  #previous = new Uint32Array(cells);
  #count = 0;
  #previousCount = 0;
  #median = Infinity;
  /** Successes until the median is computed again. */
  #left = 0;

  constructor(options: Partial<ErrorDelayOptions> = {}) {
    this.options = { ...errorDelayDefaults, ...options };
  }

  /** Records a successful request and its latency. */
  succeeded(latencyMs: number): void {
    if (!this.options.enabled) return;
    if (this.#count * 2 >= this.options.successes) this.#turn();
    const cell = Math.floor(Math.log2(latencyMs / smallest) * partsPerDoubling);
    const at = Math.max(0, Math.min(cells - 1, cell));
    this.#current[at]!++;
    this.#count++;
    this.#left--;
  }

  /** Milliseconds for which an error that is ready after `elapsedMs` is to be delayed. */
  delay(elapsedMs: number): number {
    const { enabled, capMs } = this.options;
    if (!enabled) return 0;
    return Math.max(0, Math.min(capMs, this.median()) - elapsedMs);
  }

  /** Median of the last successes, in milliseconds; Infinity if there were none. */
  median(): number {
    const all = this.#count + this.#previousCount;
    if (this.#left > 0 || all === 0) return this.#median;
    // With few successes, each one counts.
    this.#left = Math.min(between, Math.ceil(all / between));
    let below = 0;
    for (let cell = 0; cell < cells; cell++) {
      below += this.#current[cell]! + this.#previous[cell]!;
      if (below * 2 < all) continue;
      this.#median = smallest * 2 ** ((cell + 0.5) / partsPerDoubling);
      break;
    }
    return this.#median;
  }

  #turn(): void {
    const gone = this.#previous;
    this.#previous = this.#current;
    this.#previousCount = this.#count;
    this.#current = gone.fill(0);
    this.#count = 0;
  }
}
