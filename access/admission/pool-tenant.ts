// One tenant's quota in a pool of gateways: who is to have which part of it, and who may go by which just now. A part
// is given to a gateway only after those who have it are known to go by less: whatever is lost or late, the gateways
// together never go by more than the quota.

import { GatewayShares } from './gateway-shares.ts';
import { ProxyRecall } from './proxy-quota.ts';
import type { WaitingQuery } from './query-queue.ts';
import { ShareScheduler, shareSchedulerDefaults } from './share-scheduler.ts';

/**
 * `shares`: they come to the quota, always. `abase-async`: each gateway may go up to twice an equal share, until all
 * together are beyond the quota (ABase, section 4.2). `split`: equal parts. `gossip`: each has the part that it finds to
 * be its own by what all tell each other. `hash`: equal parts, which gateways lend to the tracker of the tenant.
 */
export type PoolPolicy = 'shares' | 'abase-async' | 'split' | 'gossip' | 'hash';

export interface PoolRules {
  /** Each gateway has a share of the quota (X-Stor, section 5.2). Otherwise each goes by all of it. */
  splits: boolean;
  policy: PoolPolicy;
  /** Shares move to gateways that need them. */
  moves: boolean;
  /** Gateways may go beyond equal shares where the policy is `abase-async`. */
  boosts: boolean;
  /** Gateways lend each other what was saved up for queries. */
  lends: boolean;
}

export const poolRuleDefaults: PoolRules = {
  splits: true,
  policy: 'shares',
  moves: true,
  boosts: true,
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
  /** Of units a second. They come to less than the quota while gateways are still to be learned of. */
  #shares: GatewayShares;
  #mover: ShareScheduler;
  #recall: ProxyRecall;
  #isRecalled = false;
  readonly #holdings = new Map<string, Holding>();
  /** Units asked for in the last second, by gateway. */
  readonly #asked = new Map<string, number>();
  /** Parts that gateways find to be their own. */
  readonly #claims = new Map<string, number>();
  #quietSeconds = quietAfter;

  /** `learns`: gateways that join tell what they have; until `learned` there is nothing else to be given. */
  constructor(number: number, quota: number, learns: boolean) {
    this.number = number;
    this.#quota = quota;
    this.#shares = new GatewayShares(learns ? 0 : quota);
    this.#mover = new ShareScheduler(this.#shares);
    this.#recall = new ProxyRecall(quota);
  }

  /** Units a second. */
  get quota(): number {
    return this.#quota;
  }

  /** All shares change alike, so that parts stay what they are. */
  setQuota(quota: number): void {
    this.#shares.setQuota((this.#shares.quota * quota) / this.#quota);
    this.#quota = quota;
    this.#recall = new ProxyRecall(quota);
  }

  /** Units a second. */
  shareOf(gateway: string): number {
    return this.#shares.of(gateway);
  }

  gateways(): IterableIterator<string> {
    return this.#shares.gateways();
  }

  // ---- who is there

  /** `held` is the part that it goes by as it comes. */
  join(gateway: string, held: number, learns: boolean): void {
    if (learns && held > 0) {
      const left = Math.max(0, this.#quota - this.#shares.quota);
      this.#shares.adopt(gateway, Math.min(held * this.#quota, left));
    } else this.#shares.join(gateway);
    this.holds(gateway, held);
  }

  /** It goes by this part, and no order is on its way to it. */
  holds(gateway: string, part: number): void {
    this.#holdings.set(gateway, { part, most: part });
  }

  /** Whoever has not come by now is gone: its share is there for the others. */
  learned(): void {
    this.#shares.setQuota(this.#quota);
  }

  leave(gateway: string): void {
    this.#shares.leave(gateway);
    this.#mover.forget(gateway);
    this.#holdings.delete(gateway);
    this.#asked.delete(gateway);
    this.#claims.delete(gateway);
    this.heads.delete(gateway);
  }

  // ---- what is asked of them

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
    this.#asked.set(gateway, used + refused);
  }

  /** To be called each second. */
  reassign(rules: PoolRules, now: number): void {
    this.#quietSeconds++;
    if (rules.policy === 'shares' && rules.moves) this.#mover.reassign(now);
    let asked = 0;
    for (const units of this.#asked.values()) asked += units;
    this.#isRecalled = this.#recall.decide(asked);
    // Calm has to last before it counts.
    if (this.#isRecalled) this.#quietSeconds = 0;
  }

  /** A gateway finds that this part of the quota is its own; undefined for one that has not found anything. */
  claim(gateway: string, part: number | undefined): void {
    if (part === undefined) this.#claims.delete(gateway);
    else if (this.#holdings.has(gateway)) this.#claims.set(gateway, part);
  }

  /** Nobody has found anything. */
  forgetClaims(): void {
    this.#claims.clear();
  }

  /** Shares are equal again. */
  equalise(): void {
    const { quota } = this.#shares;
    this.#shares = new GatewayShares(quota, [...this.gateways()]);
    this.#mover = new ShareScheduler(this.#shares);
  }

  // ---- what they are to go by

  /** Part that the gateway goes by or is on its way to. */
  partOf(gateway: string): number {
    return this.#holdings.get(gateway)?.part ?? 0;
  }

  /** The gateway goes by what it was ordered. Whether there is more to give for that. */
  settle(gateway: string): boolean {
    const holding = this.#holdings.get(gateway);
    if (holding === undefined || holding.most === holding.part) return false;
    holding.most = holding.part;
    return true;
  }

  /** Calls `order` for each gateway whose part changes. False while some wait for what others still have. */
  grant(rules: PoolRules, order: (gateway: string) => void): boolean {
    const wanting: { gateway: string; holding: Holding; lack: number }[] = [];
    let free = this.#shares.quota / this.#quota;
    let lacking = 0;
    const claimed = rules.policy === 'gossip' ? this.#claimed() : 0;
    for (const [gateway, holding] of this.#holdings) {
      const part = this.#wanted(gateway, rules, claimed);
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
    const isBounded = rules.splits && rules.policy !== 'abase-async';
    const given = isBounded ? Math.min(1, Math.max(0, free) / lacking) : 1;
    for (const { gateway, holding, lack } of wanting) {
      const part = holding.most + lack * given;
      if (part - holding.part <= epsilon) continue;
      holding.part = part;
      holding.most = part;
      order(gateway);
    }
    return given >= 1 - epsilon;
  }

  #wanted(gateway: string, { splits, policy, boosts }: PoolRules, claimed: number): number {
    if (!splits) return 1;
    const equal = 1 / this.#shares.count;
    switch (policy) {
      case 'shares':
        return this.#shares.of(gateway) / this.#quota;
      case 'abase-async':
        return boosts && !this.#isRecalled ? 2 * equal : equal;
      case 'gossip':
        return claimed > 0 ? this.#claimOf(gateway) / claimed : equal;
      case 'split':
      case 'hash':
        return equal;
    }
  }

  #claimOf(gateway: string): number {
    return this.#claims.get(gateway) ?? 1 / this.#shares.count;
  }

  /** What they find comes to about 1: not all have heard the same. */
  #claimed(): number {
    let sum = 0;
    for (const gateway of this.#holdings.keys()) sum += this.#claimOf(gateway);
    return sum;
  }
}
