// A gateway in a pool in which each tenant has a tracker, found by consistent hashing (Amazon, "Fairness in multi-tenant
// systems"). While a tenant is in use each gateway lends its own part of the quota to the tracker, with each question for
// a moment more, and the tracker shares out what was lent, as leases of tokens, by what is asked of each gateway. Whoever
// hears nothing has its own part back when the loan is over, which the tracker knows no later: nothing is spent twice.
//
//   alone -- hello --> known -- part, rate --> lending -- no answer for loanMs, or: it is over --> alone

import type {
  PeerAnswer,
  PeerAsk,
  PeerMessage,
} from '../../universal-row/tenancy/pool-messages.ts';
import type { GatewayAdmission } from './gateway-admission.ts';
import { LeaseTracker } from './lease-tracker.ts';
import type { TenantGate } from './tenant-gate.ts';
import { TrackerRing } from './tracker-ring.ts';

export interface LeasePeersOptions {
  me: string;
  admission: GatewayAdmission;
  /** What the gateway has of a tenant's quota. */
  partOf: (tenant: number) => number;
  /** To another gateway, or to all others where the name is empty. May be lost. */
  send: (to: string, message: PeerMessage) => void;
  /** Milliseconds from one tick to the next. */
  tickMs: number;
}

/** What this gateway has of one tenant that is in use. */
interface Lease {
  readonly tenant: number;
  /** Units a second that the quota is, in terms of which units here are. */
  quota: number;
  /** To whom its part is lent, until when; to nobody where it is empty. */
  tracker: string;
  loanEnd: number;
  /** Units of leases that have not come into the gate's bucket yet, as of `at`. */
  left: number;
  at: number;
  /** From when on it is to ask for more. */
  askFrom: number;
  /** Units a second that are asked of the gateway, of late; and units that wait there. */
  rate: number;
  backlog: number;
  /** Units that were asked of it since it last asked for a lease. */
  seen: number;
  /** When anything was asked of it last, and when the tracker last said that something is, of anybody. */
  usedAt: number;
  calledAt: number;
  /** Since the last report to the scheduler; and what it was told meanwhile, and is not in `rate` yet. */
  used: number;
  missed: number;
  uncounted: number;
  countedAt: number;
}

/** With a tracker. */
interface Link {
  asked: number;
  askedAt: number;
  isOpen: boolean;
  /** What the open question is about. */
  tenants: readonly number[];
  parts: readonly number[];
  /** Its newest answer, and when that came. */
  answered: number;
  answeredAt: number;
  /** From question to answer, of late, milliseconds. */
  tripMs: number;
}

// In ticks. Leases are renewed when half of their time is over; that of a fast tenant is longer.
const slowLease = 2;
const fastLease = 4;
/** A question that was not answered by then is asked again. */
const patience = 2;
/** For so long a part is lent: whoever waits for an answer does not lend it for longer. */
const loan = 6;
/** The rate is that of about so long. */
const memory = 2.5;
/** For how long nothing has to be asked before a tenant is not in use any more, and how often others are told it is. */
const quiet = 30;
const callEvery = 10;
/** How far ahead of its leases a gate may go while the next one is on its way. */
const ahead = 2;

export class LeasePeers {
  readonly #options: LeasePeersOptions;
  readonly #tracker: LeaseTracker;
  readonly #leases = new Map<number, Lease>();
  readonly #links = new Map<string, Link>();
  #members: ReadonlySet<string> = new Set();
  #ring = new TrackerRing();
  #asks = 0;
  #calledAt = -Infinity;

  constructor(options: LeasePeersOptions) {
    this.#options = options;
    const { tickMs, admission } = options;
    this.#tracker = new LeaseTracker({
      quotaOf: (tenant) => admission.gateOf(tenant)?.quota.perSecond ?? 0,
      times: { slowMs: slowLease * tickMs, fastMs: fastLease * tickMs },
    });
  }

  setMembers(members: readonly string[]): void {
    const next = new Set(members);
    if (next.size === this.#members.size && members.every((one) => this.#members.has(one))) return;
    this.#members = next;
    this.#ring = new TrackerRing(members);
    this.#tracker.setMembers(next);
    for (const name of this.#links.keys()) if (!next.has(name)) this.#links.delete(name);
  }

  /** All go by their own parts. */
  clear(now: number): void {
    for (const lease of this.#leases.values()) if (lease.tracker !== '') this.#end(lease, now);
    this.#leases.clear();
    this.#tracker.clear();
  }

  forget(tenant: number): void {
    this.#leases.delete(tenant);
    this.#tracker.forget(tenant);
  }

  /** The tenant's part is lent: another one is lent with the next question. */
  isLent(tenant: number): boolean {
    return (this.#leases.get(tenant)?.tracker ?? '') !== '';
  }

  /** Units that were spent and missed here since the last tick, and are no more in what the gate itself reports. */
  count(gate: TenantGate, units: number, now: number): void {
    const lease = this.#lease(gate, now);
    lease.usedAt = now;
    lease.uncounted += units;
  }

  /** Of somebody something was asked. */
  #call(tenants: readonly number[], now: number): void {
    for (const tenant of tenants) {
      const gate = this.#options.admission.gateOf(tenant);
      if (gate !== undefined) this.#lease(gate, now).calledAt = now;
    }
  }

  #lease({ tenant, quota }: TenantGate, now: number): Lease {
    let lease = this.#leases.get(tenant);
    if (lease !== undefined) return lease;
    lease = {
      tenant,
      quota: quota.perSecond,
      tracker: '',
      loanEnd: now,
      left: 0,
      at: now,
      askFrom: now,
      rate: 0,
      backlog: 0,
      seen: 0,
      usedAt: -Infinity,
      calledAt: -Infinity,
      used: 0,
      missed: 0,
      uncounted: 0,
      countedAt: now,
    };
    this.#leases.set(tenant, lease);
    return lease;
  }

  /** What was spent and missed since the last time, and is no more in what the gate itself reports. */
  takeCounted(tenant: number): { used: number; missed: number } {
    const lease = this.#leases.get(tenant);
    if (lease === undefined) return { used: 0, missed: 0 };
    const { used, missed } = lease;
    lease.used = 0;
    lease.missed = 0;
    return { used, missed };
  }

  // ---- time

  tick(now: number): void {
    const asks = new Map<string, Lease[]>();
    for (const lease of this.#leases.values()) {
      const gate = this.#options.admission.gateOf(lease.tenant);
      if (gate === undefined) {
        this.#leases.delete(lease.tenant);
        continue;
      }
      this.#observe(lease, gate, now);
      const to = this.#step(lease, gate, now);
      if (to === '') continue;
      const others = asks.get(to);
      if (others === undefined) asks.set(to, [lease]);
      else others.push(lease);
    }
    for (const [to, leases] of asks) this.#ask(to, leases, now);
    const { tickMs, send } = this.#options;
    if (now - this.#calledAt < callEvery * tickMs) return;
    this.#calledAt = now;
    const tenants = this.#tracker.used();
    if (tenants.length > 0) send('', { type: 'call', tenants });
  }

  /** What was asked of the gateway since the last time, and what of its leases has come in. */
  #observe(lease: Lease, gate: TenantGate, now: number): void {
    const passed = now - lease.countedAt;
    lease.countedAt = now;
    this.#accrue(lease, gate, now);
    const { used, refused } = gate.report();
    lease.backlog = gate.waiting * gate.meanCost;
    const missed = refused - lease.backlog;
    lease.used += used;
    lease.missed += missed;
    const units = used + missed + lease.uncounted;
    lease.uncounted = 0;
    lease.seen += units;
    if (used + refused > 0) lease.usedAt = now;
    if (passed <= 0) return;
    const newest = 1 - Math.exp(-passed / (memory * this.#options.tickMs));
    lease.rate += newest * ((units * 1000) / passed - lease.rate);
  }

  #accrue(lease: Lease, { share, quota }: TenantGate, now: number): void {
    const { perSecond } = quota;
    if (perSecond !== lease.quota) {
      lease.left *= perSecond / lease.quota;
      lease.quota = perSecond;
    }
    if (lease.tracker !== '') lease.left -= (share * (now - lease.at)) / 1000;
    lease.at = now;
  }

  /** Returns whom to ask now; nobody where it is empty. */
  #step(lease: Lease, gate: TenantGate, now: number): string {
    const { me, tickMs } = this.#options;
    const tracker = this.#trackerOf(lease, now);
    if (lease.tracker !== '' && now >= lease.loanEnd) this.#end(lease, now);
    if (lease.tracker === me && tracker !== me) {
      this.#tracker.leave(lease.tenant, me, now);
      this.#end(lease, now);
    }
    if (lease.tracker === '' && tracker === '') {
      this.#leases.delete(lease.tenant);
      return '';
    }
    // It takes its part back first.
    if (lease.tracker !== '' && lease.tracker !== tracker) return lease.tracker;
    if (lease.tracker !== '' && lease.left < (-gate.share * ahead * tickMs) / 1000) {
      this.#go(gate, 0);
    }
    if (now < lease.askFrom && lease.tracker !== '') return '';
    if (tracker !== me) return tracker;
    this.#askMyself(lease, gate, now);
    return '';
  }

  /** Nobody for a tenant that is not in use. */
  #trackerOf({ tenant, usedAt, calledAt }: Lease, now: number): string {
    const isUsed = now - Math.max(usedAt, calledAt) < quiet * this.#options.tickMs;
    return (isUsed ? this.#ring.ownerOf(tenant) : undefined) ?? '';
  }

  /** Units a second that are wanted here; those that wait are to be had within one. */
  #wanted({ rate, backlog, usedAt }: Lease, now: number): number {
    return now - usedAt < quiet * this.#options.tickMs ? rate + backlog : 0;
  }

  // ---- leases

  #askMyself(lease: Lease, gate: TenantGate, now: number): void {
    const { me, partOf, tickMs } = this.#options;
    const part = partOf(lease.tenant);
    if (part === 0) return;
    this.#lend(lease, me, now + loan * tickMs);
    const wish = {
      member: me,
      part,
      until: lease.loanEnd,
      rate: this.#wanted(lease, now),
      seen: lease.seen,
      left: lease.left,
    };
    lease.seen = 0;
    const { units, leaseMs } = this.#tracker.grant(lease.tenant, wish, now);
    this.#take(lease, gate, units, leaseMs, now);
  }

  #ask(to: string, leases: readonly Lease[], now: number): void {
    // What was lent to one that is gone is back when the loan is over.
    if (!this.#members.has(to)) return;
    const { tickMs, partOf, send } = this.#options;
    const link = this.#link(to);
    if (link.isOpen && now - link.askedAt < patience * tickMs) return;
    const isThere = !link.isOpen && link.answered > 0 && now - link.answeredAt < loan * tickMs;
    const ask: PeerAsk = {
      type: 'ask',
      number: ++this.#asks,
      answered: link.answered,
      heldMs: link.answered > 0 ? now - link.answeredAt : 0,
      tenants: [],
      parts: [],
      loanMs: [],
      rates: [],
      seen: [],
      left: [],
    };
    for (const lease of leases) {
      const lends = this.#trackerOf(lease, now) === to && (isThere || lease.tracker === to);
      const part = lends ? partOf(lease.tenant) : 0;
      if (part > 0 && isThere) this.#lend(lease, to, now + loan * tickMs);
      ask.tenants.push(lease.tenant);
      ask.parts.push(part);
      ask.loanMs.push(lease.loanEnd - now);
      ask.rates.push(this.#wanted(lease, now));
      ask.seen.push(lease.seen);
      ask.left.push(this.#leftAfter(lease, link.tripMs));
      lease.seen = 0;
    }
    const { number: asked, tenants, parts } = ask;
    Object.assign(link, { asked, askedAt: now, isOpen: true, tenants, parts });
    send(to, ask);
  }

  /** Units of its leases that will be left when so many milliseconds have passed. */
  #leftAfter({ tenant, tracker, left }: Lease, ms: number): number {
    const share = this.#options.admission.gateOf(tenant)?.share ?? 0;
    return tracker === '' ? 0 : left - (share * ms) / 1000;
  }

  #link(to: string): Link {
    let link = this.#links.get(to);
    if (link === undefined) {
      const none = { asked: 0, askedAt: 0, answered: 0, answeredAt: 0, tripMs: 0 };
      link = { ...none, isOpen: false, tenants: [], parts: [] };
      this.#links.set(to, link);
    }
    return link;
  }

  #lend(lease: Lease, to: string, until: number): void {
    if (lease.tracker === '') lease.left = 0;
    lease.tracker = to;
    lease.loanEnd = until;
  }

  hear(from: string, message: PeerMessage, now: number): void {
    if (!this.#members.has(from)) return;
    if (message.type === 'call') this.#call(message.tenants, now);
    else if (message.type === 'answer') this.#hearAnswer(from, message, now);
    else if (message.type === 'ask') {
      this.#call(message.tenants, now);
      const answer = this.#tracker.answer(from, message, now);
      if (answer !== undefined) this.#options.send(from, answer);
    }
  }

  #hearAnswer(from: string, answer: PeerAnswer, now: number): void {
    const link = this.#links.get(from);
    if (link === undefined || !link.isOpen || answer.to !== link.asked) return;
    link.isOpen = false;
    link.answered = answer.number;
    link.answeredAt = now;
    link.tripMs += (now - link.askedAt - link.tripMs) / 8;
    link.tenants.forEach((tenant, i) => {
      const lease = this.#leases.get(tenant);
      const gate = this.#options.admission.gateOf(tenant);
      if (lease === undefined || gate === undefined || lease.tracker !== from) return;
      const leaseMs = answer.leaseMs[i]!;
      if (leaseMs === 0 || now >= lease.loanEnd) this.#end(lease, now);
      else {
        const units = (answer.units[i]! * gate.quota.perSecond) / answer.quotas[i]!;
        this.#take(lease, gate, units, leaseMs, now);
      }
    });
  }

  /** A lease comes into the gate's bucket little by little, with what was left of the one before. */
  #take(lease: Lease, gate: TenantGate, units: number, leaseMs: number, now: number): void {
    this.#accrue(lease, gate, now);
    lease.left += units;
    lease.askFrom = now + leaseMs / 2;
    this.#go(gate, (Math.max(0, lease.left) * 1000) / leaseMs);
  }

  /** It goes by its own part. */
  #end(lease: Lease, now: number): void {
    const gate = this.#options.admission.gateOf(lease.tenant);
    lease.tracker = '';
    lease.left = 0;
    lease.at = now;
    lease.askFrom = now;
    if (gate !== undefined)
      this.#go(gate, this.#options.partOf(lease.tenant) * gate.quota.perSecond);
  }

  #go(gate: TenantGate, share: number): void {
    // Whatever it is off by is in the next lease.
    if (share > 0 && Math.abs(share - gate.share) < 0.005 * share) return;
    if (share !== gate.share) this.#options.admission.setShare(gate.tenant, share);
  }
}
