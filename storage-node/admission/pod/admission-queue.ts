// The admission queue of a pod (X-Stor, section 5.2): while it spends more than a share of its capacity, requests are queued
// for its tokens; those of tenants within their guarantee bypass the queue. The cost of a request is known when it has run;
// until then it is debited the mean cost of its kind.

import type { PodRequest } from '../../../contracts/pod-admission.ts';
import type { WritePriority } from '../../../contracts/table-properties.ts';
import type { PodCapacity } from './pod-capacity.ts';
import { PodQueues, type WorkKind } from './pod-queues.ts';

interface WatchedPod {
  /** Its capacity, request units a second. */
  podRate: number;
  capacity: PodCapacity;
  /** Requests are queued only while it holds. */
  isContended: (now: number) => boolean;
}

export interface AdmissionQueueOptions {
  clock: { monotonic(): number };
  priorityOf: (tenant: number, database: string) => WritePriority;
  /** Called once when a request leaves the queue: admitted, or after its longest wait. */
  ended: (request: PodRequest, isAdmitted: boolean) => void;
}

type Direction = 'read' | 'write';

/** Requests since the server was started. */
interface QueueCounts {
  queued: number;
  queuedMs: number;
  refused: number;
}

/** Share of the newest request in the mean cost. */
const newest = 0.05;
const firstCost = 1;
/** Below this share of the capacity no request will have to wait before the next tick. */
const uncongestedShare = 0.45;

const queueOfPriority: Readonly<Record<WritePriority, WorkKind>> = {
  high: 'write',
  normal: 'equal',
  low: 'late',
};

interface Waiting {
  kind: WorkKind;
  since: number;
}

/** The queue of a request. */
function kindOf(request: PodRequest, priorityOf: AdmissionQueueOptions['priorityOf']): WorkKind {
  const { tenant, kind, database } = request;
  return kind === 'write' ? queueOfPriority[priorityOf(tenant, database)] : 'read';
}

export class AdmissionQueue {
  readonly counts: Readonly<Record<Direction, QueueCounts>> = {
    read: { queued: 0, queuedMs: 0, refused: 0 },
    write: { queued: 0, queuedMs: 0, refused: 0 },
  };
  readonly #clock: AdmissionQueueOptions['clock'];
  readonly #priorityOf: AdmissionQueueOptions['priorityOf'];
  readonly #ended: AdmissionQueueOptions['ended'];
  readonly #weights = new Map<number, number>();
  readonly #waiting = new Map<PodRequest, Waiting>();
  readonly #means: Record<Direction, number> = { read: firstCost, write: firstCost };
  /** Units debited by estimate for running requests of each tenant. */
  readonly #underWay = new Map<number, number>();
  #pod: WatchedPod | undefined;
  #queues: PodQueues<PodRequest> | undefined;
  /** Charged since the last tick for requests that were admitted here. */
  #settled = 0;
  #isUncongested = true;

  constructor({ clock, priorityOf, ended }: AdmissionQueueOptions) {
    this.#clock = clock;
    this.#priorityOf = priorityOf;
    this.#ended = ended;
  }

  /** Sets the limits; undefined for none, and queued requests are admitted. */
  watch(pod: WatchedPod | undefined): void {
    const before = this.#queues;
    this.#pod = pod;
    this.#queues = undefined;
    this.#underWay.clear();
    this.#settled = 0;
    this.#isUncongested = true;
    const now = this.#clock.monotonic();
    if (pod !== undefined) {
      this.#queues = new PodQueues({ podRate: pod.podRate }, now);
      for (const [tenant, weight] of this.#weights) this.#queues.setWeight(tenant, weight);
    }
    before?.drainAll((request) => this.#admit(request, now));
  }

  /** Other units a second; requests stay queued. */
  setRate(podRate: number, now: number): void {
    this.#pod?.capacity.setRate(podRate, now);
    this.#queues?.setRate(podRate, now);
  }

  get isActive(): boolean {
    return this.#queues !== undefined;
  }

  get isUncongested(): boolean {
    return this.#isUncongested;
  }

  /** Queued requests. */
  waitingOf(direction: Direction): number {
    if (this.#queues === undefined) return 0;
    const reads = this.#queues.lengthOf('read');
    return direction === 'read' ? reads : this.#queues.length - reads;
  }

  /** Within each queue. */
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

  mayBegin(request: PodRequest, now: number): boolean {
    const queues = this.#queues;
    if (queues === undefined) return true;
    const cost = this.#means[directionOf(request)];
    if (!this.#pod!.isContended(now)) queues.spend(cost, now);
    else if (!queues.mayBegin(this.#kindOf(request), cost, now)) {
      if (!this.#isGuaranteed(request.tenant, now)) return false;
      queues.spend(cost, now);
    }
    this.#take(request, cost);
    return true;
  }

  wait(request: PodRequest, now: number): boolean {
    const kind = this.#kindOf(request);
    const direction = directionOf(request);
    if (this.#queues?.push(kind, this.#means[direction], request, now, request.tenant) !== true) {
      this.counts[direction].refused++;
      return false;
    }
    this.#waiting.set(request, { kind, since: now });
    return true;
  }

  leave(request: PodRequest): boolean {
    const waiting = this.#waiting.get(request);
    if (waiting === undefined) return false;
    this.#waiting.delete(request);
    this.#queues?.leave(waiting.kind, request, request.tenant);
    return true;
  }

  settle(request: PodRequest, units: number, now: number): void {
    if (request.debited === 0) return;
    const direction = directionOf(request);
    this.#means[direction] += newest * (units - this.#means[direction]);
    this.#settled += units;
    const taken = this.#refund(request);
    this.#queues?.spend(units - taken, now);
  }

  /** Ends the request. Returns its debit. */
  #refund(request: PodRequest): number {
    const { tenant, debited: taken } = request;
    request.debited = 0;
    const left = (this.#underWay.get(tenant) ?? 0) - taken;
    if (left > 1e-6) this.#underWay.set(tenant, left);
    else this.#underWay.delete(tenant);
    return taken;
  }

  /** To be called every 10 ms or so with the units charged since, for requests and for background work. */
  tick(charged: number, now: number): void {
    const queues = this.#queues;
    if (queues === undefined) return;
    // The remainder was charged for work that is no request, as compaction.
    const others = charged - this.#settled;
    this.#settled = 0;
    if (others > 0) queues.spend(others, now);
    this.#isUncongested = queues.isUncongested(uncongestedShare, now);
    if (queues.length === 0) return;
    const admit = (request: PodRequest): void => this.#admit(request, now);
    queues.drainGuaranteed(now, (tenant) => this.#isGuaranteed(tenant, now), admit);
    queues.drain(now, admit, (request) => this.#refuse(request, now));
  }

  #kindOf(request: PodRequest): WorkKind {
    return kindOf(request, this.#priorityOf);
  }

  #isGuaranteed(tenant: number, now: number): boolean {
    return this.#pod!.capacity.isWithin(tenant, this.#underWay.get(tenant) ?? 0, now);
  }

  #take(request: PodRequest, cost: number): void {
    request.debited = cost;
    this.#underWay.set(request.tenant, (this.#underWay.get(request.tenant) ?? 0) + cost);
  }

  #admit(request: PodRequest, now: number): void {
    const waiting = this.#end(request, now);
    if (waiting === undefined) return;
    if (this.#queues !== undefined) this.#take(request, this.#means[directionOf(request)]);
    this.#ended(request, true);
  }

  #refuse(request: PodRequest, now: number): void {
    if (this.#end(request, now) === undefined) return;
    this.counts[directionOf(request)].refused++;
    this.#ended(request, false);
  }

  #end(request: PodRequest, now: number): Waiting | undefined {
    const waiting = this.#waiting.get(request);
    if (waiting === undefined) return undefined;
    this.#waiting.delete(request);
    const counts = this.counts[directionOf(request)];
    counts.queued++;
    counts.queuedMs += now - waiting.since;
    return waiting;
  }
}

function directionOf({ kind }: PodRequest): Direction {
  return kind === 'write' ? 'write' : 'read';
}
