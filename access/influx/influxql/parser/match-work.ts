// Counts the work of regular expressions within one event-loop tick, in instructions followed.
// Cached steps of an automaton cost nearly nothing and are not counted.

import { QueryError } from '../result.ts';

/** Work after which a loop over rows pauses: a few milliseconds. */
const pauseWork = 2 ** 16;
/** Work of one step of the event loop: some 50 ms. */
export const maxMatchWork = 2 ** 20;

class MatchWork {
  #done = 0;
  /** Instructions since the start. */
  total = 0;

  /** Whether matching should yield to other work now. */
  get isDue(): boolean {
    return this.#done >= pauseWork;
  }

  /** Throws `QueryError` when it is more than one step may do. */
  add(work: number): void {
    // The count restarts in the next event-loop tick.
    if (this.#done === 0) setImmediate(() => (this.#done = 0));
    this.total += work;
    this.#done += work;
    if (this.#done <= maxMatchWork) return;
    throw new QueryError(
      `regular expression takes more than ${maxMatchWork} steps in one go: ask for fewer values or a simpler pattern`,
    );
  }
}

/** One instance for the thread. */
export const matchWork = new MatchWork();
