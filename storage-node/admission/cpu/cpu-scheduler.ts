// Schedules the thread of a plane between tenants, in time slices, by their weights.
//
// An event loop serves sockets in its own order: a tenant with a hundred busy connections gets a hundred times the
// thread time of a tenant with one. When the batches of one tick have taken longer than a slice and belong to more
// than one tenant, further batches are queued by virtual finish time (ABase, section 4.3; `fair-queue.ts`). The cost
// of a batch is its duration in milliseconds. The loop reads new requests between two slices.

import {
  backgroundWork,
  contendedSliceMs,
  type PodRequest,
  TimeSlice,
} from '../../../contracts/pod-admission.ts';
import type { Clock } from '../../../universal-row/environment.ts';
import { FairQueue } from '../fair-queue.ts';
import { ThrottledBatches } from './throttled-batches.ts';
import { TickShares } from './tick-shares.ts';
import { BatchQueue } from './batch-queue.ts';

export interface CpuSchedulerOptions {
  clock: Clock;
  /**
   * Milliseconds of a time slice. 0 for one batch a slice: for work that continues after its `resume` has returned.
   */
  sliceMs?: number;
  /** Milliseconds without a batch of another tenant after which the thread is not contended. */
  aloneMs?: number;
  /** Called after each slice, to send the answers. */
  afterSlice?: (() => void) | undefined;
}

/** A pod's capacity. */
export interface Capacity {
  /** Whether some is left for a tenant. */
  mayBegin(tenant: number, now: number): boolean;
}

/** A tenant's place in the fair queue, with a queued batch. Which batch of the tenant is served at it is decided then. */
interface Waiting {
  tenant: number;
  /** Milliseconds that were charged in advance. */
  cost: number;
  request: PodRequest;
  since: number;
}

/** Share of the newest batch in the mean cost of a tenant's batches. */
const newest = 0.2;
const firstCostMs = 0.1;
/** A batch expected to take more of a slice than this is expensive. */
const expensiveShare = 0.5;
/** Slices that a tick may take while no tenant exceeds its share. */
const slicesPerTick = 5;
/**
 * Long requests that continue in one slice: each works for up to its own slice after `resume` has returned, and together
 * they would keep a round of the event loop.
 */
const longPerSlice = 4;
const deferredMs = 2;
const releasedAtOnce = 16;
/** Weight of background work. */
const backgroundWeight = 0.05;

export class CpuScheduler {
  /** Without it every batch runs at once. */
  enabled = true;
  /** Called after each slice, to send the answers. */
  afterSlice: (() => void) | undefined;
  /** Batches that were queued, and milliseconds that they were. */
  queued = 0;
  queuedMs = 0;
  readonly #clock: Clock;
  readonly #sliceMs: number;
  readonly #aloneMs: number;
  /** An idle tenant saves up no credit: a flooding tenant idles whenever it waits for its quota. */
  readonly #queue = new FairQueue<Waiting>();
  /** The batches of each tenant. */
  readonly #batches = new Map<number, BatchQueue<Waiting>>();
  /** Mean milliseconds of a batch of each tenant. */
  readonly #costs = new Map<number, number>();
  readonly #weights = new Map<number, number>();
  readonly #shares = new TickShares();
  #beganAt = -Infinity;
  #lastTenant = 0;
  /** When another tenant than before last had a batch. */
  #mixedAt = -Infinity;
  #scheduled = false;
  // Seldom used fields come last: the first ones are the fastest to read.
  #capacity: Capacity | undefined;
  readonly #throttled = new ThrottledBatches<Waiting>({
    everyMs: deferredMs,
    atOnce: releasedAtOnce,
    mayBegin: (tenant) => this.#capacity?.mayBegin(tenant, this.#clock.monotonic()) !== false,
    release: (turn) => this.#putBack(turn),
  });

  constructor({
    clock,
    sliceMs = contendedSliceMs,
    aloneMs = 100,
    afterSlice,
  }: CpuSchedulerOptions) {
    this.#clock = clock;
    this.#sliceMs = sliceMs;
    this.#aloneMs = aloneMs;
    this.afterSlice = afterSlice;
  }

  /** Queued batches. */
  get length(): number {
    return this.#queue.length + this.#throttled.length;
  }

  /** Undefined for no limit. */
  setCapacity(capacity: Capacity | undefined): void {
    this.#capacity = capacity;
    if (this.#throttled.length > 0)
      this.#throttled.look(capacity === undefined ? Infinity : undefined);
  }

  /** 1 unless set. */
  setWeight(tenant: number, weight: number): void {
    this.#weights.set(tenant, weight);
    this.#shares.setWeight(tenant, weight);
    if (this.#costs.has(tenant)) this.#queue.setWeight(tenant, weight);
  }

  forget(tenant: number): void {
    this.#weights.delete(tenant);
    this.#shares.forget(tenant);
    if (this.#throttled.has(tenant)) return;
    if (this.#queue.queuedOf(tenant) > 0) return;
    this.#costs.delete(tenant);
    this.#batches.delete(tenant);
    this.#queue.forget(tenant);
  }

  beginTick(now: number): void {
    this.#beganAt = now;
    this.#shares.begin(now);
  }

  mayRun(tenant: number, now: number): boolean {
    if (tenant <= backgroundWork) return this.#queue.length === 0 || !this.enabled;
    if (this.#capacity !== undefined && !this.#capacity.mayBegin(tenant, now)) return false;
    return this.#isFree(tenant, now);
  }

  /** A request of the tenant runs that was admitted elsewhere. */
  began(tenant: number, now: number): void {
    this.note(tenant, now);
    this.#shares.asked(tenant, now);
  }

  /** Whether several tenants had requests lately. */
  hasSeveralTenants(now: number): boolean {
    return now - this.#mixedAt <= this.#aloneMs;
  }

  /** A request of the tenant has come. */
  note(tenant: number, now: number): void {
    if (tenant === this.#lastTenant) return;
    this.#lastTenant = tenant;
    this.#mixedAt = now;
  }

  #isFree(tenant: number, now: number): boolean {
    this.note(tenant, now);
    if (!this.enabled) return true;
    if (this.#queue.length === 0 && now - this.#mixedAt > this.#aloneMs) return true;
    const isWithin = this.#shares.asked(tenant, now);
    if (this.#queue.length === 0 && now - this.#beganAt < this.#sliceMs) return true;
    if (!isWithin || now - this.#beganAt >= slicesPerTick * this.#sliceMs) return false;
    return this.#queue.queuedOf(tenant) === 0;
  }

  isContended(now: number): boolean {
    return this.enabled && (this.#queue.length > 0 || now - this.#mixedAt <= this.#aloneMs);
  }

  isSliceOver(now: number): boolean {
    const isLong =
      now - this.#shares.askedAt >= this.#sliceMs ||
      now - this.#beganAt >= slicesPerTick * this.#sliceMs;
    return isLong && this.isContended(now);
  }

  enqueue(request: PodRequest): void {
    const { tenant } = request;
    let cost = this.#costs.get(tenant);
    if (cost === undefined) {
      this.#queue.setWeight(tenant, this.#weightOf(tenant));
      this.#costs.set(tenant, (cost = firstCostMs));
      this.#batches.set(tenant, new BatchQueue());
    }
    const waiting = { tenant, cost, request, since: this.#clock.monotonic() };
    this.#batches.get(tenant)!.push(waiting, request.isLarge);
    this.#queue.push(tenant, cost, waiting);
    this.#schedule();
  }

  spent(tenant: number, ms: number): void {
    this.#queue.settle(tenant, ms);
  }

  #weightOf(tenant: number): number {
    if (tenant === backgroundWork) return backgroundWeight;
    return this.#weights.get(tenant) ?? 1;
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(this.#slice);
  }

  readonly #slice = (): void => {
    this.#scheduled = false;
    const began = this.#clock.monotonic();
    this.beginTick(began);
    let now = began;
    let before: Waiting | undefined;
    let long = 0;
    do {
      if (long >= longPerSlice || this.#isOwnSlice(before)) break;
      const turn = this.#queue.pop();
      if (turn === undefined) break;
      if (!this.#mayBegin(turn, now)) continue;
      const next = this.#batches.get(turn.tenant)!.next()!;
      this.queued++;
      this.queuedMs += now - next.since;
      next.request.resume(true);
      if (next.request instanceof TimeSlice) long++;
      before = turn;
      const after = this.#clock.monotonic();
      this.#settle(turn, after - now);
      now = after;
    } while (now - began < this.#sliceMs);
    this.afterSlice?.();
    if (this.#queue.length > 0) this.#schedule();
  };

  /**
   * Whether the next batch is expensive and belongs to another tenant than the batch before it. The answers of the
   * earlier batch are then sent first.
   */
  #isOwnSlice(before: Waiting | undefined): boolean {
    const { next } = this.#queue;
    if (before === undefined || next === undefined || next.tenant === before.tenant) return false;
    return next.cost >= expensiveShare * this.#sliceMs;
  }

  /** Without capacity it is deferred. */
  #mayBegin(next: Waiting, now: number): boolean {
    const { tenant, cost } = next;
    if (tenant <= backgroundWork) return true;
    if (this.#capacity === undefined || this.#capacity.mayBegin(tenant, now)) return true;
    this.#queue.settle(tenant, -cost);
    this.#throttled.defer(next);
    return false;
  }

  #putBack(turn: Waiting): void {
    this.#queue.push(turn.tenant, turn.cost, turn);
    this.#schedule();
  }

  #settle({ tenant, cost }: Waiting, ms: number): void {
    this.#queue.settle(tenant, ms - cost);
    const mean = this.#costs.get(tenant);
    if (mean !== undefined) this.#costs.set(tenant, mean + newest * (ms - mean));
  }
}
