// How the tokens of a period become available within it: a little each tick, so that those who come late in the
// period find some too, and no more than a fraction of what remains at once. A period's end loses what is in hand,
// a debt stays (CockroachDB's admission control, the ticks of its store queue).
//
// The bucket shrinks with what remains. With ticks of 250 ms, 60 a period, that leaves more than a third of the period
// unused, however even the load; with ticks of 1 ms it is less than two thousandths. So wherever tokens are
// limited the short ticks are the ones to use. Nothing runs at a tick: whoever asks is told what ticks until now gave.

export interface TokenReleaseOptions {
  periodMs: number;
  /** Between two ticks, while the store is overloaded and while it is not. */
  overloadedTickMs: number;
  tickMs: number;
  /** The bucket holds what remains of the period over this. */
  bucketParts: number;
}

export const tokenReleaseDefaults: TokenReleaseOptions = {
  periodMs: 15_000,
  overloadedTickMs: 1,
  tickMs: 250,
  bucketParts: 60,
};

export class TokenRelease {
  readonly #options: TokenReleaseOptions;
  #total = Infinity;
  #allocated = 0;
  #balance = 0;
  #capacity = Infinity;
  #startedAt: number;
  #tickMs: number;
  /** Ticks of this period that have been. */
  #ticks = 0;

  /** Unlimited until the first period begins. `now` is monotonic milliseconds, as everywhere here. */
  constructor(options: Partial<TokenReleaseOptions>, now: number) {
    this.#options = { ...tokenReleaseDefaults, ...options };
    this.#startedAt = now;
    this.#tickMs = this.#options.tickMs;
  }

  get isUnlimited(): boolean {
    return this.#total === Infinity;
  }

  /** Of this period: all tokens, and those that ticks have made available. */
  get total(): number {
    return this.#total;
  }
  get allocated(): number {
    return this.#allocated;
  }

  /** What the bucket could hold at the last tick. */
  get capacity(): number {
    return this.#capacity;
  }

  /** A new period with so many tokens; Infinity for no limit. The first tick is at once. */
  begin(total: number, overloaded: boolean, now: number): void {
    if (!this.isUnlimited) this.#advance(now);
    // Debts of a time without limits would never have been noticed.
    this.#balance = this.isUnlimited ? 0 : Math.min(0, this.#balance);
    this.#total = total;
    this.#allocated = 0;
    this.#startedAt = now;
    this.#ticks = 0;
    this.#tickMs = overloaded ? this.#options.overloadedTickMs : this.#options.tickMs;
    this.#capacity = total / this.#options.bucketParts;
  }

  /** Below 0 by what was debited beyond it. */
  balance(now: number): number {
    if (this.isUnlimited) return Infinity;
    this.#advance(now);
    return this.#balance;
  }

  /** Takes the cost if it is there. More than the bucket holds is taken from a full one, and leaves a debt. */
  take(cost: number, now: number): boolean {
    if (this.isUnlimited) return true;
    this.#advance(now);
    if (this.#balance < Math.min(cost, this.#capacity)) return false;
    // The bucket of a period that is used up holds nothing, and gives nothing.
    if (this.#balance <= 0 && cost > 0) return false;
    this.#balance -= cost;
    return true;
  }

  /** Takes it whether it is there or not. A negative cost gives back. */
  debit(cost: number, now: number): void {
    if (this.isUnlimited) return;
    this.#advance(now);
    this.#balance = Math.min(this.#capacity, this.#balance - cost);
  }

  /**
   * Milliseconds until the cost may be there if nobody takes any: not before the next tick, and Infinity if not
   * in this period.
   */
  wait(cost: number, now: number): number {
    if (this.isUnlimited) return 0;
    this.#advance(now);
    const missing = Math.min(cost, this.#capacity) - this.#balance;
    if (missing <= 0 && this.#balance > 0) return 0;
    const left = this.#tickCount() - this.#ticks;
    const remaining = this.#total - this.#allocated;
    if (left <= 0 || remaining < missing || remaining <= 0) return Infinity;
    const ticks = Math.max(1, Math.ceil((missing * left) / remaining));
    return Math.max(0, this.#startedAt + (this.#ticks + ticks - 1) * this.#tickMs - now);
  }

  #tickCount(): number {
    return Math.max(1, Math.round(this.#options.periodMs / this.#tickMs));
  }

  /** All ticks until now that have not been yet, in one step. */
  #advance(now: number): void {
    const count = this.#tickCount();
    const due = Math.min(count, Math.floor((now - this.#startedAt) / this.#tickMs) + 1);
    const ticks = due - this.#ticks;
    if (ticks <= 0) return;
    const left = count - this.#ticks;
    this.#ticks = due;
    const remaining = this.#total - this.#allocated;
    this.#capacity = remaining / this.#options.bucketParts;
    if (this.#balance > this.#capacity) {
      // The bucket has shrunk: what it cannot hold any more is of the ticks to come.
      this.#allocated -= this.#balance - this.#capacity;
      this.#balance = this.#capacity;
      return;
    }
    const portion = (remaining * ticks) / left;
    const room = this.#capacity - this.#balance;
    this.#allocated += Math.min(portion, room);
    // Full is full to the last digit, for those who wait for that.
    this.#balance = portion < room ? this.#balance + portion : this.#capacity;
  }
}
