// One tenant's quota in a pool of gateways: who is to have which part of it, and who may go by which just now. A part
// is given to a gateway only after those who have it are known to go by less: whatever is lost or late, the gateways
// together never go by more than the quota.

import { GatewayShares } from './gateway-shares.ts';
import type { WaitingQuery } from '../../access/admission/query-queue.ts';
import { ShareScheduler, shareSchedulerDefaults } from './share-scheduler.ts';

export interface PoolRules {
  /** Each gateway has a share of the quota (X-Stor, section 5.2). Otherwise each goes by all of it. */
  splits: boolean;
  /** Shares move to gateways that need them. */
  moves: boolean;
  /** Gateways lend each other what was saved up for queries. */
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
  /** Of units a second. They come to less than the quota while gateways are still to be learned of. */
  #shares: GatewayShares;
  #mover: ShareScheduler;
  readonly #holdings = new Map<string, Holding>();
  #quietSeconds = quietAfter;

  /** `learns`: gateways that join tell what they have; until `learned` there is nothing else to be given. */
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

  /** All shares change alike, so that parts stay what they are. */
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
