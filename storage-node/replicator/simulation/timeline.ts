// Virtual time: events by the time they are due, and among those by the order in which they were made.

interface Event {
  at: number;
  order: number;
  run: () => void;
}

export class Timeline {
  /** Milliseconds. */
  now = 0;
  events = 0;
  #order = 0;
  #immediates: (() => void)[] = [];
  readonly #heap: Event[] = [];

  after(ms: number, run: () => void): void {
    const event = { at: this.now + ms, order: this.#order++, run };
    const heap = this.#heap;
    heap.push(event);
    for (let i = heap.length - 1; i > 0; ) {
      const up = (i - 1) >> 1;
      if (!isBefore(heap[i]!, heap[up]!)) break;
      [heap[i], heap[up]] = [heap[up]!, heap[i]!];
      i = up;
    }
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.after(ms, resolve));
  }

  /** Runs events until `end`. Promises resolved by an event are processed before the next one. */
  async runUntil(end: number, isDone: () => boolean = () => false): Promise<void> {
    for (let next = this.#heap[0]; next && next.at <= end && !isDone(); next = this.#heap[0]) {
      this.#pop();
      this.now = next.at;
      this.events++;
      next.run();
      await this.settled();
      for (let act = this.#immediates.shift(); act; act = this.#immediates.shift()) {
        act();
        await this.settled();
      }
    }
    if (!isDone()) this.now = end;
  }

  /** While `act` runs, `setImmediate` is the timeline's: a tick of the event loop costs more than most events. */
  async instead<T>(act: () => Promise<T>): Promise<T> {
    const { setImmediate } = globalThis;
    const own = <A extends unknown[]>(run: (...args: A) => void, ...args: A): void =>
      void this.#immediates.push(() => run(...args));
    globalThis.setImmediate = own as typeof setImmediate;
    try {
      return await act();
    } finally {
      globalThis.setImmediate = setImmediate;
    }
  }

  /** Resolves once what an event has begun has nothing left to do: Node calls it after all promises. */
  protected settled(): Promise<void> {
    return new Promise((resolve) => process.nextTick(resolve));
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    heap[0] = last;
    for (let i = 0; ; ) {
      let least = i;
      for (const child of [2 * i + 1, 2 * i + 2]) {
        if (child < heap.length && isBefore(heap[child]!, heap[least]!)) least = child;
      }
      if (least === i) return;
      [heap[i], heap[least]] = [heap[least]!, heap[i]!];
      i = least;
    }
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

/** A generator (mulberry32) with its seed: the same seed, the same numbers. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 0x1_0000_0000;
  }

  below(count: number): number {
    return Math.floor(this.next() * count);
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!;
  }

  bytes(into: Uint8Array): void {
    for (let i = 0; i < into.length; i++) into[i] = this.below(256);
  }
}
