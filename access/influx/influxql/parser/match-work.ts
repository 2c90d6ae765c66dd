// What regular expressions do within one step of the event loop, in instructions followed. Steps that an automaton
// has taken before are as good as free and are not counted.

import { QueryError } from '../result.ts';

/** Work after which a loop over rows pauses: a few milliseconds. */
const pauseWork = 2 ** 16;
/** Work of one step of the event loop: some 50 ms. */
export const maxMatchWork = 2 ** 20;

class MatchWork {
  #done = 0;
  /** Of all time. */
  total = 0;

  /** Others should have their turn before more is done. */
  get isDue(): boolean {
    return this.#done >= pauseWork;
  }

  /** Throws `QueryError` when it is more than one step may do. */
  add(work: number): void {
    // Whatever comes in the next round of the event loop begins anew.
    if (this.#done === 0) setImmediate(() => (this.#done = 0));
    this.total += work;
    this.#done += work;
    if (this.#done <= maxMatchWork) return;
    throw new QueryError(
      `regular expression takes more than ${maxMatchWork} steps in one go: ask for fewer values or a simpler pattern`,
    );
  }
}

/** Of this thread. */
export const matchWork = new MatchWork();
