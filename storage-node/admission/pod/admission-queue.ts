// The queues before a running pod (X-Stor, section 5.2): while it spends more than a part of what it can, requests
// wait for its tokens, those of tenants within their guarantee excepted. What a request costs is known when it is done;
// until then it has cost what those of its kind do on average.

import type { PodRequest } from '../../../contracts/pod-admission.ts';
import type { WritePriority } from '../../../contracts/table-properties.ts';
import type { PodCapacity } from './pod-capacity.ts';
import { PodQueues, type WorkKind } from './pod-queues.ts';

export interface WatchedPod {
  /** Units a second that it can do. */
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
export function kindOf(
  request: PodRequest,
  priorityOf: AdmissionQueueOptions['priorityOf'],
): WorkKind {
  const { tenant, kind, database } = request;
  return kind === 'write' ? lineOfPriority[priorityOf(tenant, database)] : 'read';
}

export class AdmissionQueue {
  readonly counts: Readonly<Record<Direction, EntranceCounts>> = {
    read: { waited: 0, waitedMs: 0, refused: 0 },
    write: { waited: 0, waitedMs: 0, refused: 0 },
  };
  readonly #clock: AdmissionQueueOptions['clock'];
  readonly #priorityOf: AdmissionQueueOptions['priorityOf'];
  readonly #ended: AdmissionQueueOptions['ended'];
  readonly #weights = new Map<number, number>();
  readonly #waiting = new Map<PodRequest, Waiting>();
  readonly #means: Record<Direction, number> = { read: firstCost, write: firstCost };
  /** Units taken by estimate for what a tenant has under way. */
  readonly #underWay = new Map<number, number>();
  #pod: WatchedPod | undefined;
  #queues: PodQueues<PodRequest> | undefined;
  /** Charged since the last look for requests that were let in here. */
  #settled = 0;
  #isCalm = true;

  constructor({ clock, priorityOf, ended }: AdmissionQueueOptions) {
    this.#clock = clock;
    this.#priorityOf = priorityOf;
    this.#ended = ended;
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
    before?.drainAll((request) => this.#letIn(request, now));
  }

  /** Other units a second; requests stay queued. */
  setRate(podRate: number, now: number): void {
    this.#pod?.capacity.setRate(podRate, now);
    this.#queues?.setRate(podRate, now);
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
    const taken = this.#giveBack(request);
    this.#queues?.spend(units - taken, now);
  }

  /** It is under way no longer. Returns what was taken for it. */
  #giveBack(request: PodRequest): number {
    const { tenant, debited: taken } = request;
    request.debited = 0;
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
    const letIn = (request: PodRequest): void => this.#letIn(request, now);
    queues.drainGuaranteed(now, (tenant) => this.#isGuaranteed(tenant, now), letIn);
    queues.drain(now, letIn, (request) => this.#refuse(request, now));
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

  #letIn(request: PodRequest, now: number): void {
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
    counts.waited++;
    counts.waitedMs += now - waiting.since;
    return waiting;
  }
}

function directionOf({ kind }: PodRequest): Direction {
  return kind === 'write' ? 'write' : 'read';
}
