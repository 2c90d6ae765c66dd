// Divides the quotas of tenants among the gateways of one pool, every second (X-Stor, section 5.2).
// All of its state can be restored from the gateways: a new scheduler first collects the fraction
// that each of them uses.

import { randomUUID } from 'node:crypto';
import type { Clock } from '../../universal-row/environment.ts';
import {
  type FromGateway,
  poolLeaseMs,
  type PoolReport,
  type PoolTaken,
  type ToGateway,
} from './pool-messages.ts';
import { type PoolGateway, orderTo } from './pool-gateway.ts';
import { PoolLoans } from './pool-loans.ts';
import { poolRuleDefaults, PoolTenant, type PoolRules } from './pool-tenant.ts';

export interface PoolSchedulerOptions {
  /** Unique, also among earlier processes. */
  id?: string;
  clock: Clock;
  /** May be lost. */
  send: (gateway: string, message: ToGateway) => void;
  /** Milliseconds without a report after which a gateway is gone. */
  leaseMs?: number;
  /** A gateway's report that is older, in milliseconds, says nothing any more. */
  staleMs?: number;
  /**
   * Milliseconds at first in which there may be gateways that it has not heard of: 0 for the first scheduler of a
   * pool, else as long as a lease.
   */
  learnMs?: number;
  rules?: Partial<PoolRules>;
}

export class PoolScheduler {
  readonly #options: Required<PoolSchedulerOptions>;
  readonly #gateways = new Map<string, PoolGateway>();
  /** Gateways that left, and when: their earlier messages are ignored. */
  readonly #gone = new Map<string, number>();
  readonly #tenants = new Map<number, PoolTenant>();
  /** Tenants with recent demand. */
  readonly #active = new Set<PoolTenant>();
  /** Tenants whose units still have to move from some gateways to others. */
  readonly #unsettled = new Set<PoolTenant>();
  readonly #loans: PoolLoans;
  #rules: PoolRules;
  readonly #learnsUntil: number;
  #learns: boolean;

  constructor(options: PoolSchedulerOptions) {
    const { leaseMs = poolLeaseMs } = options;
    const usual = { id: randomUUID(), leaseMs, staleMs: 3000, learnMs: leaseMs, rules: {} };
    this.#options = { ...usual, ...options };
    this.#rules = { ...poolRuleDefaults, ...options.rules };
    this.#learnsUntil = options.clock.monotonic() + this.#options.learnMs;
    this.#learns = this.#options.learnMs > 0;
    this.#loans = new PoolLoans(this.#options.leaseMs);
  }

  get rules(): Readonly<PoolRules> {
    return this.#rules;
  }

  setRules(rules: Partial<PoolRules>): void {
    const { moves: hadMoves } = this.#rules;
    this.#rules = { ...this.#rules, ...rules };
    for (const tenant of this.#tenants.values()) {
      if (hadMoves && !this.#rules.moves) tenant.equalise();
      this.#grant(tenant);
    }
    this.#sendNews();
  }

  gateways(): string[] {
    return [...this.#gateways.keys()];
  }

  /** Units a second, by gateway. */
  sharesOf(number: number): Map<string, number> {
    const tenant = this.#tenants.get(number);
    const shares = new Map<string, number>();
    for (const gateway of tenant?.gateways() ?? []) shares.set(gateway, tenant!.shareOf(gateway));
    return shares;
  }

  // ---- tenants

  /** Quotas in units a second. One without a limit, of 0, is not shared out; its parts are kept for when it has one. */
  setQuotas(quotas: Iterable<readonly [tenant: number, perSecond: number]>): void {
    for (const [number, perSecond] of quotas) {
      if (perSecond === 0) continue;
      const tenant = this.#tenants.get(number);
      if (tenant === undefined) this.#share(number, perSecond);
      else if (tenant.quota !== perSecond) tenant.setQuota(perSecond);
    }
    this.#sendNews();
  }

  #share(number: number, quota: number): void {
    const tenant = new PoolTenant(number, quota, this.#learns);
    this.#tenants.set(number, tenant);
    for (const gateway of this.#gateways.values()) {
      tenant.join(gateway.name, heldBy(gateway, number), this.#learns);
    }
    this.#grant(tenant);
  }

  /** The tenant is no more. */
  forget(number: number): void {
    const tenant = this.#tenants.get(number);
    if (tenant === undefined) return;
    this.#tenants.delete(number);
    this.#active.delete(tenant);
    this.#unsettled.delete(tenant);
    for (const gateway of this.#gateways.values()) {
      gateway.open.delete(number);
      gateway.balances.delete(number);
    }
  }

  // ---- gateways

  hear(message: FromGateway): void {
    if (message.type === 'report') this.#hearReport(message);
    else if (message.type === 'taken') this.#hearTaken(message);
    else this.#leave(message.gateway);
    this.#sendNews();
  }

  #hearReport(report: PoolReport): void {
    if (this.#gone.has(report.gateway)) return;
    let gateway = this.#gateways.get(report.gateway);
    if (gateway === undefined || gateway.session !== report.session) {
      const isOld = gateway !== undefined && report.session < gateway.session;
      if (isOld) return;
      const { id, send } = this.#options;
      if (report.parts === undefined || report.scheduler !== id) {
        send(report.gateway, { type: 'unknown', session: report.session, scheduler: id });
        return;
      }
      gateway = this.#begin(report);
    }
    if (report.number <= gateway.heard) return;
    gateway.heard = report.number;
    gateway.heardAt = this.#options.clock.monotonic();
    this.#settle(gateway, report.taken);
    this.#count(gateway, report);
  }

  /** A gateway joins, or comes again after it was not sure of being known. */
  #begin({ gateway: name, session, firstPart, parts }: PoolReport): PoolGateway {
    const known = this.#gateways.get(name);
    const held = new Map<number, number>();
    parts!.tenants.forEach((tenant, i) => held.set(tenant, parts!.parts[i]!));
    const gateway: PoolGateway = {
      name,
      session,
      firstPart,
      held,
      heard: known?.heard ?? 0,
      heardAt: 0,
      ordered: 0,
      open: new Map(),
      hasNews: true,
      balances: new Map(),
      lend: [],
      receive: [],
    };
    this.#gateways.set(name, gateway);
    for (const tenant of this.#tenants.values()) {
      const part = heldBy(gateway, tenant.number);
      if (known === undefined) tenant.join(name, part, this.#learns);
      else tenant.holds(name, part);
      this.#grant(tenant);
    }
    return gateway;
  }

  #leave(name: string): void {
    this.#gone.set(name, this.#options.clock.monotonic());
    if (!this.#gateways.delete(name)) return;
    for (const tenant of this.#tenants.values()) {
      tenant.leave(name);
      this.#grant(tenant);
    }
  }

  #hearTaken({ gateway: name, session, order, lent }: PoolTaken): void {
    const gateway = this.#gateways.get(name);
    if (gateway?.session !== session) return;
    this.#settle(gateway, order);
    this.#loans.lent(lent, this.#gateways);
  }

  /** The gateway has applied all orders up to this one. */
  #settle(gateway: PoolGateway, order: number): void {
    for (const [number, since] of gateway.open) {
      if (since > order) continue;
      gateway.open.delete(number);
      const tenant = this.#tenants.get(number);
      if (tenant?.settle(gateway.name) && this.#unsettled.has(tenant)) this.#grant(tenant);
    }
  }

  /** A single gateway: its demand changes nothing. */
  get #isAlone(): boolean {
    return this.#gateways.size < 2;
  }

  /** Counts a report of the last second. */
  #count(gateway: PoolGateway, report: PoolReport): void {
    if (this.#isAlone) {
      this.#active.clear();
      return;
    }
    const { heardAt: now, name } = gateway;
    const told = new Set<PoolTenant>();
    report.tenants.forEach((number, i) => {
      gateway.balances.set(number, report.balances[i]!);
      const tenant = this.#tenants.get(number);
      const [used, refused] = [report.used[i]!, report.refused[i]!];
      if (tenant === undefined || used + refused === 0) return;
      if (!this.#active.has(tenant)) {
        this.#active.add(tenant);
        tenant.wake(now);
      }
      tenant.report(name, used, refused, now);
      told.add(tenant);
    });
    for (const tenant of this.#active) {
      tenant.heads.delete(name);
      if (!told.has(tenant)) tenant.report(name, 0, 0, now);
    }
    for (const { tenant: number, cost, waitedMs } of report.heads) {
      const tenant = this.#tenants.get(number);
      if (tenant === undefined) continue;
      this.#active.add(tenant);
      tenant.heads.set(name, { cost, arrivedAt: now - waitedMs, deadline: Infinity });
    }
  }

  // ---- time

  /** To be called each second. */
  second(): void {
    const now = this.#options.clock.monotonic();
    this.#endLeases(now);
    if (this.#learns && now >= this.#learnsUntil) this.#endLearning();
    for (const tenant of this.#active) {
      tenant.reassign(this.#rules, now);
      this.#grant(tenant);
      if (tenant.isQuiet && tenant.heads.size === 0) this.#active.delete(tenant);
    }
    for (const tenant of this.#unsettled) this.#grant(tenant);
    if (this.#rules.lends) this.#lend(now);
    for (const gateway of this.#gateways.values())
      this.#options.send(gateway.name, this.#order(gateway));
  }

  #endLeases(now: number): void {
    const { leaseMs } = this.#options;
    for (const { name, heardAt } of this.#gateways.values()) {
      if (now - heardAt <= leaseMs) continue;
      this.#leave(name);
      // A gateway that was silent, without a goodbye, may return.
      this.#gone.delete(name);
    }
    for (const [name, at] of this.#gone) if (now - at > leaseMs) this.#gone.delete(name);
    this.#loans.expire(now);
  }

  #endLearning(): void {
    this.#learns = false;
    for (const tenant of this.#tenants.values()) {
      tenant.learned();
      this.#grant(tenant);
    }
  }

  #lend(now: number): void {
    const { staleMs } = this.#options;
    const fresh = [...this.#gateways.values()].filter(({ heardAt }) => now - heardAt <= staleMs);
    for (const tenant of this.#active) {
      if (tenant.heads.size > 0) this.#loans.lend(tenant, fresh, now);
    }
  }

  // ---- orders

  #grant(tenant: PoolTenant): void {
    const isSettled = tenant.grant(this.#rules, (name) => {
      const gateway = this.#gateways.get(name)!;
      gateway.open.set(tenant.number, gateway.ordered + 1);
      gateway.hasNews = true;
    });
    if (isSettled) this.#unsettled.delete(tenant);
    else this.#unsettled.add(tenant);
  }

  /** Sends orders to the gateways with changes. */
  #sendNews(): void {
    for (const gateway of this.#gateways.values()) {
      if (gateway.hasNews) this.#options.send(gateway.name, this.#order(gateway));
    }
  }

  #order(gateway: PoolGateway): ToGateway {
    const partOf = (tenant: number): number => this.#tenants.get(tenant)!.partOf(gateway.name);
    return orderTo(gateway, partOf);
  }
}

function heldBy({ held, firstPart }: PoolGateway, tenant: number): number {
  return held.get(tenant) ?? firstPart;
}
