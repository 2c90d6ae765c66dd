// What a gateway tells the others of its pool, and finds to be its part of each quota by what they tell it. In parts:
// a quota that changes changes nothing.

import type { PeerRates } from '../../universal-row/tenancy/pool-messages.ts';
import { GossipShare } from './gossip-share.ts';

/** Milliseconds for which it is told that a tenant has its usual part again, after nothing was asked for. */
const quietMs = 10_000;

interface Tenant {
  share: GossipShare;
  /** When anybody was asked for anything last. */
  activeAt: number;
}

export class GossipPeers {
  readonly #me: string;
  readonly #tenants = new Map<number, Tenant>();
  /** The others, with the newest of their messages. */
  readonly #peers = new Map<string, number>();
  #told = 0;

  constructor(me: string) {
    this.#me = me;
  }

  setMembers(members: readonly string[]): void {
    const others = new Set(members.filter((name) => name !== this.#me));
    for (const name of this.#peers.keys()) {
      if (others.has(name)) continue;
      this.#peers.delete(name);
      for (const { share } of this.#tenants.values()) share.forget(name);
    }
    for (const name of others) if (!this.#peers.has(name)) this.#peers.set(name, 0);
  }

  /** Nothing that was told counts any more. */
  clear(): void {
    this.#tenants.clear();
  }

  forget(tenant: number): void {
    this.#tenants.delete(tenant);
  }

  /** Units of a tenant were asked of this gateway. */
  observe(tenant: number, units: number, now: number): void {
    if (units > 0) this.#tenant(tenant, now).share.observe(units);
  }

  #tenant(number: number, now: number): Tenant {
    let tenant = this.#tenants.get(number);
    if (tenant === undefined) {
      // Who has gone is for the scheduler to say: while it is silent all are.
      const share = new GossipShare(1, this.#peers.keys(), now, { patience: Infinity });
      tenant = { share, activeAt: now };
      this.#tenants.set(number, tenant);
    }
    tenant.activeAt = now;
    return tenant;
  }

  /** To be called each second: what the others are to be told. */
  second(now: number): PeerRates {
    const rates: PeerRates = { type: 'rates', number: ++this.#told, tenants: [], rates: [] };
    for (const [number, tenant] of this.#tenants) {
      const rate = tenant.share.endPeriod(now);
      if (rate > 0) {
        tenant.activeAt = now;
        rates.tenants.push(number);
        rates.rates.push(rate);
      } else if (now - tenant.activeAt > quietMs) this.#tenants.delete(number);
    }
    return rates;
  }

  receive(from: string, { number, tenants, rates }: PeerRates, now: number): void {
    const last = this.#peers.get(from);
    if (last === undefined || number <= last) return;
    this.#peers.set(from, number);
    const told = new Map(tenants.map((tenant, i) => [tenant, rates[i]!]));
    for (const tenant of told.keys()) this.#tenant(tenant, now);
    for (const [tenant, { share }] of this.#tenants)
      share.receive(from, told.get(tenant) ?? 0, now);
  }

  /** Its part of each quota of which anything was asked lately. */
  claims(): { tenants: number[]; parts: number[] } {
    return {
      tenants: [...this.#tenants.keys()],
      parts: Array.from(this.#tenants.values(), ({ share }) => share.share()),
    };
  }
}
