// The tracker's side of leases: what others ask of this gateway for the tenants that it is the tracker of, or has been
// until a moment ago. See lease-peers.ts.

import type { PeerAnswer, PeerAsk } from '../../universal-row/tenancy/pool-messages.ts';
import { LeasePool, type LeaseTimes, type LeaseWish } from './lease-pool.ts';

export interface LeaseTrackerOptions {
  /** Units a second of the whole tenant; 0 for one without a limit. */
  quotaOf: (tenant: number) => number;
  times: LeaseTimes;
}

interface Asker {
  /** Number of its newest question. */
  heard: number;
  /** Newest answers to it, with when they were sent. */
  answers: { number: number; at: number }[];
  /** What the last of them granted. */
  granted: { tenant: number; units: number }[];
}

/** Answers that may still be told to have been heard. */
const mostAnswers = 20;

export class LeaseTracker {
  readonly #options: LeaseTrackerOptions;
  readonly #askers = new Map<string, Asker>();
  readonly #pools = new Map<number, LeasePool>();
  #answers = 0;

  constructor(options: LeaseTrackerOptions) {
    this.#options = options;
  }

  setMembers(members: ReadonlySet<string>): void {
    for (const name of this.#askers.keys()) if (!members.has(name)) this.#askers.delete(name);
  }

  forget(tenant: number): void {
    this.#pools.delete(tenant);
  }

  /** Nothing is lent to it any more. */
  clear(): void {
    this.#pools.clear();
    for (const asker of this.#askers.values()) asker.granted = [];
  }

  /** Tenants of which something is asked. */
  used(): number[] {
    const used: number[] = [];
    for (const [tenant, pool] of this.#pools) if (pool.isUsed) used.push(tenant);
    return used;
  }

  /** Undefined for a question that was overtaken, or came twice. */
  answer(from: string, ask: PeerAsk, now: number): PeerAnswer | undefined {
    const { number, tenants } = ask;
    const asker = this.#asker(from);
    if (number <= asker.heard) return undefined;
    asker.heard = number;
    this.#takeBack(asker, ask.answered, now);
    const sentAt = this.#sentAt(asker, ask);
    const answer: PeerAnswer = {
      type: 'answer',
      number: ++this.#answers,
      to: number,
      quotas: [],
      units: [],
      leaseMs: [],
    };
    tenants.forEach((tenant, i) => {
      const wish = {
        member: from,
        part: ask.parts[i]!,
        until: sentAt + ask.loanMs[i]!,
        rate: ask.rates[i]!,
        seen: ask.seen[i]!,
        left: ask.left[i]!,
      };
      const { units, leaseMs } = this.grant(tenant, wish, now);
      answer.quotas.push(this.#options.quotaOf(tenant));
      answer.units.push(units);
      answer.leaseMs.push(leaseMs);
      if (units > 0) asker.granted.push({ tenant, units });
    });
    asker.answers.push({ number: answer.number, at: now });
    if (asker.answers.length > mostAnswers) asker.answers.shift();
    return answer;
  }

  #asker(name: string): Asker {
    let asker = this.#askers.get(name);
    if (asker === undefined) {
      asker = { heard: 0, answers: [], granted: [] };
      this.#askers.set(name, asker);
    }
    return asker;
  }

  /** Units that had not arrived when the next question was sent: the answer is not listened to any more. */
  #takeBack(asker: Asker, answered: number, now: number): void {
    if (asker.answers.at(-1)?.number !== answered) {
      for (const { tenant, units } of asker.granted) this.#pools.get(tenant)?.giveBack(units, now);
    }
    asker.granted = [];
  }

  /** When the question was sent, at the earliest: no loan counts longer than its giver thinks. */
  #sentAt({ answers }: Asker, { answered, heldMs }: PeerAsk): number {
    const heard = answers.find(({ number }) => number === answered);
    return heard === undefined ? -Infinity : heard.at + heldMs;
  }

  /** A lease for one who lends its part; none, and nothing is lent, where that is 0 or over already. */
  grant(tenant: number, wish: LeaseWish, now: number): { units: number; leaseMs: number } {
    const quota = this.#options.quotaOf(tenant);
    if (quota === 0 || wish.part === 0 || wish.until <= now) {
      this.leave(tenant, wish.member, now);
      return { units: 0, leaseMs: 0 };
    }
    let pool = this.#pools.get(tenant);
    if (pool === undefined) {
      pool = new LeasePool(quota, now, this.#options.times);
      this.#pools.set(tenant, pool);
    }
    return pool.grant(wish, quota, now);
  }

  leave(tenant: number, member: string, now: number): void {
    const pool = this.#pools.get(tenant);
    if (pool === undefined) return;
    pool.leave(member, now);
    if (pool.isEmpty) this.#pools.delete(tenant);
  }
}
