// Quotas of tenants that spend through several gateways: the share that each gateway has of each.
// Shares follow the gateways' recent demand, with a floor for those without demand, and always add
// up to the quota. A silent gateway keeps its share for as long as it may still use it.

import { GatewayShares } from './gateway-shares.ts';
import { ShareScheduler } from './share-scheduler.ts';

/** A gateway's demand for a tenant, reported each second. */
export interface QuotaDemand {
  readonly tenant: number;
  /** Units a second in all. */
  readonly quota: number;
  /** Units spent in the last second, and units that requests lacked which waited or were refused. */
  readonly used: number;
  readonly lacking: number;
}

/** Part of the quota that a gateway may spend, 0 to 1. */
export interface QuotaShare {
  readonly tenant: number;
  readonly share: number;
}

interface Shared {
  readonly shares: GatewayShares;
  readonly scheduler: ShareScheduler;
  /** Fraction of the quota that each gateway was last granted. */
  readonly granted: Map<string, number>;
  told: number;
}

/** Milliseconds for which a gateway uses its share without a renewal. */
export const shareLeaseMs = 5000;
/** Fraction of an equal share that a gateway uses after that. */
export const shareFloor = 0.1;
/**
 * Milliseconds without a report after which a gateway's share is given to other gateways. The gateway's lease has expired
 * by then, whatever messages were in flight.
 */
const goneMs = shareLeaseMs + 2000;
const reassignEveryMs = 1000;

export class SharedQuotas {
  /** When each gateway was heard of. */
  readonly #members = new Map<string, number>();
  readonly #tenants = new Map<number, Shared>();
  #reassignedAt = -Infinity;

  /** `gateways`: gateways that may already have shares from another keeper. Times are monotonic milliseconds. */
  constructor(gateways: readonly string[], now: number) {
    for (const gateway of gateways) this.#members.set(gateway, now);
  }

  /** Takes a gateway's report, and answers its shares. */
  report(gateway: string, demands: readonly QuotaDemand[], now: number): QuotaShare[] {
    this.#heard(gateway, now);
    for (const { tenant, quota, used, lacking } of demands) {
      const shared = this.#of(tenant, quota);
      shared.told = now;
      shared.scheduler.report(gateway, used, lacking, now);
    }
    this.#reassign(now);
    return demands.map(({ tenant }) => {
      return { tenant, share: this.#grant(this.#tenants.get(tenant)!, gateway) };
    });
  }

  /** A share grows only after others were reduced, so the grants never exceed the quota plus the floors. */
  #grant({ shares, granted }: Shared, gateway: string): number {
    let left = 1;
    for (const other of shares.gateways()) {
      if (other !== gateway) left -= granted.get(other) ?? shares.of(other) / shares.quota;
    }
    const least = shareFloor / shares.count;
    const share = Math.max(least, Math.min(shares.of(gateway) / shares.quota, left));
    granted.set(gateway, share);
    return share;
  }

  #heard(gateway: string, now: number): void {
    if (!this.#members.has(gateway)) {
      for (const { shares } of this.#tenants.values()) shares.join(gateway);
    }
    this.#members.set(gateway, now);
    for (const [other, at] of this.#members) {
      if (now - at < goneMs) continue;
      this.#members.delete(other);
      for (const { shares, scheduler, granted } of this.#tenants.values()) {
        shares.leave(other);
        granted.delete(other);
        scheduler.forget(other);
      }
    }
  }

  #of(tenant: number, quota: number): Shared {
    let shared = this.#tenants.get(tenant);
    if (shared === undefined) {
      const shares = new GatewayShares(quota, [...this.#members.keys()]);
      const scheduler = new ShareScheduler(shares, { floor: shareFloor, evens: true });
      this.#tenants.set(tenant, (shared = { shares, scheduler, granted: new Map(), told: 0 }));
    }
    if (shared.shares.quota !== quota) shared.shares.setQuota(quota);
    return shared;
  }

  #reassign(now: number): void {
    if (now - this.#reassignedAt < reassignEveryMs) return;
    this.#reassignedAt = now;
    for (const [tenant, { scheduler, told }] of this.#tenants) {
      // The tenant has no limit any more.
      if (now - told >= goneMs) this.#tenants.delete(tenant);
      else scheduler.reassign(now);
    }
  }
}
