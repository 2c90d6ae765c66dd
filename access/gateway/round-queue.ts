// Runs the work of many connections for a few milliseconds in each round of the event loop; the rest waits for later
// rounds. Before the next item begins, everything that the previous item started is complete, promises and
// `process.nextTick` included. The measured time of an item therefore includes that work.

const defaultRoundMs = 4;

/** A queue of work. The implementation decides the order. */
export interface WaitingWork<T> {
  readonly size: number;
  add(work: T): void;
  /** Called only while there is some. */
  take(): T;
}

export class RoundQueue<T> {
  readonly #waiting: WaitingWork<T>;
  readonly #begin: (work: T) => void;
  readonly #roundMs: number;
  /** Monotonic milliseconds: when this round first had work. */
  #roundAt = 0;
  /** The next round is yet to begin. */
  #isScheduled = false;

  constructor(waiting: WaitingWork<T>, begin: (work: T) => void, roundMs = defaultRoundMs) {
    this.#waiting = waiting;
    this.#begin = begin;
    this.#roundMs = roundMs;
  }

  /** Begins the work at once while there is time, and none before it waits. */
  add(work: T): void {
    if (this.#waiting.size === 0 && this.#hasTime()) this.#begin(work);
    else this.#waiting.add(work);
  }

  #hasTime(): boolean {
    if (this.#isScheduled) return performance.now() - this.#roundAt < this.#roundMs;
    this.#isScheduled = true;
    this.#roundAt = performance.now();
    setImmediate(this.#nextRound);
    return true;
  }

  readonly #nextRound = (): void => {
    this.#isScheduled = false;
    if (this.#waiting.size === 0) return;
    this.#roundAt = performance.now();
    this.#isScheduled = true;
    this.#next();
  };

  readonly #next = (): void => {
    try {
      if (this.#waiting.size > 0) this.#begin(this.#waiting.take());
    } finally {
      const isOver = performance.now() - this.#roundAt >= this.#roundMs;
      if (isOver || this.#waiting.size === 0) setImmediate(this.#nextRound);
      else queueMicrotask(this.#afterAll);
    }
  };

  /** Ticks run when there is no microtask left, and this is the last one of them. */
  readonly #afterAll = (): void => {
    process.nextTick(this.#next);
  };
}

/** A first-in, first-out queue. */
export class FirstCome<T> implements WaitingWork<T> {
  #queue: T[] = [];
  #taken = 0;

  get size(): number {
    return this.#queue.length - this.#taken;
  }

  add(work: T): void {
    this.#queue.push(work);
  }

  take(): T {
    const work = this.#queue[this.#taken++]!;
    // Items that were taken are soon released to the garbage collector.
    if (this.#taken * 2 >= this.#queue.length) {
      this.#queue = this.#queue.slice(this.#taken);
      this.#taken = 0;
    }
    return work;
  }
}
