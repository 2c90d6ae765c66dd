// One tenant has at most 90 % of a thread's time in a window of 100 ms while others are about, whatever its weight and
// even while nobody else is in line: whoever comes then finds the thread free (ABase, section 4.3, rule 3). The rule
// there is about slots of the processor; a thread is one slot, and its last part is held for that part of the time.
//
// The thread is taken to be a tenant's from the beginning of its turn until somebody looks again. What took so long
// that it is known is counted by that.

import { tenantCapDefaults } from './cpu-places.ts';
import { SlotBalance } from './slot-balance.ts';

export interface TurnCapOptions {
  /** Of the thread's time, for one tenant. */
  most: number;
  windowMs: number;
  /**
   * A tenant may have what it did not use of its part in so many milliseconds at once. With less than a timer takes
   * it would wait longer for its next turn than it has to.
   */
  savedMs: number;
  /** A tenant whom nobody else has been beside for so long may have all. */
  aloneMs: number;
}

export const turnCapDefaults: TurnCapOptions = { ...tenantCapDefaults, savedMs: 1 };

export class TurnCap {
  readonly #options: TurnCapOptions;
  /** With what is saved up it comes to `most` of any window. */
  readonly #part: number;
  readonly #balances = new Map<number, SlotBalance>();
  /** Who has the thread, if somebody is held to it. */
  #running: SlotBalance | undefined;
  /** Who asked last and when, and when anybody else did. */
  #lastTenant = Number.NaN;
  #lastAt = -Infinity;
  #otherAt = -Infinity;

  constructor(options: Partial<TurnCapOptions> = {}) {
    this.#options = { ...turnCapDefaults, ...options };
    const { most, windowMs, savedMs } = this.#options;
    this.#part = (most * windowMs) / (windowMs + savedMs);
  }

  /** The tenant has something to do. */
  asked(tenant: number, now: number): void {
    if (tenant !== this.#lastTenant) {
      this.#otherAt = this.#lastAt;
      this.#lastTenant = tenant;
    }
    this.#lastAt = now;
  }

  /** Whether the tenant may have a turn; whoever has the thread now has come to its end. */
  mayBegin(tenant: number, now: number): boolean {
    this.rests(now);
    return this.#isAlone(tenant, now) || this.#balances.get(tenant)?.mayHold(now) !== false;
  }

  /** Its turn begins. */
  began(tenant: number, now: number): void {
    this.rests(now);
    if (this.#isAlone(tenant, now)) return;
    this.#running = this.#balanceOf(tenant, now);
    this.#running.began(now);
  }

  /** Somebody who is held to it has the thread. */
  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  /** Nobody has the thread any more. */
  rests(now: number): void {
    this.#running?.ended(now);
    this.#running = undefined;
  }

  /** The tenant had the thread for so long until now. */
  spent(tenant: number, ms: number, now: number): void {
    const balance = this.#balances.get(tenant);
    const isKnown = balance !== undefined && balance === this.#running;
    this.rests(now);
    if (isKnown || this.#isAlone(tenant, now)) return;
    const own = balance ?? this.#balanceOf(tenant, now - ms);
    own.began(now - ms);
    own.ended(now);
  }

  forget(tenant: number): void {
    if (this.#balances.get(tenant) !== this.#running) this.#balances.delete(tenant);
  }

  #isAlone(tenant: number, now: number): boolean {
    const otherAt = tenant === this.#lastTenant ? this.#otherAt : this.#lastAt;
    return now - otherAt > this.#options.aloneMs;
  }

  #balanceOf(tenant: number, now: number): SlotBalance {
    let balance = this.#balances.get(tenant);
    if (balance === undefined) {
      const { savedMs, windowMs } = this.#options;
      balance = new SlotBalance(this.#part, savedMs, windowMs, now);
      this.#balances.set(tenant, balance);
    }
    return balance;
  }
}
