// Simulated time. Events run in the order of their times; events of equal time run in the order in which they were
// scheduled. Policies use the simulation as their `Clock`.

import { Heap } from '../../../request-units/heap.ts';
import type { Clock } from '../../../universal-row/environment.ts';

interface Event {
  at: number;
  /** Order of scheduling. */
  order: number;
  run: () => void;
}

export class Simulation implements Clock {
  #now = 0;
  #order = 0;
  readonly #events = new Heap<Event>((a, b) => a.at < b.at || (a.at === b.at && a.order < b.order));

  /** Milliseconds since the start. */
  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#now;
  }

  get pending(): number {
    return this.#events.size;
  }

  /** Runs `event` at `time`, which must not be past. */
  at(time: number, event: () => void): void {
    if (!(time >= this.#now)) throw new RangeError(`${time} is before ${this.#now}`);
    this.#events.push({ at: time, order: this.#order++, run: event });
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
    for (let next = this.#events.peek(); next !== undefined && next.at <= time; ) {
      this.#events.pop();
      this.#now = next.at;
      next.run();
      next = this.#events.peek();
    }
    this.#now = time;
  }
}
