// FIFO queue in an array whose consumed part is removed from time to time.

/** Taken ones that are kept at most. */
const mostTaken = 64;

export class Fifo<T> {
  #items: T[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  /** The entry at an index, the first being 0. */
  at(index: number): T | undefined {
    return this.#items[this.#head + index];
  }

  push(item: T): void {
    this.#items.push(item);
  }

  /** Takes out the first, which must be there. */
  shift(): T {
    const item = this.#items[this.#head++]!;
    if (this.length === 0 || this.#head >= mostTaken) {
      this.#items.splice(0, this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** Takes out one, which must be there. */
  take(index: number): T {
    return index === 0 ? this.shift() : this.#items.splice(this.#head + index, 1)[0]!;
  }

  /** The index of the first that matches, or -1. */
  find(matches: (item: T) => boolean): number {
    for (let index = 0; index < this.length; index++) if (matches(this.at(index)!)) return index;
    return -1;
  }
}
