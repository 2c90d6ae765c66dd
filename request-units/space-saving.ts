// The heaviest of very many names, in memory for few: the Space-Saving algorithm (Metwally, Agrawal and El
// Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data Streams", 2005). A name that is not
// among those kept takes the place, and the count, of the lightest. Every name heavier than the total
// divided by the capacity is among them; a count is too high by at most its `error`.

export interface HeavyName {
  name: string;
  count: number;
  /** By how much the count may be too high. */
  error: number;
}

interface Slot extends HeavyName {
  /** In the heap. */
  at: number;
}

export class SpaceSaving {
  readonly #capacity: number;
  readonly #byName = new Map<string, Slot>();
  /** The lightest first: a binary heap by count. */
  readonly #heap: Slot[] = [];

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#heap.length;
  }

  add(name: string, weight: number): void {
    let slot = this.#byName.get(name);
    if (slot === undefined) {
      if (this.#heap.length < this.#capacity) {
        slot = { name, count: 0, error: 0, at: this.#heap.length };
        this.#heap.push(slot);
        this.#rise(slot);
      } else {
        slot = this.#heap[0]!;
        this.#byName.delete(slot.name);
        slot.name = name;
        slot.error = slot.count;
      }
      this.#byName.set(name, slot);
    }
    slot.count += weight;
    this.#sink(slot);
  }

  /** 0 for a name that is not kept. */
  count(name: string): number {
    return this.#byName.get(name)?.count ?? 0;
  }

  /** Decays old counts. Removes entries with almost nothing left. */
  fade(factor: number, least: number): void {
    const kept: Slot[] = [];
    for (const slot of this.#heap) {
      slot.count *= factor;
      slot.error *= factor;
      if (slot.count >= least) kept.push(slot);
      else this.#byName.delete(slot.name);
    }
    // Scaling by one factor keeps the order of the counts. Removed slots may have been anywhere in the heap, so it is
    // rebuilt.
    kept.sort((a, b) => a.count - b.count);
    kept.forEach((slot, at) => (slot.at = at));
    this.#heap.splice(0, Infinity, ...kept);
  }

  /** The heaviest first. */
  heaviest(limit: number, wanted: (name: string) => boolean = () => true): HeavyName[] {
    const all = this.#heap.filter((slot) => wanted(slot.name));
    all.sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1));
    return all.slice(0, limit).map(({ name, count, error }) => ({ name, count, error }));
  }

  #rise(slot: Slot): void {
    const heap = this.#heap;
    while (slot.at > 0) {
      const parent = heap[(slot.at - 1) >> 1]!;
      if (parent.count <= slot.count) return;
      this.#swap(slot, parent);
    }
  }

  #sink(slot: Slot): void {
    const heap = this.#heap;
    for (;;) {
      const left = heap[slot.at * 2 + 1];
      if (left === undefined) return;
      const right = heap[slot.at * 2 + 2];
      const lighter = right !== undefined && right.count < left.count ? right : left;
      if (lighter.count >= slot.count) return;
      this.#swap(slot, lighter);
    }
  }

  #swap(a: Slot, b: Slot): void {
    const at = a.at;
    a.at = b.at;
    b.at = at;
    this.#heap[a.at] = a;
    this.#heap[b.at] = b;
  }
}
