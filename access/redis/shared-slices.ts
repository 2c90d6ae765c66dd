// Slices of long commands share a time budget in each round of the event loop. With `setImmediate` alone, a hundred long
// commands would run a hundred slices in every round, and new requests would wait for all of them.

const roundMs = 4;
/** Finished slices are removed from the queue in batches of this size: removing each would move all later ones. */
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
