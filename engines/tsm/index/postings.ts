// Postings: the series with each value of a tag, as a chain through the ordinals for each value,
// newest first. Built when a tag with many values is first filtered by few of them, and then
// extended by the series added since.

import type { MemoryTally } from './growing.ts';
import type { ValueColumn } from './value-column.ts';

export class Postings {
  readonly #tally: MemoryTally;
  /** By value number: one more than the last ordinal that has it. */
  #last: Uint32Array = new Uint32Array(0);
  /** By ordinal: one more than the ordinal before it with the same value. */
  #previous: Uint32Array = new Uint32Array(0);
  #upTo = 0;

  constructor(tally: MemoryTally) {
    this.#tally = tally;
  }

  /** Takes in the column up to `ordinals`. `values` is the highest value number. */
  catchUp(column: ValueColumn, ordinals: number, values: number): void {
    if (this.#upTo === ordinals) return;
    this.#last = this.#extended(this.#last, values + 1);
    this.#previous = this.#extended(this.#previous, ordinals);
    const last = this.#last;
    const previous = this.#previous;
    for (let o = this.#upTo; o < ordinals; o++) {
      const value = column.get(o);
      if (value === 0) continue;
      previous[o] = last[value]!;
      last[value] = o + 1;
    }
    this.#upTo = ordinals;
  }

  /** Adds the ordinals of the series that have the value, highest first. */
  collect(value: number, into: number[]): void {
    let next = this.#last[value]!;
    while (next !== 0) {
      into.push(next - 1);
      next = this.#previous[next - 1]!;
    }
  }

  #extended(before: Uint32Array, length: number): Uint32Array {
    if (length <= before.length) return before;
    const after = new Uint32Array(Math.max(length, before.length + (before.length >>> 2)));
    after.set(before);
    this.#tally.bytes += after.byteLength - before.byteLength;
    return after;
  }
}
