// A token bucket refilled from the time each call passes; it needs no timer. One token is one
// request unit.
//
// The cost of a request is often known only afterwards. Such a request is admitted while the balance
// is positive (`admit`), and its actual cost is debited later; a caller in debt waits until the debt
// is refilled (Amazon, "Fairness in multi-tenant systems").

export class TokenBucket {
  /** Tokens a second. */
  #rate: number;
  #capacity: number;
  #balance: number;
  /** Milliseconds. */
  #at: number;
  readonly #debtSeconds: number;
  /** Came when it was full. */
  #spilled = 0;

  /**
   * Starts full. `now` is monotonic milliseconds, as in all methods. Debt is limited to
   * `debtSeconds` of the rate; the excess is forgiven.
   */
  constructor(rate: number, capacity: number, now: number, debtSeconds = Infinity) {
    this.#debtSeconds = debtSeconds;
    this.#rate = rate;
    this.#capacity = capacity;
    this.#balance = capacity;
    this.#at = now;
  }

  get rate(): number {
    return this.#rate;
  }

  get capacity(): number {
    return this.#capacity;
  }

  /** Negative when more was debited than available. */
  balance(now: number): number {
    this.#fill(now);
    return this.#balance;
  }

  /** Tokens beyond so much of its capacity; below 0 if there are fewer. */
  beyond(part: number, now: number): number {
    return this.balance(now) - part * this.#capacity;
  }

  /** Keeps the tokens filled in until now, up to the new capacity. */
  reshape(rate: number, capacity: number, now: number): void {
    this.#fill(now);
    this.#rate = rate;
    this.#capacity = capacity;
    if (this.#balance > capacity) this.#balance = capacity;
  }

  /** Takes the cost if it is there. */
  take(cost: number, now: number): boolean {
    this.#fill(now);
    if (this.#balance < cost) return false;
    this.#balance -= cost;
    return true;
  }

  /** Debits `cost` if the balance is positive, even when the balance is smaller than `cost`. */
  admit(cost: number, now: number): boolean {
    this.#fill(now);
    if (this.#balance <= 0) return false;
    this.#balance -= cost;
    return true;
  }

  /** Takes as much of it as there is, and returns how much. */
  takeSome(cost: number, now: number): number {
    this.#fill(now);
    const taken = Math.max(0, Math.min(cost, this.#balance));
    this.#balance -= taken;
    return taken;
  }

  /** Takes it whether it is there or not. A negative cost gives back. */
  debit(cost: number, now: number): void {
    this.#fill(now);
    const balance = this.#upToCapacity(this.#balance - cost);
    // A debt from before, at a higher rate, is not made less by a further one.
    const least = Math.min(
      this.#balance,
      this.#rate === 0 ? -Infinity : -this.#rate * this.#debtSeconds,
    );
    this.#balance = Math.max(balance, least);
  }

  /**
   * Milliseconds until the cost is available if no tokens are taken; Infinity if it never will be.
   */
  wait(cost: number, now: number): number {
    this.#fill(now);
    if (cost <= this.#balance) return 0;
    if (cost > this.#capacity || this.#rate <= 0) return Infinity;
    return ((cost - this.#balance) / this.#rate) * 1000;
  }

  /** Milliseconds until `admit` accepts requests again; Infinity if never. */
  waitForAny(now: number): number {
    this.#fill(now);
    if (this.#balance > 0) return 0;
    return this.#rate <= 0 ? Infinity : (-this.#balance / this.#rate) * 1000;
  }

  #fill(now: number): void {
    if (now <= this.#at) return;
    this.#balance = this.#upToCapacity(this.#balance + (this.#rate * (now - this.#at)) / 1000);
    this.#at = now;
  }

  #upToCapacity(balance: number): number {
    if (balance <= this.#capacity) return balance;
    this.#spilled += balance - this.#capacity;
    return this.#capacity;
  }

  /** Tokens that overflowed the full bucket since the last call. */
  takeSpilled(now: number): number {
    this.#fill(now);
    const spilled = this.#spilled;
    this.#spilled = 0;
    return spilled;
  }
}
