// Series by key.

import type { MemoryTally } from './growing.ts';
import { grownPairs, placePair } from './hash-pairs.ts';
import type { SeriesRows } from './series-rows.ts';

const initialSlots = 16;

export class SeriesTable {
  readonly #rows: SeriesRows;
  readonly #tally: MemoryTally;
  #pairs: Uint32Array = new Uint32Array(2 * initialSlots);
  #count = 0;

  constructor(rows: SeriesRows, tally: MemoryTally) {
    this.#rows = rows;
    this.#tally = tally;
    tally.bytes += this.#pairs.byteLength;
  }

  /** -1 when there is none. */
  find(keys: Buffer, start: number, end: number, hash: number): number {
    const pairs = this.#pairs;
    const mask = (pairs.length >>> 1) - 1;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const series = pairs[2 * slot]! - 1;
      if (series < 0) return -1;
      if (pairs[2 * slot + 1] === hash && this.#rows.equalsKey(series, keys, start, end)) {
        return series;
      }
    }
  }

  add(series: number, hash: number): void {
    const slots = this.#pairs.length >>> 1;
    if (++this.#count * 10 > slots * 7) {
      this.#tally.bytes += this.#pairs.byteLength;
      this.#pairs = grownPairs(this.#pairs);
    }
    placePair(this.#pairs, series + 1, hash);
  }

  remove(series: number, hash: number): void {
    const pairs = this.#pairs;
    const mask = (pairs.length >>> 1) - 1;
    let hole = hash & mask;
    while (pairs[2 * hole] !== series + 1) hole = (hole + 1) & mask;
    // Pairs behind it move up, unless that would take one before the slot where its search begins.
    for (let slot = (hole + 1) & mask; pairs[2 * slot] !== 0; slot = (slot + 1) & mask) {
      const home = pairs[2 * slot + 1]! & mask;
      if (((slot - home) & mask) < ((slot - hole) & mask)) continue;
      pairs[2 * hole] = pairs[2 * slot]!;
      pairs[2 * hole + 1] = pairs[2 * slot + 1]!;
      hole = slot;
    }
    pairs[2 * hole] = 0;
    this.#count--;
  }
}
