// Tenants in a heap by what they were given lately, over their weight: the least first. By the letter it is the
// tenant with most waiting that comes first, which is then the one that floods the pod: to be had, but not the default
// (CockroachDB's admission control, the upper of its two heaps).

import type { TenantOrder } from './tenant-order.ts';

export type HeapRule = 'least-granted' | 'most-requested';

export interface HeapOrderOptions {
  /** Of what was given, what still counts a second later. */
  decay: number;
  /** Of `most-requested`: what a tenant in line gains a millisecond, as if it asked for so much more. */
  gainPerMs: number;
}

export const heapOrderDefaults: HeapOrderOptions = { decay: 0.5, gainPerMs: 0 };

interface Tenant {
  readonly tenant: number;
  weight: number;
  granted: number;
  requested: number;
  /** Lowest first. */
  rank: number;
  /** Of coming into line, for equal ranks, and when that was. */
  order: number;
  since: number;
  /** Where in the heap; -1 while not in line. */
  at: number;
}

export class HeapOrder implements TenantOrder {
  readonly #rule: HeapRule;
  readonly #decay: number;
  readonly #gainPerMs: number;
  readonly #tenants = new Map<number, Tenant>();
  readonly #heap: Tenant[] = [];
  #order = 0;
  #second = -1;

  constructor(rule: HeapRule, options: Partial<HeapOrderOptions> = {}) {
    this.#rule = rule;
    const { decay, gainPerMs } = { ...heapOrderDefaults, ...options };
    this.#decay = decay;
    this.#gainPerMs = gainPerMs;
  }

  setWeight(tenant: number, weight: number): void {
    if (!(weight > 0)) throw new RangeError(`a weight of ${weight}`);
    const known = this.#tenants.get(tenant);
    if (known === undefined) {
      const fresh = {
        tenant,
        weight,
        granted: 0,
        requested: 0,
        rank: 0,
        order: 0,
        since: 0,
        at: -1,
      };
      this.#tenants.set(tenant, fresh);
      return;
    }
    known.weight = weight;
    this.#rank(known);
  }

  forget(tenant: number): void {
    if (this.#tenants.get(tenant)?.at === -1) this.#tenants.delete(tenant);
  }

  /** What waits costs was told by `requested`; `now` counts where there is a gain. */
  enqueue(tenant: number, _cost = 0, now = 0): void {
    const one = this.#known(tenant);
    one.order = this.#order++;
    one.since = now;
    if (this.#gainPerMs > 0) this.#rank(one);
    one.at = this.#heap.length;
    this.#heap.push(one);
    this.#rise(one);
  }

  /** Whom `dequeue` would take out; -1 when nobody is in line. */
  get next(): number {
    return this.#heap[0]?.tenant ?? -1;
  }

  dequeue(): number {
    const first = this.#heap[0];
    if (first === undefined) return -1;
    first.at = -1;
    const last = this.#heap.pop()!;
    if (last !== first) {
      last.at = 0;
      this.#heap[0] = last;
      this.#sink(last);
    }
    return first.tenant;
  }

  putBack(tenant: number): void {
    this.enqueue(tenant);
  }

  requested(tenant: number, cost: number): void {
    const one = this.#known(tenant);
    one.requested += cost;
    if (this.#rule === 'most-requested') this.#rank(one);
  }

  served(tenant: number, cost: number, now: number): void {
    this.passed(tenant, cost, now);
    // Of what it asked for nothing is due any more.
    this.requested(tenant, -cost);
  }

  passed(tenant: number, cost: number, now: number): void {
    if (this.#rule !== 'least-granted') return;
    const second = Math.floor(now / 1000);
    if (second > this.#second) this.#fade(second);
    const one = this.#known(tenant);
    one.granted += cost;
    this.#rank(one);
  }

  #known(tenant: number): Tenant {
    const known = this.#tenants.get(tenant);
    if (known === undefined) throw new RangeError(`tenant ${tenant} has no weight`);
    return known;
  }

  /** All fade alike, so that their order stays as it is. */
  #fade(second: number): void {
    const factor = this.#second < 0 ? 1 : this.#decay ** (second - this.#second);
    this.#second = second;
    if (factor === 1) return;
    for (const one of this.#tenants.values()) {
      one.granted *= factor;
      if (this.#rule === 'least-granted') one.rank = one.granted / one.weight;
    }
  }

  #rank(one: Tenant): void {
    one.rank =
      this.#rule === 'least-granted'
        ? one.granted / one.weight
        : one.since * this.#gainPerMs - one.requested;
    if (one.at < 0) return;
    this.#rise(one);
    this.#sink(one);
  }

  #isBefore(a: Tenant, b: Tenant): boolean {
    return a.rank < b.rank || (a.rank === b.rank && a.order < b.order);
  }

  #rise(one: Tenant): void {
    const heap = this.#heap;
    let i = one.at;
    while (i > 0) {
      const parent = heap[(i - 1) >> 1]!;
      if (!this.#isBefore(one, parent)) break;
      heap[i] = parent;
      const up = (i - 1) >> 1;
      parent.at = i;
      i = up;
    }
    heap[i] = one;
    one.at = i;
  }

  #sink(one: Tenant): void {
    const heap = this.#heap;
    let i = one.at;
    for (;;) {
      let child = i * 2 + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && this.#isBefore(heap[child + 1]!, heap[child]!)) child++;
      const below = heap[child]!;
      if (!this.#isBefore(below, one)) break;
      heap[i] = below;
      below.at = i;
      i = child;
    }
    heap[i] = one;
    one.at = i;
  }
}
