// The buckets of a running pod: what its tenants are charged is taken from them every few milliseconds, as the meter
// knows it.

import type { TenantAccount } from '../../../request-units/meter.ts';
import { ChargedUnits } from './charged-units.ts';
import { PodBuckets } from './pod-buckets.ts';
import type { Capacity } from '../cpu/cpu-scheduler.ts';

/** While more than this share of what the pod's bucket holds is there, it is looked at less often. */
const ampleShare = 0.5;
const ampleEveryMs = 25;

interface PodCapacityOptions {
  /** Units a second that the pod can do. */
  podRate: number;
  /** Those that have spent anything lately. */
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
    return now - this.#takenAt >= ampleEveryMs || this.balance(now) < ampleShare * podCapacity;
  }

  /** To be called every few milliseconds, or when it `isDue`: takes what was charged since, and returns how much that is. */
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
