// Virtual time of several processes in one: what a process does later, by timers, by its disk or by promises, waits while the
// process stands still, and is not done once it has ended.

import { Timeline, type Random } from '../../storage-node/replicator/simulation/timeline.ts';

/** One life of a process. */
export interface Owner {
  isAlive: boolean;
  /** It stands still until this time. */
  pausedUntil: number;
  /** When the last of its immediates is due. */
  immediateAt: number;
}

/** A timer of `setTimeout` and `setInterval`. */
class Timer {
  isActive = true;
  /** How often it has begun to wait. */
  rounds = 0;
  readonly #wait: (timer: Timer) => void;

  constructor(wait: (timer: Timer) => void) {
    this.#wait = wait;
    wait(this);
  }

  /** It waits anew. */
  refresh(): this {
    this.#wait(this);
    return this;
  }

  unref(): this {
    return this;
  }
  ref(): this {
    return this;
  }
}

/** Longest time until an immediate runs, milliseconds: the event loop does other things meanwhile. */
const immediateMs = 0.3;

/** Unix time of the beginning, milliseconds. */
const beganAt = 1_000_000;

export class OwnedTimeline extends Timeline {
  /** Whose code runs now; undefined for that of the test. */
  #owner: Owner | undefined;

  override after(ms: number, run: () => void): void {
    const owner = this.#owner;
    const go = (): void => {
      if (owner !== undefined) {
        if (!owner.isAlive) return;
        const left = owner.pausedUntil - this.now;
        if (left > 0) {
          super.after(left, go);
          return;
        }
      }
      this.#owner = owner;
      run();
    };
    super.after(ms, go);
  }

  /** Runs code of a process, or of the test. */
  as<T>(owner: Owner | undefined, run: () => T): T {
    const before = this.#owner;
    this.#owner = owner;
    try {
      return run();
    } finally {
      this.#owner = before;
    }
  }

  /** While `act` runs, the timers, the clocks and the random numbers of Node are those of this timeline. */
  async insteadOfTimers<T>(random: Random, act: () => Promise<T>): Promise<T> {
    const { setImmediate, setTimeout, setInterval, clearTimeout, clearInterval } = globalThis;
    const clock = Object.getOwnPropertyDescriptor(performance, 'now');
    const { now } = Date;
    const { random: drawn } = Math;
    const clear = (timer?: Timer): void => {
      if (timer !== undefined) timer.isActive = false;
    };
    const timers = {
      setImmediate: <A extends unknown[]>(run: (...args: A) => void, ...args: A): void => {
        const owner = this.#owner;
        let at = this.now + random.next() * immediateMs;
        // In their order.
        if (owner !== undefined) owner.immediateAt = at = Math.max(at, owner.immediateAt);
        this.after(at - this.now, () => run(...args));
      },
      setTimeout: (run: () => void, ms = 0): Timer =>
        new Timer((timer) => {
          const round = ++timer.rounds;
          this.after(Math.max(1, ms), () => {
            if (timer.isActive && timer.rounds === round) run();
          });
        }),
      setInterval: (run: () => void, ms: number): Timer =>
        new Timer((timer) => {
          this.after(ms, () => {
            if (!timer.isActive) return;
            run();
            timer.refresh();
          });
        }),
      clearTimeout: clear,
      clearInterval: clear,
    };
    Object.assign(globalThis, timers);
    performance.now = () => this.now;
    Date.now = () => beganAt + Math.floor(this.now);
    Math.random = () => random.next();
    try {
      return await act();
    } finally {
      if (clock === undefined) Reflect.deleteProperty(performance, 'now');
      else Object.defineProperty(performance, 'now', clock);
      Date.now = now;
      Math.random = drawn;
      Object.assign(globalThis, { setImmediate, setTimeout, setInterval });
      Object.assign(globalThis, { clearTimeout, clearInterval });
    }
  }
}
