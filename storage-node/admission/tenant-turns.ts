// Turns with a thread that wait, of many tenants: a tenant has one for each batch that it has in line. In which order
// they come up is selectable: by virtual finish times (ABase, section 4.3: `FairQueue`), by one of the heaps of
// CockroachDB's admission control, or as they came. Which of its batches a tenant's turn is for is another matter.

import { FairQueue } from './fair-queue.ts';
import { Fifo } from './fifo.ts';
import { HeapOrder, type HeapRule } from './tenant-heaps.ts';

/**
 * `virtual-finish-time`: by weight, whatever each asks for. `least-granted`: whoever was given least lately, over its
 * weight. `most-requested`: whoever has most in line. `arrival`: tenants are not told apart.
 */
export type TurnRule = 'virtual-finish-time' | HeapRule | 'arrival';

/** `now` is monotonic milliseconds, costs are milliseconds of the thread. */
export interface TenantTurns<T> {
  readonly length: number;
  /** How many of a tenant's wait. */
  queuedOf(tenant: number): number;
  /** Above 0; to be called before the tenant's first `push`. */
  setWeight(tenant: number, weight: number): void;
  /** Only of a tenant of which nothing waits. */
  forget(tenant: number): void;
  push(tenant: number, cost: number, turn: T, now: number): void;
  /** A turn has cost so much more than it was queued for; less, if it is negative. Unknown tenants are passed over. */
  settle(tenant: number, more: number, now: number): void;
  /** What `pop` would take out. */
  readonly next: T | undefined;
  pop(now: number): T | undefined;
}

export function tenantTurns<T>(rule: TurnRule): TenantTurns<T> {
  switch (rule) {
    case 'virtual-finish-time':
      // Nothing is saved up for a tenant while it is away: a flood is, time and again, while it waits for its quota.
      return new FairQueue();
    case 'arrival':
      return new ArrivalTurns();
    default:
      return new HeapTurns(rule);
  }
}

interface Queued<T> {
  cost: number;
  turn: T;
}

/**
 * By the letter, who asks for little would never have a turn beside a flood that asks again at once. So a tenant in
 * line gains as much as it would by asking for a millisecond more each millisecond: it waits no longer than it would
 * for all that others have in line.
 */
const gainPerMs = 1;

class HeapTurns<T> implements TenantTurns<T> {
  readonly #order: HeapOrder;
  /** Of each tenant that is known. */
  readonly #tenants = new Map<number, Fifo<Queued<T>>>();
  #length = 0;

  constructor(rule: HeapRule) {
    this.#order = new HeapOrder(rule, { gainPerMs });
  }

  get length(): number {
    return this.#length;
  }

  queuedOf(tenant: number): number {
    return this.#tenants.get(tenant)?.length ?? 0;
  }

  setWeight(tenant: number, weight: number): void {
    this.#order.setWeight(tenant, weight);
    if (!this.#tenants.has(tenant)) this.#tenants.set(tenant, new Fifo());
  }

  forget(tenant: number): void {
    if (this.queuedOf(tenant) > 0) return;
    this.#tenants.delete(tenant);
    this.#order.forget(tenant);
  }

  push(tenant: number, cost: number, turn: T, now: number): void {
    const queued = this.#tenants.get(tenant);
    if (queued === undefined) throw new RangeError(`tenant ${tenant} has no weight`);
    queued.push({ cost, turn });
    this.#length++;
    this.#order.requested(tenant, cost);
    if (queued.length === 1) this.#order.enqueue(tenant, cost, now);
  }

  settle(tenant: number, more: number, now: number): void {
    if (this.#tenants.has(tenant)) this.#order.passed(tenant, more, now);
  }

  get next(): T | undefined {
    if (this.#length === 0) return undefined;
    return this.#tenants.get(this.#order.next)!.at(0)!.turn;
  }

  pop(now: number): T | undefined {
    if (this.#length === 0) return undefined;
    const tenant = this.#order.dequeue();
    const queued = this.#tenants.get(tenant)!;
    const { cost, turn } = queued.shift();
    this.#length--;
    this.#order.served(tenant, cost, now);
    if (queued.length > 0) this.#order.enqueue(tenant, queued.at(0)!.cost, now);
    return turn;
  }
}

class ArrivalTurns<T> implements TenantTurns<T> {
  readonly #turns = new Fifo<{ tenant: number; turn: T }>();
  readonly #counts = new Map<number, number>();

  get length(): number {
    return this.#turns.length;
  }

  queuedOf(tenant: number): number {
    return this.#counts.get(tenant) ?? 0;
  }

  setWeight(): void {
    // All are alike.
  }

  forget(tenant: number): void {
    if (this.queuedOf(tenant) === 0) this.#counts.delete(tenant);
  }

  push(tenant: number, _cost: number, turn: T): void {
    this.#counts.set(tenant, this.queuedOf(tenant) + 1);
    this.#turns.push({ tenant, turn });
  }

  settle(): void {
    // What a turn has cost makes no difference to the next.
  }

  get next(): T | undefined {
    return this.#turns.at(0)?.turn;
  }

  pop(): T | undefined {
    if (this.#turns.length === 0) return undefined;
    const { tenant, turn } = this.#turns.shift();
    this.#counts.set(tenant, this.queuedOf(tenant) - 1);
    return turn;
  }
}
