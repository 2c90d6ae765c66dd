// A queue of requests: in order of arrival within a tenant, and in order of virtual finish times between tenants (ABase,
// section 4.3), by their weights. With one tenant it is first in, first out.

import { FairQueue } from './fair-queue.ts';
import { Fifo } from './fifo.ts';

interface Queued<W> {
  readonly work: W;
  readonly tenant: number;
  readonly cost: number;
  readonly arrivedAt: number;
}

/** Requests of one tenant. */
interface Own<W> {
  items: Fifo<Queued<W>>;
  /** Whether the tenant is in the order of tenants. */
  isOrdered: boolean;
  /** Served cost beyond the charge at the time when the tenant was ordered. */
  owed: number;
}

export class TenantQueue<W> {
  readonly #tenants = new Map<number, Own<W>>();
  /** Each tenant with requests, once. */
  readonly #order = new FairQueue<number>();
  readonly #weightOf: (tenant: number) => number;
  /** The tenant to be served next, once it is known; it stays so until it is served. */
  #next: number | undefined;
  #length = 0;

  constructor(weightOf: (tenant: number) => number) {
    this.#weightOf = weightOf;
  }

  get length(): number {
    return this.#length;
  }

  lengthOf(tenant: number): number {
    return this.#tenants.get(tenant)?.items.length ?? 0;
  }

  /** Tenants with requests. */
  tenants(): number[] {
    return [...this.#tenants].filter(([, own]) => isWaiting(own)).map(([tenant]) => tenant);
  }

  /** Does nothing while the tenant has requests. */
  forget(tenant: number): void {
    const own = this.#tenants.get(tenant);
    if (own === undefined || own.isOrdered || isWaiting(own)) return;
    this.#tenants.delete(tenant);
    this.#order.forget(tenant);
  }

  push(item: Queued<W>): void {
    const { tenant } = item;
    let own = this.#tenants.get(tenant);
    if (own === undefined) {
      this.#tenants.set(tenant, (own = { items: new Fifo(), isOrdered: false, owed: 0 }));
    }
    own.items.push(item);
    this.#length++;
    this.#enqueue(tenant, own);
  }

  /** The next request, or the next one of a tenant. */
  peek(tenant = this.#first()): Queued<W> | undefined {
    return tenant === undefined ? undefined : this.#tenants.get(tenant)?.items.at(0);
  }

  /** Removes the request that `peek` returns. */
  shift(): void {
    const tenant = this.#first();
    if (tenant === undefined) return;
    const own = this.#tenants.get(tenant)!;
    own.owed += this.#takeHead(own).cost;
    this.#next = undefined;
    own.isOrdered = false;
    if (isWaiting(own)) this.#enqueue(tenant, own);
  }

  /** Removes and returns the next request of those tenants that may be served. */
  take(mayServe: (tenant: number) => boolean): Queued<W> | undefined {
    const passedOver: number[] = [];
    let taken: Queued<W> | undefined;
    for (let tenant = this.#first(); tenant !== undefined; tenant = this.#first()) {
      if (mayServe(tenant)) {
        taken = this.peek(tenant);
        this.shift();
        break;
      }
      passedOver.push(tenant);
      this.#next = undefined;
    }
    // They have been charged already.
    for (const tenant of passedOver) this.#order.push(tenant, 0, tenant);
    return taken;
  }

  /** Removes the next request of a tenant, regardless of the order of tenants. */
  shiftOf(tenant: number): void {
    const own = this.#tenants.get(tenant);
    if (own !== undefined && isWaiting(own)) this.#takeHead(own);
  }

  /** Removes a request. False if it is not in the queue. */
  leave(tenant: number, work: W): boolean {
    const own = this.#tenants.get(tenant);
    const at = own?.items.find((item) => item.work === work) ?? -1;
    if (at < 0) return false;
    own!.items.take(at);
    this.#length--;
    return true;
  }

  /** Removes requests that arrived earlier. */
  expire(before: number, expired: (work: W) => void): void {
    for (const own of this.#tenants.values()) {
      for (let head = own.items.at(0); head !== undefined; head = own.items.at(0)) {
        if (head.arrivedAt >= before) break;
        this.#takeHead(own);
        expired(head.work);
      }
    }
  }

  #first(): number | undefined {
    while (this.#length > 0) {
      this.#next ??= this.#order.pop();
      if (this.#next === undefined) return undefined;
      const own = this.#tenants.get(this.#next)!;
      if (isWaiting(own)) return this.#next;
      // All its requests have left the queue.
      own.isOrdered = false;
      this.#next = undefined;
    }
    return undefined;
  }

  /** Charges the tenant its first request, and the difference between charge and cost of the one before. */
  #enqueue(tenant: number, own: Own<W>): void {
    if (own.isOrdered) return;
    own.isOrdered = true;
    const charge = Math.max(0, own.items.at(0)!.cost + own.owed);
    own.owed -= charge;
    this.#order.setWeight(tenant, this.#weightOf(tenant));
    this.#order.push(tenant, charge, tenant);
  }

  #takeHead({ items }: Own<W>): Queued<W> {
    this.#length--;
    return items.shift();
  }
}

function isWaiting<W>({ items }: Own<W>): boolean {
  return items.length > 0;
}
