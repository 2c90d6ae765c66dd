// Separate limits for operations that are far more expensive than others (Amazon, "Fairness in
// multi-tenant systems"): scans at a gateway for Redis, queries at one for InfluxDB. A tenant with
// such a limit has a limiter for them, which works like the limiter for all its requests but counts
// only the units charged to their class. Large replies cost more units, so that they count as
// several requests by themselves.

import { ChargeClass, type TenantAccount } from '../../request-units/meter.ts';
import type { Clock } from '../../universal-row/environment.ts';
import type { TenantDefinition } from '../../contracts/tenancy/definitions.ts';
import type { AdmissionRules, LimitedAccount, SharedCapacity } from './admission-rules.ts';
import { TenantLimiter } from './tenant-limiter.ts';

/** Account of the scans of a tenant: the part of the tenant's account that the limiter for scans reads. */
class ScanAccount implements LimitedAccount {
  readonly #account: TenantAccount;

  constructor(account: TenantAccount) {
    this.#account = account;
  }

  get lru(): number {
    return this.#account.lruOf(ChargeClass.scan);
  }

  get requests(): number {
    return this.#account.requestsOf(ChargeClass.scan);
  }

  lruOf(kind: ChargeClass): number {
    return kind === ChargeClass.scan ? this.lru : 0;
  }

  requestsOf(kind: ChargeClass): number {
    return kind === ChargeClass.scan ? this.requests : 0;
  }
}

/** Name of the tenant limit that the limiters enforce. */
export type ClassLimit = 'scanRuPerSecond' | 'queryRuPerSecond';

interface ClassLimitersOptions {
  limit: ClassLimit;
  clock: Clock;
  /** Rules of the gateway; they may change. */
  rules: AdmissionRules;
  accountOf: (tenant: number) => TenantAccount | undefined;
  /** A request waits at the limiter. */
  wake: (limiter: TenantLimiter) => void;
  /** Called when a tenant got another limiter, or lost its limiter. */
  changed: (tenant: number) => void;
}

export class ClassLimiters {
  readonly #options: ClassLimitersOptions;
  readonly #spare: SharedCapacity;
  readonly #limiters = new Map<number, TenantLimiter>();

  constructor(options: ClassLimitersOptions) {
    this.#options = options;
    // Beyond such a limit there is no borrowing; spending is counted at the limiter for all
    // requests.
    this.#spare = {
      burst: () => false,
      borrow: () => false,
      lends: () => 0,
      used: () => {},
      wake: ({ tenant }) => options.wake(this.#limiters.get(tenant)!),
      wakeQueries: () => {},
    };
  }

  limiterOf(tenant: number): TenantLimiter | undefined {
    return this.#limiters.get(tenant);
  }

  limiters(): IterableIterator<TenantLimiter> {
    return this.#limiters.values();
  }

  /** The tenant's limits may have changed. Returns its limiter if it is one from before. */
  open({ number, name, limits }: TenantDefinition, share = 1): TenantLimiter | undefined {
    const { limit, clock, rules, accountOf, changed } = this.#options;
    const quota = { perSecond: limits[limit] * share, burst: 0, peak: 0 };
    if (quota.perSecond === 0) {
      this.drop(number);
      return undefined;
    }
    const now = clock.monotonic();
    const known = this.#limiters.get(number);
    if (known === undefined) {
      const limiter = new TenantLimiter(number, name, quota, rules, this.#spare, now);
      const account = accountOf(number);
      limiter.follow(account?.tenant === number ? new ScanAccount(account) : undefined);
      this.#limiters.set(number, limiter);
      changed(number);
      return undefined;
    }
    known.name = name;
    if (quota.perSecond !== known.quota.perSecond) known.setQuota(quota, now);
    return known;
  }

  /** Removes a tenant's limiter and admits its queued requests. */
  drop(tenant: number): void {
    const limiter = this.limiterOf(tenant);
    if (limiter === undefined) return;
    this.#limiters.delete(tenant);
    this.#options.changed(tenant);
    limiter.release(this.#options.clock.monotonic());
  }

  endSecond(now: number): void {
    for (const limiter of this.#limiters.values()) limiter.endSecond(now);
  }
}
