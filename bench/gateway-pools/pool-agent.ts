// A gateway in its pool: reports its tenants' spending and unmet demand to the scheduler each
// second, and uses the shares it receives (X-Stor, section 5.2). While the scheduler is silent it
// keeps its shares.

import type { Clock } from '../../universal-row/environment.ts';
import {
  type FromGateway,
  type PoolLoan,
  poolLeaseMs,
  type PoolOrder,
  type PoolReport,
  type ToGateway,
} from './pool-messages.ts';
import type { GatewayAdmission } from '../../access/admission/gateway-admission.ts';
import type { TenantDefinition } from '../../contracts/tenancy/definitions.ts';
import type { TenantLimiter } from '../../access/admission/tenant-limiter.ts';

interface PoolAgentOptions {
  /** Unique in the pool, also among earlier processes. */
  gateway: string;
  admission: GatewayAdmission;
  clock: Clock;
  /** To the scheduler. May be lost. */
  send: (message: FromGateway) => void;
  /**
   * Part of each quota that the gateway goes by until it is told: 1 for the only gateway of a pool, 0 where there may
   * be others, so that nothing is spent twice.
   */
  firstPart: number;
  leaseMs?: number;
}

/** A limit of 0 means none, so a gateway without a part keeps this much. */
const leastPart = 1e-9;

export class PoolAgent {
  readonly #options: Required<PoolAgentOptions>;
  /** Fractions of quotas, by tenant. */
  readonly #parts = new Map<number, number>();
  /** Tenants with their whole limits, by number. */
  readonly #definitions = new Map<number, TenantDefinition>();
  /** Requests refused that were told, by tenant. */
  readonly #refused = new Map<number, number>();
  /** Balance of its queries that was told last, by tenant. */
  readonly #told = new Map<number, number>();
  /** When reports were sent that are not older than a lease, by number. */
  readonly #sentAt = new Map<number, number>();
  #session = 1;
  /** That the session is with. */
  #scheduler = '';
  #isMember = false;
  /** Until then the scheduler will not have given it up. */
  #leaseEnd = 0;
  #reports = 0;
  #taken = 0;

  constructor(options: PoolAgentOptions) {
    this.#options = { leaseMs: poolLeaseMs, ...options };
  }

  /** The scheduler knows of it, as far as can be seen from here. */
  get isMember(): boolean {
    return this.#isMember;
  }

  /** This gateway's fraction of the tenant's quota. */
  partOf(tenant: number): number {
    return this.#parts.get(tenant) ?? this.#options.firstPart;
  }

  /** Applies the gateway's part of the tenant's limits. */
  follow(definition: TenantDefinition): void {
    this.#definitions.set(definition.number, definition);
    const part = Math.max(leastPart, this.partOf(definition.number));
    const { ruPerSecond, burstRu, peakRuPerSecond, scanRuPerSecond, queryRuPerSecond } =
      definition.limits;
    this.#options.admission.follow({
      ...definition,
      limits: {
        ...definition.limits,
        ruPerSecond: part * ruPerSecond,
        burstRu: part * burstRu,
        peakRuPerSecond: part * peakRuPerSecond,
        scanRuPerSecond: part * scanRuPerSecond,
        queryRuPerSecond: part * queryRuPerSecond,
      },
    });
  }

  /** The tenant is no more. */
  forget(tenant: number): void {
    this.#parts.delete(tenant);
    this.#definitions.delete(tenant);
    this.#refused.delete(tenant);
    this.#options.admission.forget(tenant);
    this.#told.delete(tenant);
  }

  /** Called each second, after the limiters' own. */
  second(): void {
    const now = this.#options.clock.monotonic();
    if (this.#isMember && now > this.#leaseEnd) this.#beginSession();
    this.#sendReport(this.#report(now), now);
  }

  /** The gateway stops serving: its shares go to others. */
  goodbye(): void {
    this.#options.send({ type: 'goodbye', gateway: this.#options.gateway });
  }

  hear(message: ToGateway): void {
    if (message.session !== this.#session) return;
    if (message.type === 'order') {
      this.#obey(message);
      return;
    }
    // The scheduler may not have received yet that this session is with it.
    if (!this.#isMember && message.scheduler === this.#scheduler) return;
    this.#scheduler = message.scheduler;
    this.#beginSession();
    const now = this.#options.clock.monotonic();
    this.#sendReport(this.#report(now), now);
  }

  /** Earlier orders no longer apply; shares stay as they are. */
  #beginSession(): void {
    this.#session++;
    this.#isMember = false;
    this.#taken = 0;
  }

  #obey(order: PoolOrder): void {
    if (order.number <= this.#taken) return;
    const { clock, gateway, leaseMs, send } = this.#options;
    const now = clock.monotonic();
    const leaseEnd = (this.#sentAt.get(order.heard) ?? -Infinity) + leaseMs;
    if (now > leaseEnd) {
      // The message was delayed: the scheduler may have given the shares to others since.
      if (this.#isMember) this.#beginSession();
      return;
    }
    this.#leaseEnd = Math.max(this.#leaseEnd, leaseEnd);
    this.#isMember = true;
    this.#taken = order.number;
    order.tenants.forEach((tenant, i) => {
      const part = order.parts[i]!;
      this.#parts.set(tenant, part);
      const definition = this.#definitions.get(tenant);
      if (definition !== undefined) this.follow(definition);
    });
    const lent: { loan: number; units: number }[] = [];
    this.#carryOut(order.lend, (limiter, { loan, units }) => {
      // Requests waiting at this gateway come first.
      const given = limiter.queries.length === 0 ? limiter.queries.units.giveUp(units) : 0;
      lent.push({ loan, units: given });
    });
    this.#carryOut(order.receive, (limiter, { units }) => {
      limiter.queries.units.receive(units);
      limiter.queryLimiter.serve(now);
    });
    send({ type: 'taken', gateway, session: this.#session, order: order.number, lent });
  }

  #carryOut(
    loans: readonly PoolLoan[],
    what: (limiter: TenantLimiter, loan: PoolLoan) => void,
  ): void {
    for (const loan of loans) {
      const limiter = this.#options.admission.limiterOf(loan.tenant);
      if (limiter !== undefined) what(limiter, loan);
    }
  }

  #sendReport(report: PoolReport, now: number): void {
    this.#sentAt.set(report.number, now);
    for (const [number, at] of this.#sentAt) {
      if (now - at <= this.#options.leaseMs) break;
      this.#sentAt.delete(number);
    }
    this.#options.send(report);
  }

  #report(now: number): PoolReport {
    const { admission, gateway, firstPart } = this.#options;
    const report: PoolReport = {
      type: 'report',
      gateway,
      session: this.#session,
      scheduler: this.#scheduler,
      number: ++this.#reports,
      taken: this.#taken,
      firstPart,
      tenants: [],
      used: [],
      refused: [],
      balances: [],
      heads: [],
    };
    if (!this.#isMember) {
      report.parts = { tenants: [...this.#parts.keys()], parts: [...this.#parts.values()] };
      this.#told.clear();
    }
    for (const limiter of admission.limiters()) this.#tellOf(limiter, report, now);
    return report;
  }

  #tellOf(limiter: TenantLimiter, report: PoolReport, now: number): void {
    const { tenant, queries } = limiter;
    const used = limiter.use.lastSecond;
    const refusals = limiter.counters.refused - (this.#refused.get(tenant) ?? 0);
    this.#refused.set(tenant, limiter.counters.refused);
    const refused = (refusals + limiter.waiting) * limiter.meanCost;
    const { balance } = queries.units;
    const head = queries.head();
    if (head !== undefined) {
      report.heads.push({ tenant, cost: head.cost, waitedMs: now - head.arrivedAt });
    }
    const isNews = used !== 0 || refused !== 0 || head !== undefined;
    if (!isNews && balance === (this.#told.get(tenant) ?? 0)) return;
    this.#told.set(tenant, balance);
    report.tenants.push(tenant);
    report.used.push(used);
    report.refused.push(refused);
    report.balances.push(balance);
  }
}
