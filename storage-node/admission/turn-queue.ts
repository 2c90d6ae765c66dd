// The processor of a plane, in slices, to its tenants by their weights.
//
// An event loop serves who has sent something in the order of its sockets: a tenant with a hundred busy connections has
// a hundred times as much of it as one with a single connection. When the batches of one round have taken longer than a
// slice, and come from more than one tenant, those that follow wait, in the order of virtual finish times (ABase,
// section 4.3) or another one (`tenant-turns.ts`), their cost being the milliseconds they take. Between two slices the
// loop reads what has come since.

import type { Turns } from '../../universal-row/turns.ts';
import { backgroundWork, crowdedSliceMs } from '../../universal-row/turns.ts';
import type { Clock } from '../../universal-row/environment.ts';
import { ParkedTurns } from './parked-turns.ts';
import { RoundShares } from './round-shares.ts';
import { type TenantTurns, tenantTurns, type TurnRule } from './tenant-turns.ts';
import type { TurnCap } from './turn-cap.ts';
import { TurnLine, type TurnOrder } from './turn-line.ts';

export interface TurnQueueOptions {
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
  run: () => void;
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
const heldMs = 1;
/** What background work may have of the processor beside all tenants. */
const backgroundShare = 0.05;

export class TurnQueue implements Turns {
  /** Without it everyone runs at once. */
  enabled = true;
  /** Background work that others wait for does not wait in line for its turn. */
  raisesWaitedFor = false;
  /** Called after each slice: what was answered in it leaves. */
  afterSlice: (() => void) | undefined;
  /** Batches that waited. */
  waited = 0;
  waitedMs = 0;
  /** Turns that were held back by the cap. */
  held = 0;
  /** Of the batches of one tenant; may be changed at any time. */
  readonly order: TurnOrder = { epochLifo: false, classes: true };
  readonly #clock: Clock;
  readonly #sliceMs: number;
  readonly #aloneMs: number;
  #backgroundShare = backgroundShare;
  #rule: TurnRule = 'virtual-finish-time';
  #queue: TenantTurns<Waiting> = tenantTurns(this.#rule);
  /** By tenant: whose batch has its next turn. */
  readonly #lines = new Map<number, TurnLine<Waiting>>();
  /** Milliseconds that a batch of each tenant takes, about. */
  readonly #costs = new Map<number, number>();
  readonly #weights = new Map<number, number>();
  readonly #shares = new RoundShares();
  #beganAt = -Infinity;
  #lastTenant = 0;
  /** When another tenant than before was last seen. */
  #mixedAt = -Infinity;
  #scheduled = false;
  // What is seldom used comes last: the first fields are the fastest to get at.
  #capacity: Capacity | undefined;
  /** Had their turn when there was no capacity for their tenant. */
  readonly #parked = new ParkedTurns<Waiting>({
    everyMs: parkedMs,
    atOnce: unparkedAtOnce,
    mayBegin: (tenant) => this.#capacity?.mayBegin(tenant, this.#clock.monotonic()) !== false,
    give: (turn) => this.#putBack(turn),
  });
  #cap: TurnCap | undefined;
  /** Had their turn when their tenant had had the thread for too long. */
  readonly #held = new ParkedTurns<Waiting>({
    everyMs: heldMs,
    atOnce: Infinity,
    mayBegin: (tenant) => this.#cap?.mayBegin(tenant, this.#clock.monotonic()) !== false,
    give: (turn) => this.#putBack(turn),
  });

  constructor({ clock, sliceMs = crowdedSliceMs, aloneMs = 100, afterSlice }: TurnQueueOptions) {
    this.#clock = clock;
    this.#sliceMs = sliceMs;
    this.#aloneMs = aloneMs;
    this.afterSlice = afterSlice;
  }

  /** Batches that wait. */
  get length(): number {
    return this.#queue.length + this.#parked.length + this.#held.length;
  }

  /** Without one there is no end of it. */
  setCapacity(capacity: Capacity | undefined): void {
    this.#capacity = capacity;
    if (this.#parked.length > 0) this.#parked.look(capacity === undefined ? Infinity : undefined);
  }

  /** Without one a tenant may have all of the thread. */
  setCap(cap: TurnCap | undefined): void {
    this.#cap = cap;
    if (this.#held.length > 0) this.#held.look();
  }

  /** Turns that wait keep their place among their tenant's own, and change it among others'. */
  setRule(rule: TurnRule): void {
    if (rule === this.#rule) return;
    const now = this.#clock.monotonic();
    const before = this.#queue;
    const queue = tenantTurns<Waiting>(rule);
    for (const tenant of this.#costs.keys()) queue.setWeight(tenant, this.#weightOf(tenant));
    for (let turn = before.pop(now); turn !== undefined; turn = before.pop(now)) {
      queue.push(turn.tenant, turn.cost, turn, now);
    }
    this.#rule = rule;
    this.#queue = queue;
  }

  /** Whether background work has a small part of the processor beside tenants; else it is as one of them. */
  setBackgroundLow(isLow: boolean): void {
    this.#backgroundShare = isLow ? backgroundShare : 1;
    if (this.#costs.has(backgroundWork)) {
      this.#queue.setWeight(backgroundWork, this.#backgroundShare);
    }
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
    if (this.#parked.has(tenant) || this.#held.has(tenant)) return;
    if (this.#queue.queuedOf(tenant) > 0) return;
    this.#costs.delete(tenant);
    this.#lines.delete(tenant);
    this.#queue.forget(tenant);
    this.#cap?.forget(tenant);
  }

  begin(now: number): void {
    this.#beganAt = now;
    this.#shares.begin(now);
  }

  mayRun(tenant: number, now: number, isWaitedFor = false): boolean {
    if (tenant === backgroundWork) {
      return this.#queue.length === 0 || !this.enabled || (isWaitedFor && this.raisesWaitedFor);
    }
    if (this.#capacity !== undefined && !this.#capacity.mayBegin(tenant, now)) return false;
    const isFree = this.#isFree(tenant, now);
    return this.#cap === undefined ? isFree : this.#mayRunCapped(this.#cap, tenant, now, isFree);
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
    return this.#rule === 'virtual-finish-time' && this.#queue.queuedOf(tenant) === 0;
  }

  #mayRunCapped(cap: TurnCap, tenant: number, now: number, isFree: boolean): boolean {
    cap.asked(tenant, now);
    if (!isFree || !this.enabled) return isFree;
    if (this.#held.has(tenant) || !cap.mayBegin(tenant, now)) return false;
    cap.began(tenant, now);
    // Looks when it has ended.
    this.#schedule();
    return true;
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

  wait(tenant: number, run: () => void, isLarge = false): void {
    let cost = this.#costs.get(tenant);
    if (cost === undefined) {
      this.#queue.setWeight(tenant, this.#weightOf(tenant));
      this.#costs.set(tenant, (cost = firstCostMs));
      this.#lines.set(tenant, new TurnLine(this.order));
    }
    const waiting = { tenant, cost, run, since: this.#clock.monotonic() };
    this.#lines.get(tenant)!.push(waiting, isLarge, waiting.since);
    if (this.#cap !== undefined && this.#holdsBack(this.#cap, waiting)) return;
    this.#queue.push(tenant, cost, waiting, waiting.since);
    this.#schedule();
  }

  spent(tenant: number, ms: number): void {
    const now = this.#clock.monotonic();
    this.#queue.settle(tenant, ms, now);
    this.#cap?.spent(tenant, ms, now);
  }

  #weightOf(tenant: number): number {
    if (tenant === backgroundWork) return this.#backgroundShare;
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
    this.#cap?.rests(began);
    let now = began;
    let before: Waiting | undefined;
    do {
      if (this.#isOwnSlice(before)) break;
      const turn = this.#queue.pop(now);
      if (turn === undefined) break;
      if (!this.#mayBegin(turn, now)) continue;
      const next = this.#lines.get(turn.tenant)!.next(now)!;
      this.waited++;
      this.waitedMs += now - next.since;
      this.#cap?.began(turn.tenant, now);
      next.run();
      before = turn;
      const after = this.#clock.monotonic();
      this.#settle(turn, after - now, after);
      now = after;
    } while (now - began < this.#sliceMs);
    this.#endSlice(now);
  };

  #endSlice(now: number): void {
    this.afterSlice?.();
    const isMore = this.#queue.length > 0;
    if (this.#cap === undefined) {
      if (isMore) this.#schedule();
      return;
    }
    // What goes on after its `run` has returned has the thread until the next look.
    const goesOn = this.#sliceMs === 0 && this.#cap.isRunning;
    if (!goesOn) this.#cap.rests(now);
    if (isMore || goesOn) this.#schedule();
  }

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
    if (this.#cap !== undefined && !this.#cap.mayBegin(tenant, now)) {
      this.#queue.settle(tenant, -cost, now);
      this.#hold(next);
      return false;
    }
    if (this.#capacity === undefined || this.#capacity.mayBegin(tenant, now)) return true;
    this.#queue.settle(tenant, -cost, now);
    this.#parked.park(next);
    return false;
  }

  /** A batch of a tenant whose turns are held back. */
  #holdsBack(cap: TurnCap, waiting: Waiting): boolean {
    const { tenant, since } = waiting;
    if (tenant === backgroundWork) return false;
    cap.asked(tenant, since);
    if (!this.#held.has(tenant)) return false;
    this.#hold(waiting);
    return true;
  }

  #hold(turn: Waiting): void {
    this.held++;
    this.#held.park(turn);
  }

  #putBack(turn: Waiting): void {
    this.#queue.push(turn.tenant, turn.cost, turn, this.#clock.monotonic());
    this.#schedule();
  }

  #settle({ tenant, cost }: Waiting, ms: number, now: number): void {
    this.#queue.settle(tenant, ms - cost, now);
    const mean = this.#costs.get(tenant);
    if (mean !== undefined) this.#costs.set(tenant, mean + newest * (ms - mean));
  }
}
