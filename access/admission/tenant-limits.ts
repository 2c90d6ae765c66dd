// The rate limiters of one tenant, as the admission stages of all protocols use them. There is one object a tenant and
// gateway; `GatewayAdmission` puts other limiters into it when the tenant's limits change, so that connections can keep
// it.

import type { QuotaMode } from '../../contracts/table-properties.ts';
import type { TenantLimiter } from './tenant-limiter.ts';

export class TenantLimits {
  /** Name of the tenant; '' until its definition is known. */
  name = '';
  /** Limits all requests; undefined for no limit. */
  limiter: TenantLimiter | undefined;
  /** Limits expensive operations, scans over RESP and queries over HTTP, before `limiter` does; undefined for no limit. */
  classLimiter: TenantLimiter | undefined;
  /** Whether there is a limiter. */
  isLimited = false;

  set(limiter: TenantLimiter | undefined, classLimiter: TenantLimiter | undefined): void {
    this.limiter = limiter;
    this.classLimiter = classLimiter;
    this.isLimited = limiter !== undefined || classLimiter !== undefined;
  }

  /** Whether requests pass without a check of each one: see `TenantLimiter`. */
  get hasFastPath(): boolean {
    if (!this.isLimited) return true;
    return this.classLimiter === undefined && this.limiter?.hasFastPath === true;
  }

  /** Admits a request while a batch of passes lasts; else `admit` decides. */
  pass(now: number): boolean {
    const { limiter } = this;
    if (this.classLimiter !== undefined || limiter === undefined) return false;
    return limiter.pass() || limiter.passAgain(now);
  }

  /**
   * Undefined when the request is admitted, or the limiter at which it has to wait; `waitMs` is how long it could.
   * `admittedBy` is the one at which it has waited and that has admitted it. Times in monotonic milliseconds.
   */
  admit(
    now: number,
    waitMs: number,
    mode: QuotaMode,
    isExpensive: boolean,
    admittedBy?: TenantLimiter,
  ): TenantLimiter | undefined {
    const { classLimiter, limiter } = this;
    if (admittedBy === undefined && isExpensive && classLimiter?.admit(now, waitMs) === false) {
      return classLimiter;
    }
    if (limiter === undefined || limiter === admittedBy) return undefined;
    return limiter.admit(now, waitMs, mode) ? undefined : limiter;
  }

  /** Called when admitted requests have been charged to the meter. */
  settle(now: number): void {
    this.limiter?.settle(now);
    this.classLimiter?.settle(now);
  }
}
