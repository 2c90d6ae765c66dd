// The processor of a plane, in slices, to its tenants by their weights.
//
// An event loop serves who has sent something in the order of its sockets: a tenant with a hundred busy connections has
// a hundred times as much of it as one with a single connection. When the batches of one round have taken longer than a
// slice, and come from more than one tenant, those that follow wait, in the order of virtual finish times (ABase,
// section 4.3; `fair-queue.ts`), their cost being the milliseconds they take. Between two slices the
// loop reads what has come since.

import {
  backgroundWork,
  contendedSliceMs,
  type PodRequest,
} from '../../../contracts/pod-admission.ts';
import type { Clock } from '../../../universal-row/environment.ts';
import { FairQueue } from '../fair-queue.ts';
import { ThrottledBatches } from './throttled-batches.ts';
import { TickShares } from './tick-shares.ts';
import { BatchQueue } from './batch-queue.ts';

export interface CpuSchedulerOptions {
  clock: Clock;
  /**
   * Milliseconds of work before others have their turn. 0 for one piece of work at a time: for work that goes on
   * after its `run` has returned.
   */
  sliceMs?: number;
  /** Milliseconds after which a tenant that is alone counts as alone. */
  aloneMs?: number;
  /** Called after each slice: what was answered in it leaves. */
  afterSlice?: (() => void) | undefined;
}

/** What is left of a pod's capacity. */
export interface Capacity {
  /** Whether there is any for a tenant. */
  mayBegin(tenant: number, now: number): boolean;
}

/** A turn of a tenant, and a batch that waits for one of its tenant's turns. */
interface Waiting {
  tenant: number;
  /** Of the turn: milliseconds that were charged for it in advance. */
  cost: number;
  /** Of the batch. */
  request: PodRequest;
  since: number;
}

/** Share of the newest batch in what one is thought to take. */
const newest = 0.2;
const firstCostMs = 0.1;
/** A turn that is thought to take so much of a slice is dear. */
const dearShare = 0.5;
/** Slices that a round may take in which no tenant has more than its part. */
const slicesPerRound = 5;
const parkedMs = 2;
const unparkedAtOnce = 16;
/** What background work may have of the processor beside all tenants. */
const backgroundShare = 0.05;

export class CpuScheduler {
  /** Without it everyone runs at once. */
  enabled = true;
  /** Called after each slice: what was answered in it leaves. */
  afterSlice: (() => void) | undefined;
  /** Batches that waited. */
  waited = 0;
  waitedMs = 0;
  readonly #clock: Clock;
  readonly #sliceMs: number;
  readonly #aloneMs: number;
  /** An idle tenant saves up no credit: a flooding tenant idles whenever it waits for its quota. */
  readonly #queue = new FairQueue<Waiting>();
  /** By tenant: whose batch has its next turn. */
  readonly #lines = new Map<number, BatchQueue<Waiting>>();
  /** Milliseconds that a batch of each tenant takes, about. */
  readonly #costs = new Map<number, number>();
  readonly #weights = new Map<number, number>();
  readonly #shares = new TickShares();
  #beganAt = -Infinity;
  #lastTenant = 0;
  /** When another tenant than before was last seen. */
  #mixedAt = -Infinity;
  #scheduled = false;
  // What is seldom used comes last: the first fields are the fastest to get at.
  #capacity: Capacity | undefined;
  /** Had their turn when there was no capacity for their tenant. */
  readonly #parked = new ThrottledBatches<Waiting>({
    everyMs: parkedMs,
    atOnce: unparkedAtOnce,
    mayBegin: (tenant) => this.#capacity?.mayBegin(tenant, this.#clock.monotonic()) !== false,
    give: (turn) => this.#putBack(turn),
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

  /** Batches that wait. */
  get length(): number {
    return this.#queue.length + this.#parked.length;
  }

  /** Without one there is no end of it. */
  setCapacity(capacity: Capacity | undefined): void {
    this.#capacity = capacity;
    if (this.#parked.length > 0) this.#parked.look(capacity === undefined ? Infinity : undefined);
  }

  /** Tenants weigh as much as others, unless it is said otherwise: by their quotas, say. */
  setWeight(tenant: number, weight: number): void {
    this.#weights.set(tenant, weight);
    this.#shares.setWeight(tenant, weight);
    if (this.#costs.has(tenant)) this.#queue.setWeight(tenant, weight);
  }

  forget(tenant: number): void {
    this.#weights.delete(tenant);
    this.#shares.forget(tenant);
    if (this.#parked.has(tenant)) return;
    if (this.#queue.queuedOf(tenant) > 0) return;
    this.#costs.delete(tenant);
    this.#lines.delete(tenant);
    this.#queue.forget(tenant);
  }

  begin(now: number): void {
    this.#beganAt = now;
    this.#shares.begin(now);
  }

  mayRun(tenant: number, now: number): boolean {
    if (tenant === backgroundWork) return this.#queue.length === 0 || !this.enabled;
    if (this.#capacity !== undefined && !this.#capacity.mayBegin(tenant, now)) return false;
    return this.#isFree(tenant, now);
  }

  #isFree(tenant: number, now: number): boolean {
    if (tenant !== this.#lastTenant) {
      this.#lastTenant = tenant;
      this.#mixedAt = now;
    }
    if (!this.enabled) return true;
    if (this.#queue.length === 0 && now - this.#mixedAt > this.#aloneMs) return true;
    const isWithin = this.#shares.asked(tenant, now);
    if (this.#queue.length === 0 && now - this.#beganAt < this.#sliceMs) return true;
    if (!isWithin || now - this.#beganAt >= slicesPerRound * this.#sliceMs) return false;
    return this.#queue.queuedOf(tenant) === 0;
  }

  isCrowded(now: number): boolean {
    return this.enabled && (this.#queue.length > 0 || now - this.#mixedAt <= this.#aloneMs);
  }

  isOver(now: number): boolean {
    const isLong =
      now - this.#shares.askedAt >= this.#sliceMs ||
      now - this.#beganAt >= slicesPerRound * this.#sliceMs;
    return isLong && this.isCrowded(now);
  }

  wait(request: PodRequest): void {
    const { tenant } = request;
    let cost = this.#costs.get(tenant);
    if (cost === undefined) {
      this.#queue.setWeight(tenant, this.#weightOf(tenant));
      this.#costs.set(tenant, (cost = firstCostMs));
      this.#lines.set(tenant, new BatchQueue());
    }
    const waiting = { tenant, cost, request, since: this.#clock.monotonic() };
    this.#lines.get(tenant)!.push(waiting, request.isLarge);
    this.#queue.push(tenant, cost, waiting);
    this.#schedule();
  }

  spent(tenant: number, ms: number): void {
    this.#queue.settle(tenant, ms);
  }

  #weightOf(tenant: number): number {
    if (tenant === backgroundWork) return backgroundShare;
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
    this.begin(began);
    let now = began;
    let before: Waiting | undefined;
    do {
      if (this.#isOwnSlice(before)) break;
      const turn = this.#queue.pop();
      if (turn === undefined) break;
      if (!this.#mayBegin(turn, now)) continue;
      const next = this.#lines.get(turn.tenant)!.next()!;
      this.waited++;
      this.waitedMs += now - next.since;
      next.request.resume(true);
      before = turn;
      const after = this.#clock.monotonic();
      this.#settle(turn, after - now);
      now = after;
    } while (now - began < this.#sliceMs);
    this.afterSlice?.();
    if (this.#queue.length > 0) this.#schedule();
  };

  /** The next turn is dear, and another tenant's than the one before: what was answered in that leaves first. */
  #isOwnSlice(before: Waiting | undefined): boolean {
    const { next } = this.#queue;
    if (before === undefined || next === undefined || next.tenant === before.tenant) return false;
    return next.cost >= dearShare * this.#sliceMs;
  }

  /** Where there is no capacity for it, it has another turn soon. */
  #mayBegin(next: Waiting, now: number): boolean {
    const { tenant, cost } = next;
    if (tenant === backgroundWork) return true;
    if (this.#capacity === undefined || this.#capacity.mayBegin(tenant, now)) return true;
    this.#queue.settle(tenant, -cost);
    this.#parked.park(next);
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
