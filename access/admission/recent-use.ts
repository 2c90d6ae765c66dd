// Request units that one tenant spent in the last second and the last minute, and an alarm when the use is near the quota
// (Amazon, "Fairness in multi-tenant systems").

/** Seconds kept, and seconds over which the mean must be near the quota: a single busy second raises no alarm. */
const seconds = 60;
const alarmSeconds = 5;
/** Milliseconds between two alarms of one tenant. */
const quietMs = 60_000;

export class RecentUse {
  readonly #ring = new Float64Array(seconds);
  #at = 0;
  #sum = 0;
  #alarmedAt = -Infinity;

  /** Called after each second with the units spent in that second. */
  end(units: number): void {
    this.#at = (this.#at + 1) % seconds;
    this.#sum += units - this.#ring[this.#at]!;
    this.#ring[this.#at] = units;
    // Rounding errors must not add up.
    if (this.#at === 0) this.#sum = this.#ring.reduce((sum, one) => sum + one);
  }

  /** Units of the last whole second. */
  get lastSecond(): number {
    return this.#ring[this.#at]!;
  }

  /** Units of the last 60 whole seconds. */
  get lastMinute(): number {
    return this.#sum;
  }

  /**
   * To be called each second, after `end`. Mean units a second of the last five when they reach `atPerSecond` and the
   * last alarm is a minute ago, otherwise 0. `now` in monotonic milliseconds.
   */
  alarm(atPerSecond: number, now: number): number {
    if (this.lastSecond === 0 || now - this.#alarmedAt < quietMs) return 0;
    let sum = 0;
    for (let i = 0; i < alarmSeconds; i++) sum += this.#ring[(this.#at + seconds - i) % seconds]!;
    const mean = sum / alarmSeconds;
    if (mean < atPerSecond) return 0;
    this.#alarmedAt = now;
    return mean;
  }
}
