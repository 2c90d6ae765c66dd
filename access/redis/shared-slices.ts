// Slices of long work share the time that a round of the event loop has for them. With `setImmediate` each of a hundred
// commands would run a slice in every round, and new requests would wait for a hundred slices.

const roundMs = 4;
/** Slices that have run stay in the queue until there are as many: to take each out would move all others. */
const keptDone = 1024;

export class SharedSlices {
  readonly #queue: (() => void)[] = [];
  #next = 0;
  #isScheduled = false;
  readonly #run = (): void => this.#round();

  /** Runs the slice in a later round of the event loop, after those that wait already. */
  add(slice: () => void): void {
    this.#queue.push(slice);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#run);
  }

  #round(): void {
    const began = performance.now();
    // Requests added meanwhile belong to a later round: each has one slice a round at most.
    const end = this.#queue.length;
    try {
      do this.#queue[this.#next++]!();
      while (this.#next < end && performance.now() - began < roundMs);
    } finally {
      if (this.#next === this.#queue.length || this.#next >= keptDone) {
        this.#queue.splice(0, this.#next);
        this.#next = 0;
      }
      this.#isScheduled = this.#queue.length > 0;
      if (this.#isScheduled) setImmediate(this.#run);
    }
  }
}

/** Time slices of this thread. */
export const sharedSlices = new SharedSlices();
