// Work of many tenants that waits for one thing: an order of tenants, and within each the order of priority, then of
// when its transaction began, or the newest epoch first under overload. What waits may be given another priority, or
// another time of beginning, and may be taken out.

import { CompactWorkQueue } from './compact-work-queue.ts';
import type { TenantGate } from './places.ts';
import { HeapOrder } from './tenant-heaps.ts';
import { FairOrder, type TenantOrder } from './tenant-order.ts';
import type { OverloadOrder, Work } from './work-queue.ts';

/** What an object that waits has; what need not wait is never made into one. */
export interface QueuedWork extends Work {
  readonly tenant: number;
  /** While it waits these may be changed, and its ticket is to be moved then. */
  priority: number;
  startedAt: number;
  /** Where it waits, kept by the queue; undefined when it does not. */
  ticket: Placed | undefined;
}

/** A place in line. */
export interface Placed {
  /** The work goes to where it belongs with the priority and start that it has now. */
  move(): void;
  /** The work waits no longer. */
  withdraw(): void;
}

/**
 * `fair`: by virtual finish times. `least-granted`, `most-requested`: by the heaps. `fifo`: tenants are not told
 * apart.
 */
export type QueueOrder = 'fair' | 'least-granted' | 'most-requested' | 'fifo';

export interface TenantQueueOptions {
  order: QueueOrder;
  /** Of `fair`: what a tenant may have saved up, in units of cost at a weight of 1. */
  credit: number;
  /** What the order within a tenant becomes under overload. */
  overload: OverloadOrder;
}

export const tenantQueueDefaults: TenantQueueOptions = {
  order: 'fair',
  credit: 0,
  overload: 'epoch-lifo',
};

/** Keeps what the order of work goes by. Work that is moved gets another one, and the old one is passed over. */
class Ticket<W extends QueuedWork> implements Work, Placed {
  readonly work: W;
  readonly priority: number;
  readonly startedAt: number;
  readonly arrivedAt: number;
  readonly deadline: number;
  readonly #queue: TenantQueue<W>;

  constructor(queue: TenantQueue<W>, work: W, arrivedAt: number) {
    this.#queue = queue;
    this.work = work;
    this.priority = work.priority;
    this.startedAt = work.startedAt;
    this.arrivedAt = arrivedAt;
    this.deadline = work.deadline;
  }

  move(): void {
    this.#queue.move(this.work, this.arrivedAt);
  }

  withdraw(): void {
    this.#queue.withdraw(this.work);
  }
}

interface Line<W extends QueuedWork> {
  readonly tenant: number;
  readonly queue: CompactWorkQueue<Ticket<W>>;
  /** What waits, without tickets that are passed over, and what it costs together. */
  count: number;
  cost: number;
  /** Whether the tenant is in the order of tenants. */
  isInLine: boolean;
}

export class TenantQueue<W extends QueuedWork> {
  readonly #options: TenantQueueOptions;
  readonly #order: TenantOrder;
  readonly #costOf: (work: W) => number;
  readonly #expired: (work: W) => void;
  readonly #lines = new Map<number, Line<W>>();
  readonly #onExpired = (ticket: Ticket<W>): void => this.#expire(ticket);
  /** In `pop`: tenants that may not have their turn. */
  readonly #passedOver: number[] = [];
  #length = 0;

  /** `expired` is told of work whose deadline was past when its turn came. */
  constructor(
    costOf: (work: W) => number,
    expired: (work: W) => void,
    options: Partial<TenantQueueOptions> = {},
  ) {
    this.#options = { ...tenantQueueDefaults, ...options };
    this.#costOf = costOf;
    this.#expired = expired;
    const { order, credit } = this.#options;
    this.#order =
      order === 'fair' || order === 'fifo' ? new FairOrder(credit) : new HeapOrder(order);
    if (order === 'fifo') this.#order.setWeight(0, 1);
  }

  get length(): number {
    return this.#length;
  }

  lengthOf(tenant: number): number {
    return this.#lines.get(this.#lineNumber(tenant))?.count ?? 0;
  }

  setWeight(tenant: number, weight: number): void {
    if (this.#options.order !== 'fifo') this.#order.setWeight(tenant, weight);
  }

  /** Of a tenant of which nothing waits. */
  forget(tenant: number): void {
    if (this.#options.order === 'fifo' || this.#lines.get(tenant)?.isInLine) return;
    this.#lines.delete(tenant);
    this.#order.forget(tenant);
  }

  push(work: W, now: number): void {
    const line = this.#lineOf(work.tenant);
    const cost = this.#costOf(work);
    this.#place(line, work, now);
    this.#count(line, 1, cost);
    this.#order.requested(line.tenant, cost);
    if (!line.isInLine) this.#enter(line);
  }

  /** The next, of a tenant whom the gate lets have its turn. */
  pop(now: number, gate?: TenantGate): W | undefined {
    const found = this.#next(now, this.#options.order === 'fifo' ? undefined : gate);
    if (this.#passedOver.length > 0) {
      for (const tenant of this.#passedOver) {
        this.#order.putBack(tenant);
      }
      this.#passedOver.length = 0;
    }
    return found;
  }

  #next(now: number, gate: TenantGate | undefined): W | undefined {
    for (;;) {
      const tenant = this.#order.dequeue();
      if (tenant < 0) return undefined;
      if (gate !== undefined && !gate.mayTake(tenant, now)) {
        this.#passedOver.push(tenant);
        continue;
      }
      const line = this.#lines.get(tenant)!;
      line.isInLine = false;
      const work = this.#firstOf(line, now);
      const cost = work === undefined ? 0 : this.#costOf(work);
      if (work !== undefined) this.#count(line, -1, -cost);
      this.#order.served(tenant, cost, now);
      if (line.count > 0) this.#enter(line);
      if (work !== undefined) return work;
    }
  }

  #firstOf(line: Line<W>, now: number): W | undefined {
    for (;;) {
      const ticket = line.queue.pop(now, this.#onExpired);
      if (ticket === undefined) return undefined;
      if (ticket.work.ticket !== ticket) continue;
      ticket.work.ticket = undefined;
      return ticket.work;
    }
  }

  #expire(ticket: Ticket<W>): void {
    if (ticket.work.ticket !== ticket) return;
    this.withdraw(ticket.work);
    this.#expired(ticket.work);
  }

  /** See `Placed`. */
  move(work: W, arrivedAt: number): void {
    this.#place(this.#lineOf(work.tenant), work, arrivedAt);
  }

  /** See `Placed`. */
  withdraw(work: W): void {
    const line = this.#lineOf(work.tenant);
    const cost = this.#costOf(work);
    work.ticket = undefined;
    this.#count(line, -1, -cost);
    this.#order.requested(line.tenant, -cost);
  }

  /** Work of the tenant began without having waited. */
  passed(tenant: number, cost: number, now: number): void {
    if (this.#options.order !== 'fifo') this.#order.passed(tenant, cost, now);
  }

  /** To be called every few milliseconds while something waits: whether it is overload. */
  tick(now: number): void {
    for (const line of this.#lines.values()) if (line.count > 0) line.queue.tick(now);
  }

  #place(line: Line<W>, work: W, arrivedAt: number): void {
    const ticket = new Ticket(this, work, arrivedAt);
    work.ticket = ticket;
    line.queue.push(ticket);
  }

  #enter(line: Line<W>): void {
    line.isInLine = true;
    this.#order.enqueue(line.tenant, line.cost / line.count);
  }

  #count(line: Line<W>, pieces: number, cost: number): void {
    this.#length += pieces;
    line.count += pieces;
    // What rounding leaves over does not add up.
    line.cost = line.count === 0 ? 0 : line.cost + cost;
  }

  #lineNumber(tenant: number): number {
    return this.#options.order === 'fifo' ? 0 : tenant;
  }

  #lineOf(tenant: number): Line<W> {
    const number = this.#lineNumber(tenant);
    let line = this.#lines.get(number);
    if (line === undefined) {
      const { overload } = this.#options;
      const queue = new CompactWorkQueue<Ticket<W>>({ overload });
      line = { tenant: number, queue, count: 0, cost: 0, isInLine: false };
      this.#lines.set(number, line);
    }
    return line;
  }
}
