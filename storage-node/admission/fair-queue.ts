// Requests of many tenants in the order of their virtual finish times (ABase, section 4.3): each
// tenant is served by its quota's share of all quotas, regardless of the load of others.

import { Heap } from '../../request-units/heap.ts';

interface Tenant {
  weight: number;
  /** Virtual finish time of its last request. */
  last: number;
  queued: number;
}

interface Entry<T> {
  finish: number;
  /** Order of arrival, for equal times. */
  order: number;
  tenant: number;
  item: T;
}

export class FairQueue<T> {
  readonly #tenants = new Map<number, Tenant>();
  readonly #waiting = new Heap<Entry<T>>(
    (a, b) => a.finish < b.finish || (a.finish === b.finish && a.order < b.order),
  );
  #virtual = 0;
  #order = 0;

  get length(): number {
    return this.#waiting.size;
  }

  /** How many of a tenant's wait. */
  queuedOf(tenant: number): number {
    return this.#tenants.get(tenant)?.queued ?? 0;
  }

  /** The tenant's quota over the sum of all quotas here; above 0. */
  setWeight(tenant: number, weight: number): void {
    if (!(weight > 0)) throw new RangeError(`a weight of ${weight}`);
    const known = this.#tenants.get(tenant);
    if (known === undefined) {
      this.#tenants.set(tenant, { weight, last: this.#virtual, queued: 0 });
    } else known.weight = weight;
  }

  /** Only of a tenant of which nothing waits. */
  forget(tenant: number): void {
    if (this.queuedOf(tenant) === 0) this.#tenants.delete(tenant);
  }

  push(tenant: number, cost: number, item: T): void {
    const of = this.#tenants.get(tenant);
    if (of === undefined) throw new RangeError(`tenant ${tenant} has no weight`);
    // An idle tenant saves up no credit.
    if (of.queued === 0) of.last = Math.max(of.last, this.#virtual);
    of.last += cost / of.weight;
    of.queued++;
    this.#waiting.push({ finish: of.last, order: this.#order++, tenant, item });
  }

  /** Corrects a served request's cost by the difference to its estimate, which may be negative. */
  settle(tenant: number, more: number): void {
    const of = this.#tenants.get(tenant);
    if (of !== undefined) of.last += more / of.weight;
  }

  /** The entry that `pop` would remove. */
  get next(): T | undefined {
    return this.#waiting.peek()?.item;
  }

  /** The next to be served. */
  pop(): T | undefined {
    const first = this.#waiting.pop();
    if (first === undefined) return undefined;
    this.#tenants.get(first.tenant)!.queued--;
    this.#virtual = Math.max(this.#virtual, first.finish);
    return first.item;
  }
}
