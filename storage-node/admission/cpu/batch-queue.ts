// The queued batches of one tenant. Small and large batches are in queues of their own and are served 4:1, so that a
// small request does not wait behind large ones (ABase, section 4.3).

import { Fifo } from '../fifo.ts';

/** Small batches served for each large one. */
const smallPerLarge = 4;

export class BatchQueue<T> {
  readonly #small = new Fifo<T>();
  readonly #large = new Fifo<T>();
  #smallSinceLarge = 0;

  get length(): number {
    return this.#small.length + this.#large.length;
  }

  push(item: T, isLarge: boolean): void {
    (isLarge ? this.#large : this.#small).push(item);
  }

  /** Removes and returns the batch to serve next. */
  next(): T | undefined {
    const queue = this.#next();
    if (queue === undefined) return undefined;
    this.#smallSinceLarge = queue === this.#large ? 0 : this.#smallSinceLarge + 1;
    return queue.shift();
  }

  #next(): Fifo<T> | undefined {
    const [small, large] = [this.#small, this.#large];
    if (small.length === 0) return large.length === 0 ? undefined : large;
    if (large.length === 0) return small;
    return this.#smallSinceLarge >= smallPerLarge ? large : small;
  }
}
