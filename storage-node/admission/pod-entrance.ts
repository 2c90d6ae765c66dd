// The queues before a running pod (X-Stor, section 5.2): while it spends more than a part of what it can, requests
// wait for its tokens, those of tenants within their guarantee excepted. What a request costs is known when it is done;
// until then it has cost what those of its kind do on average.

import type { Entrance, Guest } from '../../contracts/entrance.ts';
import type { WritePriority } from '../../contracts/table-properties.ts';
import type { PodCapacity } from './pod-capacity.ts';
import { PodQueues, type WorkKind } from './pod-queues.ts';

export interface WatchedPod {
  /** Units a second that it can do. */
  podRate: number;
  capacity: PodCapacity;
  /** Whether tenants within their quotas go past those that wait. */
  hasGuarantees: boolean;
}

export interface PodEntranceOptions {
  clock: { monotonic(): number };
  priorityOf: (tenant: number, database: string) => WritePriority;
}

export type Direction = 'read' | 'write';

/** Of those let in, refused, and made to wait, since the server was started. */
export interface EntranceCounts {
  waited: number;
  waitedMs: number;
  refused: number;
}

/** Share of the newest request in what one is thought to cost. */
const newest = 0.05;
const firstCost = 1;
/** Below this part of what the pod can do nobody will have to wait before the next look at it. */
const calmShare = 0.45;

const lineOfPriority: Readonly<Record<WritePriority, WorkKind>> = {
  high: 'write',
  normal: 'equal',
  low: 'late',
};

interface Waiting {
  kind: WorkKind;
  since: number;
}

/** In which line a request waits. */
export function kindOf(guest: Guest, priorityOf: PodEntranceOptions['priorityOf']): WorkKind {
  const { tenant, isWrite, database } = guest;
  return isWrite ? lineOfPriority[priorityOf(tenant, database)] : 'read';
}

export class PodEntrance implements Entrance {
  readonly counts: Readonly<Record<Direction, EntranceCounts>> = {
    read: { waited: 0, waitedMs: 0, refused: 0 },
    write: { waited: 0, waitedMs: 0, refused: 0 },
  };
  readonly #clock: PodEntranceOptions['clock'];
  readonly #priorityOf: PodEntranceOptions['priorityOf'];
  readonly #weights = new Map<number, number>();
  readonly #waiting = new Map<Guest, Waiting>();
  readonly #means: Record<Direction, number> = { read: firstCost, write: firstCost };
  /** Units taken by estimate for what a tenant has under way. */
  readonly #underWay = new Map<number, number>();
  #pod: WatchedPod | undefined;
  #queues: PodQueues<Guest> | undefined;
  /** Charged since the last look for requests that were let in here. */
  #settled = 0;
  #isCalm = true;

  constructor({ clock, priorityOf }: PodEntranceOptions) {
    this.#clock = clock;
    this.#priorityOf = priorityOf;
  }

  /** From now on the pod is held to this; with undefined to nothing, and whoever waits is let in. */
  watch(pod: WatchedPod | undefined): void {
    const before = this.#queues;
    this.#pod = pod;
    this.#queues = undefined;
    this.#underWay.clear();
    this.#settled = 0;
    this.#isCalm = true;
    const now = this.#clock.monotonic();
    if (pod !== undefined) {
      this.#queues = new PodQueues({ podRate: pod.podRate }, now);
      for (const [tenant, weight] of this.#weights) this.#queues.setWeight(tenant, weight);
    }
    before?.drainAll((guest) => this.#letIn(guest, now));
  }

  get isWatched(): boolean {
    return this.#queues !== undefined;
  }

  get isCalm(): boolean {
    return this.#isCalm;
  }

  /** Requests that wait. */
  waitingOf(direction: Direction): number {
    if (this.#queues === undefined) return 0;
    const reads = this.#queues.lengthOf('read');
    return direction === 'read' ? reads : this.#queues.length - reads;
  }

  /** Of a tenant's requests in each line. */
  setWeight(tenant: number, weight: number): void {
    this.#weights.set(tenant, weight);
    this.#queues?.setWeight(tenant, weight);
  }

  weightOf(tenant: number): number {
    return this.#weights.get(tenant) ?? 1;
  }

  forget(tenant: number): void {
    this.#weights.delete(tenant);
    this.#underWay.delete(tenant);
    this.#queues?.forget(tenant);
  }

  mayBegin(guest: Guest, now: number): boolean {
    const queues = this.#queues;
    if (queues === undefined) return true;
    const cost = this.#means[directionOf(guest)];
    if (!queues.mayBegin(this.#kindOf(guest), cost, now)) {
      if (!this.#isGuaranteed(guest.tenant, now)) return false;
      queues.spend(cost, now);
    }
    this.#take(guest, cost);
    return true;
  }

  wait(guest: Guest, now: number): boolean {
    const kind = this.#kindOf(guest);
    const direction = directionOf(guest);
    if (this.#queues?.push(kind, this.#means[direction], guest, now, guest.tenant) !== true) {
      this.counts[direction].refused++;
      return false;
    }
    this.#waiting.set(guest, { kind, since: now });
    return true;
  }

  leave(guest: Guest): boolean {
    const waiting = this.#waiting.get(guest);
    if (waiting === undefined) return false;
    this.#waiting.delete(guest);
    this.#queues?.leave(waiting.kind, guest, guest.tenant);
    return true;
  }

  settle(guest: Guest, units: number, now: number): void {
    if (guest.taken === 0) return;
    const direction = directionOf(guest);
    this.#means[direction] += newest * (units - this.#means[direction]);
    this.#settled += units;
    const taken = this.#giveBack(guest);
    this.#queues?.spend(units - taken, now);
  }

  /** One that was let in does not begin after all. */
  cancel(guest: Guest, now: number): void {
    if (guest.taken === 0) return;
    const taken = this.#giveBack(guest);
    this.#queues?.spend(-taken, now);
  }

  /** It is under way no longer. Returns what was taken for it. */
  #giveBack(guest: Guest): number {
    const { tenant, taken } = guest;
    guest.taken = 0;
    const left = (this.#underWay.get(tenant) ?? 0) - taken;
    if (left > 1e-6) this.#underWay.set(tenant, left);
    else this.#underWay.delete(tenant);
    return taken;
  }

  /** To be called every 10 ms or so: `charged` units in all were charged since, for requests and for all else. */
  tick(charged: number, now: number): void {
    const queues = this.#queues;
    if (queues === undefined) return;
    // What is left over was charged to nobody's request here, as merging files.
    const others = charged - this.#settled;
    this.#settled = 0;
    if (others > 0) queues.spend(others, now);
    this.#isCalm = queues.isCalm(calmShare, now);
    if (queues.length === 0) return;
    const letIn = (guest: Guest): void => this.#letIn(guest, now);
    queues.drainGuaranteed(now, (tenant) => this.#isGuaranteed(tenant, now), letIn);
    queues.drain(now, letIn, (guest) => this.#refuse(guest, now));
  }

  #kindOf(guest: Guest): WorkKind {
    return kindOf(guest, this.#priorityOf);
  }

  #isGuaranteed(tenant: number, now: number): boolean {
    const { capacity, hasGuarantees } = this.#pod!;
    return hasGuarantees && capacity.isWithin(tenant, this.#underWay.get(tenant) ?? 0, now);
  }

  #take(guest: Guest, cost: number): void {
    guest.taken = cost;
    this.#underWay.set(guest.tenant, (this.#underWay.get(guest.tenant) ?? 0) + cost);
  }

  #letIn(guest: Guest, now: number): void {
    const waiting = this.#end(guest, now);
    if (waiting === undefined) return;
    if (this.#queues !== undefined) this.#take(guest, this.#means[directionOf(guest)]);
    guest.end(true);
  }

  #refuse(guest: Guest, now: number): void {
    if (this.#end(guest, now) === undefined) return;
    this.counts[directionOf(guest)].refused++;
    guest.end(false);
  }

  #end(guest: Guest, now: number): Waiting | undefined {
    const waiting = this.#waiting.get(guest);
    if (waiting === undefined) return undefined;
    this.#waiting.delete(guest);
    const counts = this.counts[directionOf(guest)];
    counts.waited++;
    counts.waitedMs += now - waiting.since;
    return waiting;
  }
}

function directionOf({ isWrite }: Guest): Direction {
  return isWrite ? 'write' : 'read';
}
