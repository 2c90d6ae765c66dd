// Units spent a second, as an exponentially decaying average.

export class SpendRate {
  readonly #averageMs: number;
  #perSecond = 0;
  #at: number;

  /**
   * `averageMs` is the time constant: spending that long ago has a weight of a third. `now` is
   * monotonic milliseconds.
   */
  constructor(averageMs: number, now: number) {
    this.#averageMs = averageMs;
    this.#at = now;
  }

  perSecond(now: number): number {
    this.#fade(now);
    return this.#perSecond;
  }

  note(units: number, now: number): void {
    this.#fade(now);
    this.#perSecond += (units * 1000) / this.#averageMs;
  }

  #fade(now: number): void {
    const passed = now - this.#at;
    if (passed <= 0) return;
    this.#perSecond *= Math.exp(-passed / this.#averageMs);
    this.#at = now;
  }
}
