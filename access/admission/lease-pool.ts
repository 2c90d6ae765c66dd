// What gateways have lent of one tenant's quota to its tracker, and how the tracker shares it out again: by what is
// asked of each of them, as leases of tokens. It gives no more than was lent, for as long as it is lent.

import { gossipShareDefaults } from './gossip-share.ts';
import { QuotaTracker } from './token-leases.ts';

export interface LeaseWish {
  member: string;
  /** What it lends of the quota, and until when, monotonic milliseconds. */
  part: number;
  until: number;
  /** Units a second that are asked of it, and units it has seen since it last asked. */
  rate: number;
  seen: number;
  /** Units of its last leases that are left. */
  left: number;
}

export interface LeaseTimes {
  /** Milliseconds that a lease lasts: of a tenant of whom little is asked, and of one of whom so much is that the
   * tracker would be asked too often. */
  slowMs: number;
  fastMs: number;
}

interface Member {
  part: number;
  until: number;
  rate: number;
}

export class LeasePool {
  readonly #times: LeaseTimes;
  readonly #tracker: QuotaTracker;
  readonly #members = new Map<string, Member>();
  #quota: number;
  /** Units a second that were lent. */
  #lent = 0;

  /** `quota` in units a second, of the whole tenant. */
  constructor(quota: number, now: number, times: LeaseTimes) {
    this.#times = times;
    this.#quota = quota;
    // What comes while a lease is used up is kept for those who ask late.
    const burstSeconds = times.fastMs / 1000;
    this.#tracker = new QuotaTracker(0, now, { burstSeconds, beginsFull: false });
  }

  get isEmpty(): boolean {
    return this.#members.size === 0;
  }

  /** Something is asked of somebody. */
  get isUsed(): boolean {
    for (const { rate } of this.#members.values()) if (rate > 0) return true;
    return false;
  }

  /** What it lends counts from now on, and it gets a lease. */
  grant(wish: LeaseWish, quota: number, now: number): { units: number; leaseMs: number } {
    const { member, part, until, rate, seen, left } = wish;
    this.#expire(now);
    this.#quota = quota;
    this.#members.set(member, { part, until, rate });
    this.#reckon(now);
    const tracker = this.#tracker;
    const leaseMs = tracker.leaseMs > 0 ? this.#times.fastMs : this.#times.slowMs;
    const wanted = Math.max(0, (this.#shareOf(rate) * leaseMs) / 1000 - left);
    return { units: tracker.ask(member, wanted, seen, now), leaseMs };
  }

  giveBack(units: number, now: number): void {
    this.#tracker.giveBack(units, now);
  }

  /** It lends nothing any more. */
  leave(member: string, now: number): void {
    this.#expire(now);
    if (this.#members.delete(member)) this.#reckon(now);
  }

  /** Each loan counts up to its end, whenever that is looked at. */
  #expire(now: number): void {
    const ended = [...this.#members].filter(([, { until }]) => until <= now);
    for (const [member, { until }] of ended.sort(([, a], [, b]) => a.until - b.until)) {
      this.#members.delete(member);
      this.#reckon(until);
    }
  }

  #reckon(now: number): void {
    let lent = 0;
    for (const { part } of this.#members.values()) lent += part;
    this.#lent = lent * this.#quota;
    this.#tracker.setQuota(this.#lent, now);
  }

  /** Units a second of one of whom so much is asked: that, and its part of what is left over, or its fraction. */
  #shareOf(rate: number): number {
    let asked = 0;
    for (const one of this.#members.values()) asked += one.rate;
    const count = this.#members.size;
    if (asked <= this.#lent) return rate + (this.#lent - asked) / count;
    const { floor } = gossipShareDefaults;
    return this.#lent * (floor / count + ((1 - floor) * rate) / asked);
  }
}
