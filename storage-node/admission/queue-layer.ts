// One layer of a pod's queues: a line for each kind of work before places they share. Who comes when there is a place
// and nobody of the kind waits needs no object, and no line: that is asked with numbers alone.

import type { CpuLimits } from './cpu-limits.ts';
import { KindShares, type KindSharesOptions } from './kind-shares.ts';
import type { Places } from './places.ts';
import { SlotBalance } from './slot-balance.ts';
import { type QueuedWork, TenantQueue, type TenantQueueOptions } from './tenant-queue.ts';
import { foregroundKinds, kindCount, WorkKind } from './work-kind.ts';

export interface LayerWork extends QueuedWork {
  readonly kind: WorkKind;
}

export interface BackgroundOptions {
  /** Of all places, for background work however much of others' waits. */
  least: number;
  /** Of all places, left free by background work beyond that. */
  spare: number;
  /** What it did not have of its part is made up for, for so long, ms. */
  windowMs: number;
}

/** What it is due is 5 %: a little more, as it must wait for a place to become free. */
export const backgroundDefaults: BackgroundOptions = { least: 0.06, spare: 0.6, windowMs: 100 };

export interface QueueLayerOptions<W extends LayerWork> {
  places: Places;
  costOf: (work: W) => number;
  expired: (work: W) => void;
  queue: Partial<TenantQueueOptions>;
  /** Undefined for one line of all kinds. */
  kinds: KindSharesOptions | undefined;
  /** Undefined for background work in line with large writes. */
  background: BackgroundOptions | undefined;
  /** By kind, which is not told apart where all are in one line. */
  limits?: CpuLimits | undefined;
}

export class QueueLayer<W extends LayerWork> {
  readonly places: Places;
  readonly #lines: TenantQueue<W>[];
  readonly #costOf: (work: W) => number;
  readonly #kinds: KindShares | undefined;
  readonly #limits: CpuLimits | undefined;
  readonly #background: BackgroundOptions | undefined;
  readonly #backgroundTime: SlotBalance;

  constructor(options: QueueLayerOptions<W>, now: number) {
    const { places, costOf, expired, queue, kinds, background, limits } = options;
    this.places = places;
    this.#costOf = costOf;
    this.#kinds = kinds && new KindShares(kinds);
    this.#limits = limits;
    this.#background = background;
    const window = background?.windowMs ?? 0;
    this.#backgroundTime = new SlotBalance(0, window, window, now);
    this.#lines = Array.from({ length: kindCount }, () => new TenantQueue(costOf, expired, queue));
  }

  /** How many pieces wait. */
  get length(): number {
    return this.#waiting + this.#lines[WorkKind.background]!.length;
  }

  /** Of clients' work. */
  get #waiting(): number {
    let waiting = 0;
    for (let line = 0; line < foregroundKinds; line++) waiting += this.#lines[line]!.length;
    return waiting;
  }

  lengthOf(kind: WorkKind, tenant: number): number {
    return this.#lines[this.#lineOf(kind)]!.lengthOf(tenant);
  }

  setWeight(tenant: number, weight: number): void {
    for (const line of this.#lines) line.setWeight(tenant, weight);
  }

  forget(tenant: number): void {
    for (const line of this.#lines) line.forget(tenant);
    this.places.forget(tenant);
  }

  /** To be called with each piece of work that comes, whether it will wait or not. */
  asked(kind: WorkKind, tenant: number, now: number): void {
    this.#kinds?.asked(kind, now);
    this.places.asked(tenant, now);
  }

  /** Whether work that comes now may begin at once. */
  mayBegin(kind: WorkKind, tenant: number, now: number): boolean {
    const line = this.#lineOf(kind);
    return (
      this.#lines[line]!.length === 0 &&
      this.places.hasRoom() &&
      this.#mayBeginKind(line, now) &&
      this.places.mayTake(tenant, now)
    );
  }

  /** Work begins that did not wait. */
  pass(kind: WorkKind, tenant: number, cost: number, now: number): void {
    this.#lines[this.#lineOf(kind)]!.passed(tenant, cost, now);
    this.#began(kind, tenant, cost, now);
  }

  ended(kind: WorkKind, tenant: number, cost: number, now: number): void {
    const line = this.#lineOf(kind);
    if (line < foregroundKinds) this.#kinds?.ended(line as WorkKind);
    else this.#backgroundTime.ended(now);
    if (this.#kinds !== undefined) this.#limits?.ended(kind, cost);
    this.places.ended(tenant, now);
  }

  push(work: W, now: number): void {
    const line = this.#lineOf(work.kind);
    const queue = this.#lines[line]!;
    if (queue.length === 0 && line < foregroundKinds) this.#kinds?.joined(line as WorkKind);
    queue.push(work, now);
  }

  /** The next that is to begin now, which has a place; undefined when none may. */
  take(now: number): W | undefined {
    if (!this.places.hasRoom()) return undefined;
    const backgroundWaits = this.#lines[WorkKind.background]!.length > 0;
    // Its own part first: what is left of places in the end would be nothing.
    if (backgroundWaits && this.#isBackgroundDue(now)) {
      const work = this.#pop(WorkKind.background, now);
      if (work !== undefined) return work;
    }
    const work = this.#takeForeground(now);
    if (work !== undefined) return work;
    if (!backgroundWaits || !this.#mayBeginKind(WorkKind.background, now)) return undefined;
    return this.#pop(WorkKind.background, now);
  }

  #takeForeground(now: number): W | undefined {
    if (this.#kinds === undefined) return this.#pop(WorkKind.smallRead, now);
    let lines = 0;
    for (let line = 0; line < foregroundKinds; line++) {
      if (this.#lines[line]!.length > 0) lines |= 1 << line;
    }
    while (lines !== 0) {
      const line = this.#kinds.turn(lines) as WorkKind;
      lines &= ~(1 << line);
      if (!this.#mayBeginKind(line, now)) continue;
      const work = this.#pop(line, now);
      if (work === undefined) continue;
      this.#kinds.served(line, this.#costOf(work));
      return work;
    }
    return undefined;
  }

  #pop(line: number, now: number): W | undefined {
    const work = this.#lines[line]!.pop(now, this.places);
    if (work === undefined) return undefined;
    this.#began(work.kind, work.tenant, this.#costOf(work), now);
    return work;
  }

  /** To be called every few milliseconds while something waits. */
  tick(now: number): void {
    for (const line of this.#lines) if (line.length > 0) line.tick(now);
  }

  #began(kind: WorkKind, tenant: number, cost: number, now: number): void {
    const line = this.#lineOf(kind);
    if (line < foregroundKinds) this.#kinds?.began(line as WorkKind);
    else this.#backgroundTime.began(now);
    if (this.#kinds !== undefined) this.#limits?.began(kind, cost);
    this.places.began(tenant, now);
  }

  #mayBeginKind(line: number, now: number): boolean {
    if (line === WorkKind.background) {
      if (this.#isBackgroundDue(now)) return true;
      const { count, used } = this.places;
      return this.#waiting === 0 && used + 1 <= count * (1 - this.#background!.spare);
    }
    if (this.#kinds === undefined) return true;
    const kind = line as WorkKind;
    if (this.#limits !== undefined && !this.#limits.mayBegin(kind)) return false;
    return this.#kinds.mayBegin(kind, this.places.count, now);
  }

  #isBackgroundDue(now: number): boolean {
    this.#backgroundTime.reshape(this.#background!.least * this.places.count, now);
    return this.#backgroundTime.mayHold(now);
  }

  #lineOf(kind: WorkKind): number {
    if (kind === WorkKind.background && this.#background !== undefined) return kind;
    if (this.#kinds === undefined) return WorkKind.smallRead;
    return kind === WorkKind.background ? WorkKind.largeWrite : kind;
  }
}
