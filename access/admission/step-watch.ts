// Detects synchronous steps that occupy a plane's thread for too long, and finds their cause: the work itself, garbage
// collection, or a machine so busy that the thread had no processor.

import { backgroundWork } from '../../contracts/pod-admission.ts';
import type { StepInfo, StepSource, StepWatcher } from '../../contracts/step-watcher.ts';
import { NewestByTenant } from './newest-by-tenant.ts';

/** Why a step was long: its own work, garbage collection, or other threads and processes that had the processor. */
type StepCause = 'work' | 'collection' | 'preemption';

export const stepCauses: readonly StepCause[] = ['work', 'collection', 'preemption'];

export interface LongStep extends StepInfo {
  /** Ascending in its plane. */
  id: number;
  /** When it ended, Unix milliseconds. */
  at: number;
  durationMs: number;
  /** Milliseconds of the step spent in garbage collection. */
  collectionMs: number;
  /** Lower bound of the milliseconds in which the thread had no processor; 0 if the system does not report this. */
  preemptedMs: number;
  cause: StepCause;
}

/** Interruptions of the thread during a span of monotonic milliseconds. */
export interface Interruptions {
  /** Garbage collection. Known only some time after the span: see `StepWatchOptions.later`. */
  collectionMs(fromMs: number, toMs: number): number;
  /** A lower bound of the time without a processor. To be asked at the end of the span. */
  preemptedMs(fromMs: number, toMs: number): number;
}

interface StepWatchOptions {
  /** Milliseconds from which on a step is long. */
  limitMs?: number;
  /** Hears of each long step. */
  report: (step: LongStep) => void;
  interruptions: Interruptions;
  /** Runs the function once the interruptions of finished steps are known. */
  later: (run: () => void) => void;
  /** Something was touched after a rest: heartbeats are wanted again. */
  awake?: () => void;
  /** Unix milliseconds. */
  now: () => number;
}

const defaultLimitMs = 25;
const keptOfTenant = 64;
const kept = 512;
const longestText = 200;
/** Limit of steps whose cause is not known yet. Further steps are classified at once. */
const maxPending = 64;
/** Heartbeats after which the last used object is released: it may be large. */
const keptHeartbeats = 100;

interface StepCounts {
  count: number;
  longestMs: number;
}

export class StepWatch implements StepWatcher {
  readonly limitMs: number;
  readonly #options: StepWatchOptions;
  readonly #steps = new NewestByTenant<LongStep>({ ofTenant: keptOfTenant, total: kept });
  readonly #counts: Record<StepCause, StepCounts> = {
    work: { count: 0, longestMs: 0 },
    collection: { count: 0, longestMs: 0 },
    preemption: { count: 0, longestMs: 0 },
  };
  #pending = 0;
  #nextId = 1;
  #last: StepSource | undefined;
  #lastSeen: StepSource | undefined;
  #heartbeatsOfLast = 0;
  /** Time of long steps since the last heartbeat. */
  #knownMs = 0;

  constructor(options: StepWatchOptions) {
    this.#options = options;
    this.limitMs = options.limitMs ?? defaultLimitMs;
  }

  /**
   * Whether no source was used recently. A stall could then not be attributed to any source, so heartbeats are not
   * needed.
   */
  get isAtRest(): boolean {
    return this.#last === undefined;
  }

  touched(source: StepSource): void {
    if (this.#last === undefined) this.#options.awake?.();
    this.#last = source;
  }

  ended(startedAtMs: number, endedAtMs: number, source: StepSource): void {
    if (endedAtMs - startedAtMs < this.limitMs) return;
    this.#knownMs += endedAtMs - startedAtMs;
    this.#found(startedAtMs, endedAtMs, source.stepInfo());
  }

  /**
   * Called by a timer that was due at `dueAtMs`: a stall since then without a known step is a long
   * step of the object used last.
   */
  heartbeat(dueAtMs: number, nowMs: number): void {
    const unknownMs = nowMs - dueAtMs - this.#knownMs;
    this.#knownMs = 0;
    if (unknownMs >= this.limitMs) {
      const info = this.#last?.stepInfo() ?? {
        what: 'unknown',
        tenant: backgroundWork,
        bytes: 0,
      };
      this.#found(nowMs - unknownMs, nowMs, { ...info, what: `after ${info.what}` });
    }
    if (this.#last !== this.#lastSeen) this.#heartbeatsOfLast = 0;
    else if (++this.#heartbeatsOfLast > keptHeartbeats) this.#last = undefined;
    this.#lastSeen = this.#last;
  }

  countsOf(cause: StepCause): StepCounts {
    return this.#counts[cause];
  }

  /** The newest first; of one tenant, if its number is given. */
  newest(limit: number, tenant?: number): LongStep[] {
    return this.#steps.newest(limit, tenant);
  }

  forget(tenant: number): void {
    this.#steps.forget(tenant);
  }

  #found(startedAtMs: number, endedAtMs: number, info: StepInfo): void {
    const { interruptions, later, now } = this.#options;
    const durationMs = endedAtMs - startedAtMs;
    const preemptedMs = Math.min(interruptions.preemptedMs(startedAtMs, endedAtMs), durationMs);
    const at = now();
    const judge = (): void => {
      this.#judged({
        ...info,
        what: info.what.slice(0, longestText),
        id: this.#nextId++,
        at,
        durationMs,
        preemptedMs,
        collectionMs: Math.min(interruptions.collectionMs(startedAtMs, endedAtMs), durationMs),
        cause: 'work',
      });
    };
    if (this.#pending >= maxPending) {
      judge();
      return;
    }
    this.#pending++;
    later(() => {
      this.#pending--;
      judge();
    });
  }

  #judged(step: LongStep): void {
    const { durationMs, collectionMs, preemptedMs } = step;
    if (durationMs - collectionMs - preemptedMs < this.limitMs) {
      step.cause = collectionMs >= preemptedMs ? 'collection' : 'preemption';
    }
    const counts = this.#counts[step.cause];
    counts.count++;
    counts.longestMs = Math.max(counts.longestMs, durationMs);
    this.#steps.add(step);
    this.#options.report(step);
  }
}
