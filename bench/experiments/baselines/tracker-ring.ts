// Which tracker counts for which throttle key (Amazon, "Fairness in multi-tenant systems"): consistent hashing, so that
// with a tracker that comes or goes only the keys move that it gets or had.

import { hashBytes } from '../../../universal-row/bytes.ts';

export class TrackerRing {
  readonly #pointsEach: number;
  readonly #trackers = new Set<string>();
  #points = new Uint32Array(0);
  #owners: string[] = [];

  /** More points for each tracker spread the keys more evenly. */
  constructor(trackers: Iterable<string> = [], pointsEach = 128) {
    this.#pointsEach = pointsEach;
    for (const tracker of trackers) this.#trackers.add(tracker);
    this.#build();
  }

  add(tracker: string): void {
    this.#trackers.add(tracker);
    this.#build();
  }

  remove(tracker: string): void {
    this.#trackers.delete(tracker);
    this.#build();
  }

  /** By any hash of the key; undefined if there is no tracker. */
  ownerOf(hash: number): string | undefined {
    const points = this.#points;
    const at = mixed(hash);
    let low = 0;
    let high = points.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (points[middle]! < at) low = middle + 1;
      else high = middle;
    }
    return this.#owners[low === points.length ? 0 : low];
  }

  #build(): void {
    const all: { at: number; tracker: string }[] = [];
    for (const tracker of this.#trackers) {
      const name = Buffer.from(tracker);
      const first = hashBytes(name, 0, name.length);
      for (let i = 0; i < this.#pointsEach; i++) {
        all.push({ at: mixed(first + Math.imul(i, 0x9e3779b9)), tracker });
      }
    }
    // By name where two have the same point: all that know the same trackers must agree.
    all.sort((a, b) => a.at - b.at || (a.tracker < b.tracker ? -1 : 1));
    this.#points = Uint32Array.from(all, ({ at }) => at);
    this.#owners = all.map(({ tracker }) => tracker);
  }
}

function mixed(hash: number): number {
  let h = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
