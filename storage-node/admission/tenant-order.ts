// Whose turn it is, among tenants of whom something waits. What waits, and in which order within a tenant, is kept
// elsewhere: here a tenant is a number that is in line once, or not at all.

import { FairQueue } from './fair-queue.ts';

export interface TenantOrder {
  /** The tenant's quota, or anything in proportion to it; above 0. To be called first. */
  setWeight(tenant: number, weight: number): void;
  /** Of a tenant that is not in line. */
  forget(tenant: number): void;
  /** The tenant is in line from now on; its next piece of work will cost about `cost`. */
  enqueue(tenant: number, cost: number): void;
  /** Takes out whose turn it is; -1 when nobody is in line. */
  dequeue(): number;
  /** A tenant whose turn it would have been, but not now. */
  putBack(tenant: number): void;
  /** So much more waits of the tenant; less if it is negative. */
  requested(tenant: number, cost: number): void;
  /** The tenant, whose turn it was, was given so much; nothing, if what waited was worth nothing any more. */
  served(tenant: number, cost: number, now: number): void;
  /** The tenant was given so much without having been in line. */
  passed(tenant: number, cost: number, now: number): void;
}

/**
 * By virtual finish times (ABase, section 4.3): those of the first piece of work of each tenant. They are charged in
 * advance, by what work of the tenant costs on average; what it cost in the end is made up for the next time.
 */
export class FairOrder implements TenantOrder {
  readonly #queue: FairQueue<number>;
  /** What each has been given beyond what it was charged. */
  readonly #owed = new Map<number, number>();

  /** `credit` as in `FairQueue`, in units of cost at a weight of 1. */
  constructor(credit: number) {
    this.#queue = new FairQueue({ credit });
  }

  setWeight(tenant: number, weight: number): void {
    this.#queue.setWeight(tenant, weight);
  }

  forget(tenant: number): void {
    this.#queue.forget(tenant);
    this.#owed.delete(tenant);
  }

  enqueue(tenant: number, cost: number): void {
    const owed = this.#owed.get(tenant) ?? 0;
    const charge = Math.max(0, cost + owed);
    this.#owed.set(tenant, owed - charge);
    this.#queue.push(tenant, charge, tenant);
  }

  dequeue(): number {
    return this.#queue.pop() ?? -1;
  }

  putBack(tenant: number): void {
    // It has been charged already.
    this.#queue.push(tenant, 0, tenant);
  }

  requested(): void {
    // It is what is given that counts.
  }

  served(tenant: number, cost: number): void {
    this.#owed.set(tenant, this.#owed.get(tenant)! + cost);
  }

  passed(): void {
    // Who does not wait has taken nothing from anybody.
  }
}
