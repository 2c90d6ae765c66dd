// One tenant's quota in a pool of gateways: the intended fraction of each gateway, and the fraction
// in force. A fraction is given to a gateway only after the others are known to use less: whatever
// messages are lost or late, the gateways together never use more than the quota.

import { GatewayShares } from '../../access/admission/shares/gateway-shares.ts';
import type { WaitingQuery } from '../../access/admission/query-queue.ts';
import {
  ShareScheduler,
  shareSchedulerDefaults,
} from '../../access/admission/shares/share-scheduler.ts';

export interface PoolRules {
  /** Each gateway has a share of the quota (X-Stor, section 5.2). Otherwise each goes by all of it. */
  splits: boolean;
  /** Shares move to gateways that need them. */
  moves: boolean;
  /** Gateways lend each other accumulated units for queries. */
  lends: boolean;
}

export const poolRuleDefaults: PoolRules = {
  splits: true,
  moves: true,
  lends: true,
};

interface Holding {
  /** Part of the quota that the gateway was ordered to go by. */
  part: number;
  /** The most it may go by while that order is on its way. */
  most: number;
}

/** Parts that differ by less are the same. */
const epsilon = 1e-9;
/** Seconds without a request after which nothing of a tenant's shares can change any more. */
const quietAfter = shareSchedulerDefaults.window + 1;

export class PoolTenant {
  readonly number: number;
  /** Queries that wait first in line, by gateway. */
  readonly heads = new Map<string, WaitingQuery>();
  #quota: number;
  /**
   * Shares in units a second. They add up to less than the quota while not all gateways are known.
   */
  #shares: GatewayShares;
  #mover: ShareScheduler;
  readonly #holdings = new Map<string, Holding>();
  #quietSeconds = quietAfter;

  /**
   * `learns`: joining gateways report their fractions; until `learned`, nothing else can be given.
   */
  constructor(number: number, quota: number, learns: boolean) {
    this.number = number;
    this.#quota = quota;
    this.#shares = new GatewayShares(learns ? 0 : quota);
    this.#mover = new ShareScheduler(this.#shares);
  }

  /** Units a second. */
  get quota(): number {
    return this.#quota;
  }

  /** All shares change by the same factor, so fractions stay. */
  setQuota(quota: number): void {
    this.#shares.setQuota((this.#shares.quota * quota) / this.#quota);
    this.#quota = quota;
  }

  /** Units a second. */
  shareOf(gateway: string): number {
    return this.#shares.of(gateway);
  }

  gateways(): IterableIterator<string> {
    return this.#shares.gateways();
  }

  // ---- members
  //

  /** `held` is the fraction the gateway uses when it joins. */
  join(gateway: string, held: number, learns: boolean): void {
    if (learns && held > 0) {
      const left = Math.max(0, this.#quota - this.#shares.quota);
      this.#shares.adopt(gateway, Math.min(held * this.#quota, left));
    } else this.#shares.join(gateway);
    this.holds(gateway, held);
  }

  /** The gateway uses this fraction, and no order to it is in flight. */
  holds(gateway: string, part: number): void {
    this.#holdings.set(gateway, { part, most: part });
  }

  /** Gateways not known by now are gone: their shares go to the others. */
  learned(): void {
    this.#shares.setQuota(this.#quota);
  }

  leave(gateway: string): void {
    this.#shares.leave(gateway);
    this.#mover.forget(gateway);
    this.#holdings.delete(gateway);
    this.heads.delete(gateway);
  }

  // ---- demand
  //

  /** Nothing has been asked for, for so long that nothing more will change. */
  get isQuiet(): boolean {
    return this.#quietSeconds >= quietAfter;
  }

  /** Something was asked for after a long time: there was nothing in the seconds before. */
  wake(now: number): void {
    this.#quietSeconds = 0;
    for (const gateway of this.gateways()) {
      for (let i = 0; i < shareSchedulerDefaults.window; i++)
        this.#mover.report(gateway, 0, 0, now);
    }
  }

  report(gateway: string, used: number, refused: number, now: number): void {
    if (used + refused > 0) this.#quietSeconds = 0;
    this.#mover.report(gateway, used, refused, now);
  }

  /** To be called each second. */
  reassign(rules: PoolRules, now: number): void {
    this.#quietSeconds++;
    if (rules.moves) this.#mover.reassign(now);
  }

  /** Shares are equal again. */
  equalise(): void {
    const { quota } = this.#shares;
    this.#shares = new GatewayShares(quota, [...this.gateways()]);
    this.#mover = new ShareScheduler(this.#shares);
  }

  // ---- orders
  //

  /** Part that the gateway goes by or is on its way to. */
  partOf(gateway: string): number {
    return this.#holdings.get(gateway)?.part ?? 0;
  }

  /** The gateway has applied its order. Returns whether there is more to give as a result. */
  settle(gateway: string): boolean {
    const holding = this.#holdings.get(gateway);
    if (holding === undefined || holding.most === holding.part) return false;
    holding.most = holding.part;
    return true;
  }

  /**
   * Calls `order` for each gateway whose fraction changes. False while some wait for fractions that
   * others still use.
   */
  grant(rules: PoolRules, order: (gateway: string) => void): boolean {
    const wanting: { gateway: string; holding: Holding; lack: number }[] = [];
    let free = this.#shares.quota / this.#quota;
    let lacking = 0;
    for (const [gateway, holding] of this.#holdings) {
      const part = rules.splits ? this.#shares.of(gateway) / this.#quota : 1;
      if (part > holding.most + epsilon) {
        const lack = part - holding.most;
        lacking += lack;
        wanting.push({ gateway, holding, lack });
      } else if (Math.abs(part - holding.part) > epsilon) {
        holding.part = part;
        order(gateway);
      }
      free -= holding.most;
    }
    if (wanting.length === 0) return true;
    const given = rules.splits ? Math.min(1, Math.max(0, free) / lacking) : 1;
    for (const { gateway, holding, lack } of wanting) {
      const part = holding.most + lack * given;
      if (part - holding.part <= epsilon) continue;
      holding.part = part;
      holding.most = part;
      order(gateway);
    }
    return given >= 1 - epsilon;
  }
}
