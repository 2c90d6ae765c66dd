// Time that passes when nothing else is to be done at its moment: events run in the order of their times, and
// of their scheduling where the times are equal. Policies get it as their `Clock`.

import type { Clock } from '../../../universal-row/environment.ts';

interface Event {
  at: number;
  /** Of scheduling. */
  order: number;
  run: () => void;
}

export class Simulation implements Clock {
  #now = 0;
  #order = 0;
  /** A binary heap, the next event first. */
  readonly #heap: Event[] = [];

  /** Milliseconds since the start. */
  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#now;
  }

  get pending(): number {
    return this.#heap.length;
  }

  /** Runs `event` at `time`, which must not be past. */
  at(time: number, event: () => void): void {
    if (!(time >= this.#now)) throw new RangeError(`${time} is before ${this.#now}`);
    const heap = this.#heap;
    const entry = { at: time, order: this.#order++, run: event };
    let i = heap.length;
    heap.push(entry);
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (isBefore(heap[parent]!, entry)) break;
      heap[i] = heap[parent]!;
      i = parent;
    }
    heap[i] = entry;
  }

  after(delay: number, event: () => void): void {
    this.at(this.#now + delay, event);
  }

  /** From `first` on, until the run ends or `event` returns false. */
  every(period: number, event: () => boolean | void, first = period): void {
    const again = (): void => {
      if (event() !== false) this.after(period, again);
    };
    this.after(first, again);
  }

  /** Runs all events up to and including `time`, which is then. */
  runUntil(time: number): void {
    while (this.#heap.length > 0 && this.#heap[0]!.at <= time) {
      const event = this.#take();
      this.#now = event.at;
      event.run();
    }
    this.#now = time;
  }

  #take(): Event {
    const heap = this.#heap;
    const first = heap[0]!;
    const last = heap.pop()!;
    const { length } = heap;
    if (length === 0) return first;
    let i = 0;
    for (;;) {
      let child = i * 2 + 1;
      if (child >= length) break;
      if (child + 1 < length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (isBefore(last, heap[child]!)) break;
      heap[i] = heap[child]!;
      i = child;
    }
    heap[i] = last;
    return first;
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
