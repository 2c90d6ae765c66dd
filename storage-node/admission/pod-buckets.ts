// Which requests a pod takes on: those within their tenant's guarantee always, others while the pod has capacity to
// spare (X-Stor, section 5.2). One token is one logical request unit.

import { TokenBucket } from '../../request-units/token-bucket.ts';

export interface PodBucketsOptions {
  /** Units a second that the pod can do. */
  podRate: number;
  /** Seconds of its rate that the pod's bucket holds, and a tenant's. */
  podSeconds: number;
  tenantSeconds: number;
  /**
   * `reserved`: what a tenant is guaranteed is taken on even if borrowers have emptied the pod's bucket, which
   * then goes below zero. `strict`: both must have it.
   */
  policy: 'reserved' | 'strict';
}

export const podBucketsDefaults = {
  podSeconds: 0.2,
  tenantSeconds: 0.1,
  policy: 'reserved',
} as const;

/** By what a request was taken on; `no` when it was not. */
export type Admission = 'own' | 'borrowed' | 'no';

export class PodBuckets {
  readonly #options: PodBucketsOptions;
  readonly #pod: TokenBucket;
  readonly #tenants = new Map<number, TokenBucket>();

  constructor(
    options: Pick<PodBucketsOptions, 'podRate'> & Partial<PodBucketsOptions>,
    now: number,
  ) {
    this.#options = { ...podBucketsDefaults, ...options };
    const { podRate, podSeconds } = this.#options;
    this.#pod = new TokenBucket(podRate, podRate * podSeconds, now);
  }

  /** Units a second that the tenant is guaranteed here; 0 for none. */
  setTenant(tenant: number, rate: number, now: number): void {
    const capacity = rate * this.#options.tenantSeconds;
    const bucket = this.#tenants.get(tenant);
    if (bucket === undefined) this.#tenants.set(tenant, new TokenBucket(rate, capacity, now));
    else bucket.reshape(rate, capacity, now);
  }

  forget(tenant: number): void {
    this.#tenants.delete(tenant);
  }

  admit(tenant: number, cost: number, now: number): Admission {
    const own = this.#tenants.get(tenant);
    const pod = this.#pod;
    if (own !== undefined && own.balance(now) >= cost) {
      if (this.#options.policy === 'reserved') pod.debit(cost, now);
      else if (!pod.take(cost, now)) return 'no';
      own.debit(cost, now);
      return 'own';
    }
    return pod.take(cost, now) ? 'borrowed' : 'no';
  }

  /** Whether work of the tenant may begin whose cost is known only afterwards, and then is `charge`d. */
  mayBegin(tenant: number, now: number): boolean {
    if (this.#pod.balance(now) > 0) return true;
    const own = this.#tenants.get(tenant);
    return this.#options.policy === 'reserved' && own !== undefined && own.balance(now) > 0;
  }

  /** Whether the tenant has units of its own left, beyond those that what it has under way will cost. */
  isWithin(tenant: number, underWay: number, now: number): boolean {
    const own = this.#tenants.get(tenant);
    return own !== undefined && own.balance(now) > underWay;
  }

  /** Work has cost so much: the tenant's own units while there are any, borrowed ones then. */
  charge(tenant: number, cost: number, now: number): void {
    const own = this.#tenants.get(tenant);
    if (own !== undefined && own.balance(now) > 0) own.debit(cost, now);
    this.#pod.debit(cost, now);
  }

  /** What a request cost beyond what it was taken on for; less, if it is negative. */
  settle(tenant: number, more: number, now: number): void {
    this.#pod.debit(more, now);
    this.#tenants.get(tenant)?.debit(more, now);
  }

  /** Milliseconds after which the tenant's own bucket could take it on. */
  wait(tenant: number, cost: number, now: number): number {
    return this.#tenants.get(tenant)?.wait(cost, now) ?? Infinity;
  }

  podBalance(now: number): number {
    return this.#pod.balance(now);
  }

  /** The most that its balance comes to. */
  get podCapacity(): number {
    return this.#pod.capacity;
  }
}
