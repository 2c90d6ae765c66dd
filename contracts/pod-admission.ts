// The admission stage of a pod, as connections, HTTP exchanges and the pod's own work use it: an admission queue while
// the pod has more work than capacity, and then the CPU scheduler. Without contention `admit` costs a few comparisons.

/** `queued`: `resume` will be called once. `refused`: the queue is full. */
export type AdmitResult = 'admitted' | 'queued' | 'refused';

/**
 * A request at the pod. A Redis connection has one object and uses it for each of its batches; an HTTP exchange has one of
 * its own.
 */
export interface PodRequest {
  /** Number of the tenant; `backgroundWork` for the pod's own work. */
  readonly tenant: number;
  /** `read` and `write` requests wait in separate admission queues; a `batch` goes to the CPU scheduler at once. */
  readonly kind: 'read' | 'write' | 'batch';
  /** Name of the database within its tenant; '' for a batch. */
  readonly database: string;
  /** Large requests get one time slice of their tenant while small ones get four. */
  readonly isLarge: boolean;
  /** Request units debited by estimate when it was admitted; kept by the pod. */
  debited: number;
  /** Called once after `queued`: it may run now, or has waited for too long. Must not throw. */
  resume(isAdmitted: boolean): void;
}

/** All times are monotonic milliseconds. */
export interface PodAdmission {
  /** An event-loop tick with work begins. */
  beginTick(now: number): void;
  admit(request: PodRequest, now: number): AdmitResult;
  /** Requeues an admitted request whose time slice is over. `resume` is called for the rest of its work. */
  requeue(request: PodRequest): void;
  /** Takes a request out of the admission queue. False if it is not in it (any more). */
  leave(request: PodRequest): boolean;
  /** Ends an admitted request. `units` is its actual cost in request units. */
  charge(request: PodRequest, units: number, now: number): void;
  /** Accounts for `ms` milliseconds of the thread that work of the tenant used after its `resume` had returned. */
  spent(tenant: number, ms: number): void;
  /** Whether several tenants compete for the thread: then no request may hold it for longer than a time slice. */
  isContended(now: number): boolean;
  /** Whether the request that runs should `requeue` itself: its time slice is over, and the thread is contended. */
  isSliceOver(now: number): boolean;
}

/**
 * Length of a time slice in milliseconds while several tenants compete for the thread: less than network and system take
 * of most requests, and many times the cost of switching.
 */
export const contendedSliceMs = 0.1;

/** Work on more bytes than this is large. */
export const largeWorkBytes = 16 * 1024;

/**
 * Milliseconds of one round of the event loop after which each long request works no longer than so many: requests that
 * arrived together each have a slice of their own, and they add up.
 */
const crowdedRounds = [
  { roundMs: 16, sliceMs: 0.05 },
  { roundMs: 8, sliceMs: 0.5 },
] as const;

/** When the first long request worked in this round of the event loop, monotonic milliseconds; 0 if none has yet. */
let roundBeganAt = 0;
/** Rounds in which long requests worked, and that have ended. */
let endedRounds = 0;
const endRound = (): void => {
  roundBeganAt = 0;
  endedRounds++;
};

/** Milliseconds that a long request has in this round. */
function sliceOfRound(now: number): number {
  if (roundBeganAt === 0) {
    roundBeganAt = now;
    setImmediate(endRound);
  }
  const spent = now - roundBeganAt;
  return crowdedRounds.find(({ roundMs }) => spent > roundMs)?.sliceMs ?? Infinity;
}

/** Whether work on input that has arrived, which is the first of several steps, has time in this round of the event loop. */
export function roundHasTime(): boolean {
  return sliceOfRound(performance.now()) === Infinity;
}

/** In the place of a tenant's number: work that no client waits for, and maintenance that requests wait for. */
export const backgroundWork = -2;
export const urgentBackgroundWork = -3;

/** Work in the CPU scheduler that is no request of a client. */
export function batchRequest(
  tenant: number,
  resume: (isAdmitted: boolean) => void,
  isLarge = false,
): PodRequest {
  return { tenant, kind: 'batch', database: '', isLarge, debited: 0, resume };
}

/** The work of one long request, which stops at the end of each time slice. */
export class TimeSlice implements PodRequest {
  readonly kind = 'batch';
  readonly database = '';
  /** Work that needs several slices is large. */
  readonly isLarge = true;
  readonly tenant: number;
  debited = 0;
  readonly #admission: PodAdmission | undefined;
  readonly #sliceMs: number;
  #since = performance.now();
  #resumed: (() => void) | undefined;
  /** Round of the event loop in which the scheduler granted a slice that was not used yet; -1 if none. */
  #resumedIn = -1;

  /** `sliceMs` is the longest slice while no other tenant competes. */
  constructor(admission: PodAdmission | undefined, tenant: number, sliceMs = Infinity) {
    this.#admission = admission;
    this.tenant = tenant;
    this.#sliceMs = sliceMs;
  }

  get isContended(): boolean {
    return this.#admission?.isContended(performance.now()) === true;
  }

  /** Whether the slice is over. */
  get isOver(): boolean {
    const now = performance.now();
    const ms = now - this.#since;
    if (ms > this.#sliceMs || ms > sliceOfRound(now)) return true;
    return ms > contendedSliceMs && this.isContended;
  }

  /** Begins a new slice. The time since the last slice is not charged to this request. */
  restart(): void {
    this.#since = performance.now();
  }

  /**
   * Waits for a promise that may have resolved already. The wait is not counted, but the work before it is: awaiting
   * a resolved promise lets no other work run.
   */
  async awaiting<T>(pending: PromiseLike<T>): Promise<T> {
    const worked = performance.now() - this.#since;
    try {
      return await pending;
    } finally {
      this.#since = performance.now() - worked;
    }
  }

  /**
   * Called before a step of several milliseconds by work that continues when something has arrived: dozens of requests
   * may continue in one round of the event loop. A promise of the next slice where long requests have filled this
   * round; undefined where the step may begin.
   */
  turn(): Promise<void> | undefined {
    const isResumed = this.#resumedIn === endedRounds;
    this.#resumedIn = -1;
    // What the scheduler has resumed in this round proceeds in any case: otherwise arrivals could keep it waiting for ever.
    if (isResumed || roundHasTime()) return undefined;
    return this.yield();
  }

  resume(): void {
    this.restart();
    // The round begins here if it has not yet.
    sliceOfRound(this.#since);
    this.#resumedIn = endedRounds;
    this.#resumed!();
  }

  /** Resolves when the next slice begins. */
  async yield(): Promise<void> {
    const admission = this.#admission;
    if (admission === undefined) {
      await new Promise(setImmediate);
      this.restart();
      return;
    }
    admission.spent(this.tenant, performance.now() - this.#since);
    await new Promise<void>((resolve) => {
      this.#resumed = resolve;
      admission.requeue(this);
    });
  }
}
