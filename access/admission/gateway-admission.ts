// All rate limiters of one gateway, and the one timer that serves their queues. A tenant without a limit has no limiter and
// no overhead.

import type { TenantAccount } from '../../request-units/meter.ts';
import type { Clock } from '../../universal-row/environment.ts';
import type { QuotaMode } from '../../contracts/table-properties.ts';
import type { TenancyUpdate, TenantDefinition } from '../../contracts/tenancy/definitions.ts';
import { batchRequest, type PodAdmission } from '../../contracts/pod-admission.ts';
import { admissionDefaults, type AdmissionRules, type SharedCapacity } from './admission-rules.ts';
import { BurstPackage, burstCap } from './burst-package.ts';
import { ErrorDelay } from './error-delay.ts';
import { ClassLimiters, type ClassLimit } from './class-limiters.ts';
import { SpareCapacity } from './spare-capacity.ts';
import { TenantLimiter } from './tenant-limiter.ts';
import { TenantLimits } from './tenant-limits.ts';

interface GatewayAdmissionOptions {
  clock: Clock;
  rules?: Partial<AdmissionRules>;
  /** Queued requests resume in time slices of their tenant. */
  pod?: PodAdmission | undefined;
  /** Returns the account that a tenant's costs are charged to; undefined if the tenant has no account of its own. */
  accountOf: (tenant: number) => TenantAccount | undefined;
  /** Which operations have a limit of their own here. */
  classLimit?: ClassLimit;
  /** A tenant is near its quota: mean units a second of the last seconds. At most once a minute for each tenant. */
  alarm?: (limiter: TenantLimiter, used: number) => void;
}

// Interval of searches for expired requests. The head of a queue is checked whenever the queue is served.
const expireEveryMs = 20;
// Queries wait longer.
const serveQueriesEveryMs = 50;
/** Part of its quota at which a tenant is reported. */
const alarmAt = 0.8;

export class GatewayAdmission implements SharedCapacity {
  /** For how long a refusal is delayed. */
  readonly errorDelay: ErrorDelay;
  readonly #clock: Clock;
  readonly #pod: PodAdmission | undefined;
  readonly #accountOf: (tenant: number) => TenantAccount | undefined;
  /** Definitions of tenants with a limit. */
  readonly #limited = new Map<number, TenantDefinition>();
  readonly #limiters = new Map<number, TenantLimiter>();
  readonly #alarm: GatewayAdmissionOptions['alarm'];
  readonly #classLimiters: ClassLimiters;
  /** Limits of every tenant requested so far. */
  readonly #limits = new Map<number, TenantLimits>();
  /** Limiters at which requests wait. */
  readonly #awaited = new Set<TenantLimiter>();
  /** The limiters among them whose tenants are queued in the CPU scheduler. */
  readonly #scheduled = new Set<TenantLimiter>();
  /** Limiters at which queries wait. */
  readonly #queryLimiters = new Set<TenantLimiter>();
  /** Fraction of its limit that each tenant has on this gateway, and the fraction of all other tenants. */
  #shares: ReadonlyMap<number, number> = new Map();
  #usualShare = 1;
  /** For each limiter, the number of requests that had waited or were refused at the last call of `demands`. */
  readonly #shortages = new Map<TenantLimiter, number>();
  #rules: AdmissionRules;
  #burst: BurstPackage;
  #spare: SpareCapacity;
  #timer: NodeJS.Timeout | undefined;
  #queryTimer: NodeJS.Timeout | undefined;
  #expiredAt = 0;

  constructor(options: GatewayAdmissionOptions) {
    const { clock, rules = {}, pod, accountOf, classLimit = 'scanRuPerSecond', alarm } = options;
    this.#alarm = alarm;
    this.#clock = clock;
    this.#pod = pod;
    this.#accountOf = accountOf;
    this.#rules = { ...admissionDefaults, ...rules };
    this.errorDelay = new ErrorDelay({ enabled: this.#rules.delaysErrors });
    this.#burst = this.#newBurst();
    this.#spare = new SpareCapacity(this.#rules.gatewayRu);
    this.#classLimiters = new ClassLimiters({
      limit: classLimit,
      clock,
      rules: this.#rules,
      accountOf,
      wake: (limiter) => this.wake(limiter),
      changed: (tenant) => this.#changed(tenant),
    });
  }

  get rules(): Readonly<AdmissionRules> {
    return this.#rules;
  }

  /** Changes the rules at once, also for waiting requests: requests that may now continue are admitted within the call. */
  setRules(rules: Partial<AdmissionRules>): void {
    const wasDry = this.#rules.dryRun;
    Object.assign(this.#rules, rules);
    this.errorDelay.options.enabled = this.#rules.delaysErrors;
    if (!this.#rules.enabled) for (const number of this.#limited.keys()) this.#drop(number);
    else for (const definition of this.#limited.values()) this.#open(definition);
    this.#burst = this.#newBurst();
    this.#spare = new SpareCapacity(this.#rules.gatewayRu);
    const now = this.#clock.monotonic();
    for (const limiter of [...this.#limiters.values(), ...this.#classLimiters.limiters()]) {
      limiter.rulesChanged(now);
      limiter.quotaModesChanged();
      if (this.#rules.dryRun) limiter.release(now);
      else if (wasDry) limiter.restart(now);
    }
  }

  #newBurst(): BurstPackage {
    const { burstRu } = this.#rules;
    return new BurstPackage({
      units: burstRu,
      capOf: burstCap(burstRu, () => this.#limiters.size),
    });
  }

  // ---- tenants

  /** The tenant's limiters, now and later. */
  limitsOf(tenant: number): TenantLimits {
    let limits = this.#limits.get(tenant);
    if (limits === undefined) {
      this.#limits.set(tenant, (limits = new TenantLimits()));
      this.#changed(tenant);
    }
    return limits;
  }

  /** Undefined for a tenant without a limit. */
  limiterOf(tenant: number): TenantLimiter | undefined {
    return this.#limiters.get(tenant);
  }

  limiters(): IterableIterator<TenantLimiter> {
    return this.#limiters.values();
  }

  /**
   * Limiter for the tenant's scans or queries, passed first; undefined where they have no limit of
   * their own.
   */
  classLimiterOf(tenant: number): TenantLimiter | undefined {
    return this.#classLimiters.limiterOf(tenant);
  }

  classLimiters(): IterableIterator<TenantLimiter> {
    return this.#classLimiters.limiters();
  }

  /** Called when a limiter was added or removed, before requests are admitted for its tenant. */
  #changed(tenant: number): void {
    this.#limits.get(tenant)?.set(this.limiterOf(tenant), this.classLimiterOf(tenant));
  }

  /** Applies changes of tenants. */
  update({ whole, tenants, gone }: TenancyUpdate): void {
    const names = new Set(whole ? tenants.map(({ name }) => name) : gone.tenants);
    for (const { number, name } of [...this.#limited.values()]) {
      if (names.has(name) !== whole) this.forget(number);
    }
    for (const [number, { name }] of this.#limits) {
      if (name !== '' && names.has(name) !== whole) this.#limits.delete(number);
    }
    for (const tenant of tenants) this.follow(tenant);
  }

  /** The tenant's limits may have changed. Returns its limiter now. */
  follow(definition: TenantDefinition): TenantLimiter | undefined {
    const { ruPerSecond, scanRuPerSecond, queryRuPerSecond } = definition.limits;
    this.limitsOf(definition.number).name = definition.name;
    if (ruPerSecond + scanRuPerSecond + queryRuPerSecond === 0) {
      this.forget(definition.number);
      return undefined;
    }
    this.#limited.set(definition.number, definition);
    return this.#rules.enabled ? this.#open(definition) : undefined;
  }

  #open(definition: TenantDefinition): TenantLimiter | undefined {
    const share = this.#shareOf(definition.number);
    if (this.#classLimiters.open(definition, share) !== undefined)
      this.#reschedule(this.#clock.monotonic());
    if (definition.limits.ruPerSecond > 0) return this.#openMain(definition);
    this.#dropMain(definition.number);
    return undefined;
  }

  #openMain({ number, name, limits, createdAt }: TenantDefinition): TenantLimiter {
    const { ruPerSecond, burstRu, peakRuPerSecond } = limits;
    const share = this.#shareOf(number);
    const quota = {
      perSecond: ruPerSecond * share,
      burst: burstRu * share,
      peak: peakRuPerSecond * share,
    };
    const limiter = this.#limiters.get(number);
    const now = this.#clock.monotonic();
    if (limiter === undefined) {
      // A tenant whose clock went backwards counts as created now.
      const age = createdAt === undefined ? Infinity : Math.max(0, this.#clock.now() - createdAt);
      const made = new TenantLimiter(number, name, quota, this.#rules, this, now, now - age);
      made.follow(this.#ownAccount(number));
      this.#limiters.set(number, made);
      this.#changed(number);
      return made;
    }
    limiter.name = name;
    const { perSecond, burst, peak } = limiter.quota;
    if (quota.perSecond !== perSecond || quota.burst !== burst || quota.peak !== peak) {
      limiter.setQuota(quota, now);
      this.#reschedule(now);
    }
    return limiter;
  }

  #ownAccount(tenant: number): TenantAccount | undefined {
    const account = this.#accountOf(tenant);
    return account?.tenant === tenant ? account : undefined;
  }

  /** Called when the tenant was dropped or lost its limit. Admits its waiting requests. */
  forget(tenant: number): void {
    this.#limited.delete(tenant);
    this.#drop(tenant);
  }

  #drop(tenant: number): void {
    const scans = this.#classLimiters.limiterOf(tenant);
    if (scans !== undefined) {
      this.#awaited.delete(scans);
      this.#classLimiters.drop(tenant);
    }
    this.#dropMain(tenant);
  }

  #dropMain(tenant: number): void {
    const limiter = this.#limiters.get(tenant);
    if (limiter === undefined) return;
    this.#limiters.delete(tenant);
    this.#shortages.delete(limiter);
    this.#awaited.delete(limiter);
    this.#queryLimiters.delete(limiter);
    this.#changed(tenant);
    limiter.release(this.#clock.monotonic());
  }

  /** Called when the quota modes of tables have changed. */
  quotaModesChanged(): void {
    for (const limiter of this.#awaited) limiter.quotaModesChanged();
    this.#reschedule(this.#clock.monotonic());
  }

  // ---- shares of limits that hold for several gateways

  #shareOf(tenant: number): number {
    return this.#shares.get(tenant) ?? this.#usualShare;
  }

  /** Sets the fraction of its limit that each tenant may spend here, and the `usual` fraction for all other tenants. */
  setShares(shares: ReadonlyMap<number, number>, usual: number): void {
    const before = { shares: this.#shares, usual: this.#usualShare };
    this.#shares = shares;
    this.#usualShare = usual;
    if (!this.#rules.enabled) return;
    for (const definition of this.#limited.values()) {
      const was = before.shares.get(definition.number) ?? before.usual;
      if (was !== this.#shareOf(definition.number)) this.#open(definition);
    }
  }

  /** Units spent in the last second, and missing since the last call. */
  demands(): { tenant: number; quota: number; used: number; lacking: number }[] {
    return Array.from(this.#limiters.values(), (limiter) => {
      const { tenant, counters, waiting, use } = limiter;
      const short = counters.refused + counters.waited;
      const isShort = waiting > 0 || short > (this.#shortages.get(limiter) ?? 0);
      this.#shortages.set(limiter, short);
      const quota = this.#limited.get(tenant)?.limits.ruPerSecond ?? 0;
      // Only the first command of a waiting pipeline is known; the rest may need as much again.
      const lacking = isShort ? limiter.quota.perSecond : 0;
      return { tenant, quota, used: use.lastSecond, lacking };
    });
  }

  // ---- time

  /** To be called each second. */
  endSecond(): void {
    const now = this.#clock.monotonic();
    for (const limiter of this.#limiters.values()) {
      limiter.endSecond(now);
      const used = limiter.use.alarm(limiter.quota.perSecond * alarmAt, now);
      if (used > 0) this.#alarm?.(limiter, used);
    }
    this.#classLimiters.endSecond(now);
  }

  /** Called when the gateway stops. Admits all waiting requests; nothing is limited afterwards. */
  close(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#queryTimer);
    this.#timer = undefined;
    this.#queryTimer = undefined;
    this.setRules({ enabled: false });
  }

  /** Recomputes waiting times, which may have become shorter or longer. */
  #reschedule(now: number): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#schedule(now);
  }

  #schedule(now: number): void {
    if (this.#timer !== undefined || this.#awaited.size === 0) return;
    let ms = expireEveryMs;
    for (const limiter of this.#awaited) ms = Math.min(ms, limiter.nextServe(now));
    this.#timer = setTimeout(() => this.#serve(), Math.max(1, Math.ceil(ms)));
  }

  #serve(): void {
    this.#timer = undefined;
    const now = this.#clock.monotonic();
    const mayBeLate = now - this.#expiredAt >= expireEveryMs;
    if (mayBeLate) this.#expiredAt = now;
    this.#pod?.beginTick(now);
    for (const limiter of [...this.#awaited]) this.#scheduleServe(limiter, mayBeLate);
    this.#schedule(now);
  }

  /** Serves the limiter in a time slice of its tenant: admitted requests run at once. */
  #scheduleServe(limiter: TenantLimiter, mayBeLate: boolean): void {
    if (this.#scheduled.has(limiter)) return;
    const request = batchRequest(limiter.tenant, () => {
      this.#scheduled.delete(limiter);
      this.#serveLimiter(limiter, mayBeLate);
    });
    const result = this.#pod?.admit(request, this.#clock.monotonic()) ?? 'admitted';
    if (result === 'admitted') this.#serveLimiter(limiter, mayBeLate);
    else this.#scheduled.add(limiter);
  }

  #serveLimiter(limiter: TenantLimiter, mayBeLate: boolean): void {
    if (!this.#awaited.has(limiter)) return;
    const now = this.#clock.monotonic();
    const isOver =
      (mayBeLate && limiter.expire(now, this.#isSliceOver)) ||
      limiter.serve(now, this.#isSliceOver);
    if (limiter.waiting === 0) this.#awaited.delete(limiter);
    else if (isOver) this.#requeue(limiter, mayBeLate);
  }

  #requeue(limiter: TenantLimiter, mayBeLate: boolean): void {
    this.#scheduled.add(limiter);
    this.#pod!.requeue(
      batchRequest(limiter.tenant, () => {
        this.#scheduled.delete(limiter);
        this.#serveLimiter(limiter, mayBeLate);
      }),
    );
  }

  readonly #isSliceOver = (): boolean => this.#pod?.isSliceOver(this.#clock.monotonic()) === true;

  #serveQueries(): void {
    this.#queryTimer = undefined;
    const now = this.#clock.monotonic();
    for (const limiter of [...this.#queryLimiters]) {
      limiter.queryLimiter.serve(now);
      if (limiter.queryLimiter.waiting === 0) this.#queryLimiters.delete(limiter);
    }
    this.#scheduleQueries();
  }

  #scheduleQueries(): void {
    if (this.#queryLimiters.size === 0) return;
    this.#queryTimer ??= setTimeout(() => this.#serveQueries(), serveQueriesEveryMs);
  }

  // ---- for the limiters

  burst(tenant: number, share: number, cost: number, now: number): boolean {
    return this.#rules.burstRu > 0 && this.#burst.take(tenant, share, cost, now);
  }

  lends(mode: QuotaMode): number {
    const { allocation, gatewayRu } = this.#rules;
    return (mode === 'server' ? allocation : mode) === 'stacked' ? gatewayRu : 0;
  }

  borrow(mode: QuotaMode, cost: number, now: number): boolean {
    return this.lends(mode) > 0 && this.#spare.borrow(cost, now);
  }

  used(units: number, now: number): void {
    if (this.#rules.gatewayRu > 0) this.#spare.use(units, now);
  }

  wake(limiter: TenantLimiter): void {
    this.#awaited.add(limiter);
    this.#schedule(this.#clock.monotonic());
  }

  wakeQueries(limiter: TenantLimiter): void {
    this.#queryLimiters.add(limiter);
    this.#scheduleQueries();
  }
}
