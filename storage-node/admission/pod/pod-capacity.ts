// The buckets of a running pod: charges of its tenants are debited every few milliseconds, from the
// meter.

import type { TenantAccount } from '../../../request-units/meter.ts';
import { ChargedUnits } from './charged-units.ts';
import { PodBuckets } from './pod-buckets.ts';
import type { Capacity } from '../cpu/cpu-scheduler.ts';

/** Above this fill level of the pod's bucket, charges are collected less often. */
const uncongestedShare = 0.5;
const uncongestedEveryMs = 25;

interface PodCapacityOptions {
  /** Units a second that the pod can do. */
  podRate: number;
  /** Accounts with recent spending. */
  accounts: () => Iterable<TenantAccount>;
  now: number;
}

export class PodCapacity implements Capacity {
  readonly #buckets: PodBuckets;
  readonly #charged: ChargedUnits;
  #takenAt: number;

  constructor({ podRate, accounts, now }: PodCapacityOptions) {
    this.#buckets = new PodBuckets({ podRate }, now);
    this.#charged = new ChargedUnits(accounts);
    this.#takenAt = now;
  }

  /** Units a second that the tenant is guaranteed; 0 for none. */
  setTenant(tenant: number, rate: number, now: number): void {
    this.#buckets.setTenant(tenant, rate, now);
  }

  setRate(podRate: number, now: number): void {
    this.#buckets.setRate(podRate, now);
  }

  forget(tenant: number): void {
    this.#buckets.forget(tenant);
    this.#charged.forget(tenant);
  }

  /** Whether it is time to `take`: charging all that was done has its price, too. */
  isDue(now: number): boolean {
    const { podCapacity } = this.#buckets;
    return (
      now - this.#takenAt >= uncongestedEveryMs ||
      this.balance(now) < uncongestedShare * podCapacity
    );
  }

  /**
   * Called every few milliseconds, or when it `isDue`: debits the charges since the last call, and
   * returns their sum.
   */
  take(now: number): number {
    this.#takenAt = now;
    return this.#charged.take((tenant, units) => this.#buckets.charge(tenant, units, now));
  }

  /** As of `PodBuckets`. */
  isWithin(tenant: number, underWay: number, now: number): boolean {
    return this.#buckets.isWithin(tenant, underWay, now);
  }

  mayBegin(tenant: number, now: number): boolean {
    return this.#buckets.mayBegin(tenant, now);
  }

  /** Below 0 when the pod has done more than it can. */
  balance(now: number): number {
    return this.#buckets.podBalance(now);
  }
}
