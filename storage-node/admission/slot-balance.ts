// Time in slots that somebody holds, against a part of all slots that is theirs. The part may be less than one slot, or
// end in a fraction: the last slot is then held for that fraction of the time.

export class SlotBalance {
  /** Slots held now. */
  #held = 0;
  /** Slots that may be held, on average. */
  #part: number;
  /** Slot-milliseconds: what was not held of the part until now, and what was held beyond it if negative. */
  #balance = 0;
  readonly #savedMs: number;
  readonly #owedMs: number;
  #at: number;

  /**
   * No more is saved up than the part gives in `savedMs`, and no more held against its owner than it gives in
   * `owedMs`.
   */
  constructor(part: number, savedMs: number, owedMs: number, now: number) {
    this.#part = part;
    this.#savedMs = savedMs;
    this.#owedMs = owedMs;
    this.#at = now;
  }

  get held(): number {
    return this.#held;
  }

  /** Of other slots than before. */
  reshape(part: number, now: number): void {
    if (part === this.#part) return;
    this.#accrue(now);
    this.#part = part;
  }

  /** Whether one slot more is within the part. */
  mayHold(now: number): boolean {
    if (this.#held + 1 <= this.#part) return true;
    if (this.#held >= this.#part) return false;
    this.#accrue(now);
    return this.#balance >= 0;
  }

  began(now: number): void {
    this.#accrue(now);
    this.#held++;
  }

  ended(now: number): void {
    this.#accrue(now);
    this.#held--;
  }

  #accrue(now: number): void {
    const passed = now - this.#at;
    if (passed <= 0) return;
    this.#at = now;
    const balance = this.#balance + (this.#part - this.#held) * passed;
    const most = this.#part * this.#savedMs;
    const least = -this.#part * this.#owedMs;
    this.#balance = balance > most ? most : balance < least ? least : balance;
  }
}
