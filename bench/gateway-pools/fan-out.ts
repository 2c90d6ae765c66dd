// Which proxy serves a key (ABase, section 4.4): proxies stand in groups, a key belongs to one group by its hash, and any
// proxy of that group may serve it. With many groups each proxy's cache sees few keys and hits more often; with few,
// a hot key spreads over more proxies.

import type { Rng } from '../../universal-row/environment.ts';

const defaultGroups = 15;

export class FanOut {
  readonly #proxies: number;
  #groups: number;

  constructor(proxies: number, groups = defaultGroups) {
    this.#proxies = proxies;
    this.#groups = clamped(groups, proxies);
  }

  get groups(): number {
    return this.#groups;
  }

  /** Takes effect with the next key; caches warm up anew for those that move. */
  setGroups(groups: number): void {
    this.#groups = clamped(groups, this.#proxies);
  }

  groupOf(hash: number): number {
    return (mixed(hash) >>> 0) % this.#groups;
  }

  /** Group g has the proxies g, g + groups, g + 2 groups ... */
  pick(hash: number, rng: Rng): number {
    const group = this.groupOf(hash);
    const size = Math.ceil((this.#proxies - group) / this.#groups);
    return group + Math.floor(rng.next() * size) * this.#groups;
  }

  /** Keys of one request by their groups, so that each group is asked once. */
  split(hashes: readonly number[]): Map<number, number[]> {
    const byGroup = new Map<number, number[]>();
    hashes.forEach((hash, i) => {
      const group = this.groupOf(hash);
      const list = byGroup.get(group);
      if (list === undefined) byGroup.set(group, [i]);
      else list.push(i);
    });
    return byGroup;
  }
}

function clamped(groups: number, proxies: number): number {
  return Math.max(1, Math.min(proxies, Math.floor(groups)));
}

/** Partitions are chosen by the same hash: without this a group would see a few partitions only. */
function mixed(hash: number): number {
  let h = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b);
  h = Math.imul(h ^ (h >>> 16), 0x45d9f3b);
  return h ^ (h >>> 16);
}
