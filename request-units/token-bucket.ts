// A token bucket that is asked with the time: no timer fills it. One token is one request unit.

export class TokenBucket {
  /** Tokens a second. */
  #rate: number;
  #capacity: number;
  #balance: number;
  /** Milliseconds. */
  #at: number;

  /** Begins full. `now` is monotonic milliseconds, as everywhere here. */
  constructor(rate: number, capacity: number, now: number) {
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

  /** May be below 0, by what was debited beyond it. */
  balance(now: number): number {
    this.#fill(now);
    return this.#balance;
  }

  /** What was filled in until now stays; a balance beyond the new capacity does not. */
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
    this.#balance = Math.min(this.#capacity, this.#balance - cost);
  }

  /** Milliseconds until the cost is there if nobody takes any; Infinity if it never will be. */
  wait(cost: number, now: number): number {
    this.#fill(now);
    if (cost <= this.#balance) return 0;
    if (cost > this.#capacity || this.#rate <= 0) return Infinity;
    return ((cost - this.#balance) / this.#rate) * 1000;
  }

  #fill(now: number): void {
    if (now <= this.#at) return;
    this.#balance = Math.min(
      this.#capacity,
      this.#balance + (this.#rate * (now - this.#at)) / 1000,
    );
    this.#at = now;
  }
}
