// Takes the entries of a Map or Set, the eldest first. `for` and `keys()` begin at the front, and step over the places of all
// entries that were deleted since V8 last made the table anew: of 65,000 entries that takes 30 us for each one taken, where
// this takes .2 us.

interface Entries<K, V> {
  entries(): Iterator<[K, V], undefined>;
  delete(key: K): boolean;
}

export class Eldest<K, V> {
  readonly #entries: Entries<K, V>;
  /** Iterator over the remaining entries. Every entry before it is deleted. */
  #rest: Iterator<[K, V], undefined>;

  constructor(entries: Entries<K, V>) {
    this.#entries = entries;
    this.#rest = entries.entries();
  }

  /** Deletes the eldest entry and returns it; undefined when there is none. */
  take(): [K, V] | undefined {
    let next = this.#rest.next();
    if (next.done === true) {
      // An iterator that has ended does not see entries that are added later.
      this.#rest = this.#entries.entries();
      next = this.#rest.next();
      if (next.done === true) return undefined;
    }
    this.#entries.delete(next.value[0]);
    return next.value;
  }
}
