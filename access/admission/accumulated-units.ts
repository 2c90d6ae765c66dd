// Units of a tenant's share of a gateway that were not spent in the last minute, kept by second. Queries spend these units
// (X-Stor, section 5.2), so an expensive query does not reduce the units for writes in the second in which it starts.

export class AccumulatedUnits {
  /** Unspent units of each second, the oldest at `#oldest`. */
  readonly #slots: Float64Array;
  #oldest = 0;
  #balance = 0;
  /** Cost of queries beyond their estimates. */
  #debt = 0;

  constructor(seconds = 60) {
    this.#slots = new Float64Array(seconds);
  }

  /** Below 0 while there is a debt. */
  get balance(): number {
    return this.#balance - this.#debt;
  }

  /** Maximum number of accumulated units, given the share in units a second. */
  limit(share: number): number {
    return share * this.#slots.length;
  }

  /**
   * Called after a second in which this much of the share was not spent. The oldest units are
   * dropped.
   */
  endSecond(unspent: number): void {
    const slots = this.#slots;
    this.#balance += unspent - slots[this.#oldest]!;
    slots[this.#oldest] = unspent;
    this.#oldest = (this.#oldest + 1) % slots.length;
    const paid = Math.min(this.#debt, Math.max(0, this.#balance));
    if (paid > 0) {
      this.#take(paid);
      this.#debt -= paid;
    }
  }

  /** Debits the cost if the balance covers it, the oldest units first. Returns whether it did. */
  spend(cost: number): boolean {
    if (this.balance < cost) return false;
    this.#take(cost);
    return true;
  }

  /** Takes at most `units` without creating a debt. Returns the number of units taken. */
  giveUp(units: number): number {
    const given = Math.max(0, Math.min(units, this.balance));
    this.#take(given);
    return given;
  }

  /** Adds units lent by another gateway. They count as left over in the newest second. */
  receive(units: number): void {
    const newest = (this.#oldest + this.#slots.length - 1) % this.#slots.length;
    this.#slots[newest] = this.#slots[newest]! + units;
    this.#balance += units;
  }

  /**
   * Called when the share has changed: units beyond its new maximum are dropped, the oldest first.
   */
  trim(share: number): void {
    const more = this.#balance - this.limit(share);
    if (more > 0) this.#take(more);
  }

  /** Cancels the debt. */
  forgive(): void {
    this.#debt = 0;
  }

  /** Settles the difference between the real cost of a query and the debited estimate; negative for a refund. */
  settle(more: number): void {
    if (more < 0) this.receive(-more);
    else this.#debt += more - this.giveUp(more);
  }

  #take(units: number): void {
    const slots = this.#slots;
    let left = units;
    for (let i = 0; i < slots.length && left > 0; i++) {
      const at = (this.#oldest + i) % slots.length;
      const part = Math.min(left, slots[at]!);
      slots[at] = slots[at]! - part;
      left -= part;
    }
    this.#balance -= units - left;
  }
}
