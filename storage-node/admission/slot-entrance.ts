// The entrance of a pod for requests that take more than one turn with its thread: no more of them are under way at a
// time than there are slots, and these follow the lag of the event loop (CockroachDB's admission control, the slots of
// its CPU queue). It lies behind the line for units, so that nobody who waits for those holds a slot: a request waits in
// one line at a time. Those of one turn pass by. Who waits for long, for its client or the disk, gives its slot away,
// and goes on whether one is free or not: else a few slow clients could hold up everybody.

import type { Entrance, Guest } from '../../universal-row/entrance.ts';
import type { CpuSlots } from './cpu-slots.ts';
import {
  type EntranceCounts,
  kindOf,
  type PodEntrance,
  type PodEntranceOptions,
} from './pod-entrance.ts';
import { PodQueues, type WorkKind } from './pod-queues.ts';

export interface SlotEntranceOptions extends PodEntranceOptions {
  /** Where requests wait for units. */
  units: PodEntrance;
}

interface Waiting {
  kind: WorkKind;
  since: number;
}

/** Whoever is waited for is slow when it takes longer. */
const slowMs = 50;
/** More than any pod can do: slots are all that is waited for here. */
const unlimited = 1e12;

export class SlotEntrance implements Entrance {
  readonly counts: EntranceCounts = { waited: 0, waitedMs: 0, refused: 0 };
  readonly #clock: SlotEntranceOptions['clock'];
  readonly #priorityOf: SlotEntranceOptions['priorityOf'];
  readonly #units: PodEntrance;
  readonly #waiting = new Map<Guest, Waiting>();
  /** Hold a slot. */
  readonly #holding = new Set<Guest>();
  /** Of these, which wait for something else than the thread, and since when. */
  readonly #away = new Map<Guest, number>();
  /** Have given theirs away, as that takes long. */
  readonly #slow = new Set<Guest>();
  /** Were let in as far as units go, and are to wait for a slot. */
  readonly #passed = new Set<Guest>();
  #slots: CpuSlots | undefined;
  #queues: PodQueues<Guest>;

  constructor({ clock, priorityOf, units }: SlotEntranceOptions) {
    this.#clock = clock;
    this.#priorityOf = priorityOf;
    this.#units = units;
    this.#queues = this.#newQueues();
  }

  #newQueues(): PodQueues<Guest> {
    return new PodQueues({ podRate: unlimited }, this.#clock.monotonic());
  }

  /** From now on there are these, none of them in use; without any, whoever waits is let in. */
  setSlots(slots: CpuSlots | undefined): void {
    this.#slots = slots;
    this.#holding.clear();
    this.#away.clear();
    this.#slow.clear();
    const now = this.#clock.monotonic();
    if (slots !== undefined) return this.#drain(now);
    const before = this.#queues;
    this.#queues = this.#newQueues();
    before.drainAll((guest) => this.#letIn(guest, now));
  }

  get slots(): CpuSlots | undefined {
    return this.#slots;
  }

  get isWatched(): boolean {
    return this.#slots !== undefined || this.#units.isWatched;
  }

  get isCalm(): boolean {
    return this.#slots === undefined && this.#units.isCalm;
  }

  /** Requests that wait for a slot. */
  get waiting(): number {
    return this.#queues.length;
  }

  forget(tenant: number): void {
    this.#queues.forget(tenant);
  }

  mayBegin(guest: Guest, now: number): boolean {
    if (!this.#units.mayBegin(guest, now)) return false;
    if (this.#takes(guest)) return true;
    this.#passed.add(guest);
    return false;
  }

  wait(guest: Guest, now: number): boolean {
    if (this.#passed.delete(guest)) return this.#lineUp(guest, now);
    const { end } = guest;
    guest.end = (letIn) => {
      guest.end = end;
      // It has waited since it came.
      if (!letIn || this.#takes(guest)) end(letIn);
      else if (!this.#lineUp(guest, now)) end(false);
    };
    return this.#units.wait(guest, now);
  }

  leave(guest: Guest): boolean {
    const waiting = this.#waiting.get(guest);
    const isPassed = this.#passed.delete(guest);
    if (waiting === undefined && !isPassed) return this.#units.leave(guest);
    this.#waiting.delete(guest);
    if (waiting !== undefined) this.#queues.leave(waiting.kind, guest, guest.tenant);
    this.#units.cancel(guest, this.#clock.monotonic());
    return true;
  }

  away(guest: Guest, now: number): void {
    if (this.#holding.has(guest)) this.#away.set(guest, now);
  }

  back(guest: Guest): void {
    this.#away.delete(guest);
    if (!this.#slow.delete(guest)) return;
    this.#holding.add(guest);
    this.#slots?.takeAnyway();
  }

  done(guest: Guest, now: number): void {
    this.#away.delete(guest);
    this.#slow.delete(guest);
    if (!this.#holding.delete(guest)) return;
    this.#slots?.free();
    this.#drain(now);
  }

  settle(guest: Guest, units: number, now: number): void {
    this.#units.settle(guest, units, now);
    this.done(guest, now);
  }

  /** To be called every few milliseconds, with how late the event loop was since the last time. */
  tick(lagMs: number, now: number): void {
    for (const [guest, since] of this.#away) {
      // Those after it went later.
      if (now - since <= slowMs) break;
      this.#away.delete(guest);
      this.#holding.delete(guest);
      this.#slow.add(guest);
      this.#slots?.free();
    }
    this.#slots?.adjust(lagMs);
    this.#drain(now);
  }

  /** Whether it needs no slot, or has one now. */
  #takes(guest: Guest): boolean {
    if (this.#slots === undefined || !guest.isLong) return true;
    if (this.#queues.length > 0 || !this.#slots.take()) return false;
    this.#holding.add(guest);
    return true;
  }

  /** False where the line is full. */
  #lineUp(guest: Guest, since: number): boolean {
    const { tenant } = guest;
    const kind = kindOf(guest, this.#priorityOf);
    this.#queues.setWeight(tenant, this.#units.weightOf(tenant));
    if (!this.#queues.push(kind, 1, guest, since, tenant)) {
      this.counts.refused++;
      this.#units.cancel(guest, this.#clock.monotonic());
      return false;
    }
    this.#waiting.set(guest, { kind, since });
    return true;
  }

  #drain(now: number): void {
    const slots = this.#slots;
    if (slots === undefined || this.#queues.length === 0) return;
    this.#queues.drain(
      now,
      (guest) => this.#letIn(guest, now),
      (guest) => this.#refuse(guest, now),
      () => slots.used < slots.slots,
    );
  }

  #letIn(guest: Guest, now: number): void {
    this.#end(guest, now);
    if (this.#slots !== undefined) {
      this.#slots.takeAnyway();
      this.#holding.add(guest);
    }
    guest.end(true);
  }

  #refuse(guest: Guest, now: number): void {
    this.#end(guest, now);
    this.counts.refused++;
    this.#units.cancel(guest, now);
    guest.end(false);
  }

  #end(guest: Guest, now: number): void {
    const waiting = this.#waiting.get(guest);
    if (waiting === undefined) throw new RangeError('a request that did not wait');
    this.#waiting.delete(guest);
    this.counts.waited++;
    this.counts.waitedMs += now - waiting.since;
  }
}
