// A gateway's capacity that tenants leave unused, lent to tenants that may borrow (Amazon, "Fairness in multi-tenant
// systems", stacked allocation). Requests within a quota do not use this class. Capacity that they claim is withdrawn from
// borrowers within a second.

const windowMs = 1000;
const parts = 10;
const partMs = windowMs / parts;

/** Units of the last second, in tenths. */
class RecentUnits {
  readonly #parts = new Float64Array(parts + 1);
  #part = 0;
  /** Total of the current tenth and the ten before it. */
  #total = 0;

  advance(part: number): void {
    if (part <= this.#part) return;
    const slots = this.#parts.length;
    for (let p = Math.max(this.#part + 1, part - slots + 1); p <= part; p++) {
      this.#total -= this.#parts[p % slots]!;
      this.#parts[p % slots] = 0;
    }
    this.#part = part;
  }

  /** Units of the last ten complete tenths of a second. */
  get before(): number {
    return this.#total - this.#parts[this.#part % this.#parts.length]!;
  }

  add(units: number): void {
    const at = this.#part % this.#parts.length;
    this.#parts[at] = this.#parts[at]! + units;
    this.#total += units;
  }
}

export class SpareCapacity {
  readonly #capacity: number;
  /** Units that were spent within quotas. */
  readonly #owned = new RecentUnits();
  #part = -1;
  /** Units that may be lent in this tenth of a second. */
  #spare = 0;

  /** `capacity` in units a second. Times below are monotonic milliseconds. */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Units were spent within a quota. */
  use(units: number, now: number): void {
    this.#advance(Math.floor(now / partMs));
    this.#owned.add(units);
  }

  /** Takes `units` of unused capacity if there are enough. Returns whether they were taken. */
  borrow(units: number, now: number): boolean {
    this.#advance(Math.floor(now / partMs));
    if (this.#spare < units) return false;
    this.#spare -= units;
    return true;
  }

  #advance(part: number): void {
    if (part <= this.#part) return;
    const passed = part - this.#part;
    this.#part = part;
    this.#owned.advance(part);
    // The unused part of quotas in the last second is the estimate for this one. Units not lent are
    // kept for as long, and withdrawn within a second when their owners claim them.
    const left = Math.max(0, this.#capacity - this.#owned.before);
    this.#spare = Math.min(left, this.#spare + (left * passed) / parts);
  }
}
