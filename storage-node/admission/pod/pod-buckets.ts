// Decides which requests a pod admits: requests within their tenant's guarantee always, other requests while the pod
// has spare capacity (X-Stor, section 5.2). One token is one logical request unit. Costs are debited after the
// requests have run. A guarantee holds even if borrowers have emptied the pod's bucket, whose balance then becomes
// negative.

import { TokenBucket } from '../../../request-units/token-bucket.ts';

interface PodBucketsOptions {
  /** Units a second that the pod can do. */
  podRate: number;
  /** Seconds of its rate that the pod's bucket holds, and a tenant's. */
  podSeconds: number;
  tenantSeconds: number;
}

const podBucketsDefaults = {
  podSeconds: 0.2,
  tenantSeconds: 0.1,
} as const;

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

  setRate(podRate: number, now: number): void {
    this.#pod.reshape(podRate, podRate * this.#options.podSeconds, now);
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

  /** Whether work of the tenant may begin whose cost becomes known later and is then debited by `charge`. */
  mayBegin(tenant: number, now: number): boolean {
    if (this.#pod.balance(now) > 0) return true;
    const own = this.#tenants.get(tenant);
    return own !== undefined && own.balance(now) > 0;
  }

  /** Whether the tenant has units of its own left, beyond the cost of its requests in progress. */
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

  podBalance(now: number): number {
    return this.#pod.balance(now);
  }

  /** The most that its balance comes to. */
  get podCapacity(): number {
    return this.#pod.capacity;
  }
}
