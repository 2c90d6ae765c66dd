// A line of work before a pod: of each tenant in the order of arrival, of tenants in the order of virtual finish times
// (ABase, section 4.3), so that whoever sends most does not make up the line by itself. With one tenant it is first
// in, first out.

import { Fifo } from './fifo.ts';
import { FairOrder } from './tenant-order.ts';

export interface InLine<W> {
  readonly work: W;
  readonly tenant: number;
  readonly cost: number;
  readonly arrivedAt: number;
}

/** Of one tenant. */
interface Own<W> {
  items: Fifo<InLine<W>>;
  /** The order knows of it. */
  isOrdered: boolean;
}

export class TenantLine<W> {
  readonly #tenants = new Map<number, Own<W>>();
  readonly #order = new FairOrder(0);
  readonly #weightOf: (tenant: number) => number;
  /** Whose turn it is, once that is known: it stays so until it was taken. */
  #next: number | undefined;
  #length = 0;

  constructor(weightOf: (tenant: number) => number) {
    this.#weightOf = weightOf;
  }

  get length(): number {
    return this.#length;
  }

  /** Tenants of which something waits. */
  tenants(): number[] {
    return [...this.#tenants].filter(([, own]) => isWaiting(own)).map(([tenant]) => tenant);
  }

  /** Of a tenant of which nothing waits. */
  forget(tenant: number): void {
    const own = this.#tenants.get(tenant);
    if (own === undefined || own.isOrdered || isWaiting(own)) return;
    this.#tenants.delete(tenant);
    this.#order.forget(tenant);
  }

  push(item: InLine<W>): void {
    const { tenant } = item;
    let own = this.#tenants.get(tenant);
    if (own === undefined) {
      this.#tenants.set(tenant, (own = { items: new Fifo(), isOrdered: false }));
    }
    own.items.push(item);
    this.#length++;
    this.#lineUp(tenant, own);
  }

  /** The next, or the next of a tenant. */
  peek(tenant = this.#turn()): InLine<W> | undefined {
    const own = tenant === undefined ? undefined : this.#tenants.get(tenant);
    return own?.items.at(0);
  }

  /** Takes out what `peek` gives. */
  shift(): void {
    const tenant = this.#turn();
    if (tenant === undefined) return;
    const own = this.#tenants.get(tenant)!;
    this.#order.served(tenant, this.#takeHead(own).cost);
    this.#next = undefined;
    own.isOrdered = false;
    if (isWaiting(own)) this.#lineUp(tenant, own);
  }

  /** Takes out the next of a tenant, out of its turn. */
  shiftOf(tenant: number): void {
    const own = this.#tenants.get(tenant);
    if (own !== undefined && isWaiting(own)) this.#takeHead(own);
  }

  /** Whether it was still in line. */
  leave(tenant: number, work: W): boolean {
    const own = this.#tenants.get(tenant);
    const at = own?.items.find((item) => item.work === work) ?? -1;
    if (at < 0) return false;
    own!.items.take(at);
    this.#length--;
    return true;
  }

  /** Takes out those that came before. */
  expire(before: number, expired: (work: W) => void): void {
    for (const own of this.#tenants.values()) {
      for (let head = own.items.at(0); head !== undefined; head = own.items.at(0)) {
        if (head.arrivedAt >= before) break;
        this.#takeHead(own);
        expired(head.work);
      }
    }
  }

  #turn(): number | undefined {
    while (this.#length > 0) {
      this.#next ??= this.#order.dequeue();
      const own = this.#tenants.get(this.#next)!;
      if (isWaiting(own)) return this.#next;
      // All that it had in line has left.
      this.#order.served(this.#next, 0);
      own.isOrdered = false;
      this.#next = undefined;
    }
    return undefined;
  }

  #lineUp(tenant: number, own: Own<W>): void {
    if (own.isOrdered) return;
    own.isOrdered = true;
    this.#order.setWeight(tenant, this.#weightOf(tenant));
    this.#order.enqueue(tenant, own.items.at(0)!.cost);
  }

  #takeHead({ items }: Own<W>): InLine<W> {
    this.#length--;
    return items.shift();
  }
}

function isWaiting<W>({ items }: Own<W>): boolean {
  return items.length > 0;
}
