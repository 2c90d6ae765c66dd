// The queued batches of one tenant. Small and large batches are in queues of their own and are served 4:1, so that a
// small request does not wait behind large ones (ABase, section 4.3).

import { Fifo } from './fifo.ts';

export interface TurnOrder {
  /** Small and large batches have queues of their own; otherwise they are served in the order of arrival. */
  classes: boolean;
}

/** Small batches served for each large one. */
const smallPerLarge = 4;

interface Entry<T> {
  item: T;
  /** Of arrival in both queues. */
  order: number;
}

export class TurnLine<T> {
  readonly #order: Readonly<TurnOrder>;
  readonly #small = new Fifo<Entry<T>>();
  readonly #large = new Fifo<Entry<T>>();
  #arrivals = 0;
  #smallSinceLarge = 0;

  /** `order` may change at any time. */
  constructor(order: Readonly<TurnOrder>) {
    this.#order = order;
  }

  get length(): number {
    return this.#small.length + this.#large.length;
  }

  push(item: T, isLarge: boolean): void {
    (isLarge ? this.#large : this.#small).push({ item, order: this.#arrivals++ });
  }

  /** Removes and returns the batch to serve next. */
  next(): T | undefined {
    const queue = this.#next();
    if (queue === undefined) return undefined;
    this.#smallSinceLarge = queue === this.#large ? 0 : this.#smallSinceLarge + 1;
    return queue.shift().item;
  }

  #next(): Fifo<Entry<T>> | undefined {
    const [small, large] = [this.#small, this.#large];
    if (small.length === 0) return large.length === 0 ? undefined : large;
    if (large.length === 0) return small;
    const isLarge = this.#order.classes
      ? this.#smallSinceLarge >= smallPerLarge
      : large.at(0)!.order < small.at(0)!.order;
    return isLarge ? large : small;
  }
}
