// Moves shares of a tenant's quota from gateways with idle shares to gateways that lack units, every second (X-Stor,
// section 5.2, "autoscaling"). A gateway's need is the median of its demand in the last seconds, so a single busy second is
// left to the burst package.

import type { GatewayShares } from './gateway-shares.ts';

interface ShareSchedulerOptions {
  /** Seconds over which the median is taken. */
  window: number;
  /** Share that a donor keeps, as a multiple of its demand. */
  donorHeadroom: number;
  /** Share of a receiver, as a multiple of its demand. */
  receiverHeadroom: number;
  /** Fraction of an equal share that a gateway without demand keeps, so that it can start again. */
  floor: number;
  /** Age in milliseconds after which a report is ignored. */
  staleMs: number;
  /** Whether gateways above an equal share give to needy gateways below it, when idle shares do not cover the need. */
  evens: boolean;
}

export const shareSchedulerDefaults: ShareSchedulerOptions = {
  window: 5,
  donorHeadroom: 1.05,
  receiverHeadroom: 1.02,
  floor: 0.1,
  staleMs: 3000,
  evens: false,
};

interface Reports {
  /** Units asked for in each of the last seconds, in a ring. */
  demand: number[];
  next: number;
  at: number;
}

export class ShareScheduler {
  readonly #shares: GatewayShares;
  readonly #options: ShareSchedulerOptions;
  readonly #reports = new Map<string, Reports>();

  constructor(shares: GatewayShares, options: Partial<ShareSchedulerOptions> = {}) {
    this.#shares = shares;
    this.#options = { ...shareSchedulerDefaults, ...options };
  }

  /** Records the units that a gateway spent and refused for the tenant in the last second. */
  report(gateway: string, used: number, refused: number, now: number): void {
    let reports = this.#reports.get(gateway);
    if (reports === undefined) {
      this.#reports.set(gateway, (reports = { demand: [], next: 0, at: now }));
    }
    reports.demand[reports.next] = used + refused;
    reports.next = (reports.next + 1) % this.#options.window;
    reports.at = now;
  }

  /** To be called each second, after the reports. */
  reassign(now: number): void {
    const { donorHeadroom, receiverHeadroom, floor, staleMs, evens } = this.#options;
    const shares = this.#shares;
    const idle = new Map<string, number>();
    const need = new Map<string, number>();
    const known: string[] = [];
    let idleTotal = 0;
    let needTotal = 0;
    for (const gateway of shares.gateways()) {
      const reports = this.#reports.get(gateway);
      if (reports === undefined || now - reports.at > staleMs) continue;
      known.push(gateway);
      const share = shares.of(gateway);
      const demand = median(reports.demand);
      const least = (floor * shares.quota) / shares.count;
      const spare = share - Math.max(donorHeadroom * demand, least);
      const lack = Math.max(receiverHeadroom * demand, least) - share;
      if (spare > 0) idle.set(gateway, spare);
      else if (lack > 0) need.set(gateway, lack);
      idleTotal += Math.max(0, spare);
      needTotal += Math.max(0, lack);
    }
    shares.move(Math.min(idleTotal, needTotal), idle, need);
    if (evens && needTotal > idleTotal) this.#even(known, need);
  }

  /** Moves half of the difference at once: demands cover several seconds. */
  #even(known: readonly string[], need: ReadonlyMap<string, number>): void {
    const shares = this.#shares;
    const equal = shares.quota / shares.count;
    const rich = new Map<string, number>();
    const poor = new Map<string, number>();
    for (const gateway of known) {
      const more = shares.of(gateway) - equal;
      if (more > 0) rich.set(gateway, more);
      else if (more < 0 && need.has(gateway))
        poor.set(gateway, Math.min(-more, need.get(gateway)!));
    }
    const sum = (of: ReadonlyMap<string, number>): number =>
      [...of.values()].reduce((total, one) => total + one, 0);
    shares.move(Math.min(sum(rich), sum(poor)) / 2, rich, poor);
  }

  forget(gateway: string): void {
    this.#reports.delete(gateway);
  }
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
