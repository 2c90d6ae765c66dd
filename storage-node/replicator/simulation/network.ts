// Messages between nodes: late, lost, twice, out of order; links can be cut one way. As over a
// connection, messages that are neither late nor duplicated keep their order, except in histories
// that say otherwise.

import type { Random, Timeline } from './timeline.ts';

interface NetworkFaults {
  /** Probabilities. */
  loss: number;
  duplicates: number;
  /** Milliseconds: the usual delay, and the delay of late messages. */
  delay: number;
  lateDelay: number;
  late: number;
  /** Everything may overtake everything. */
  isUnordered: boolean;
}

export const noFaults: NetworkFaults = {
  loss: 0,
  duplicates: 0,
  delay: 2,
  lateDelay: 0,
  late: 0,
  isUnordered: false,
};

interface Link {
  isCut: boolean;
  /** Arrival time of the last message sent. */
  lastAt: number;
}

export class Network {
  faults: NetworkFaults = noFaults;
  readonly #timeline: Timeline;
  readonly #random: Random;
  readonly #deliver: (from: number, to: number, bytes: Uint8Array) => void;
  /** By sender and receiver. */
  readonly #links: Link[][] = [];

  constructor(
    timeline: Timeline,
    random: Random,
    deliver: (from: number, to: number, bytes: Uint8Array) => void,
  ) {
    this.#timeline = timeline;
    this.#random = random;
    this.#deliver = deliver;
  }

  send(from: number, to: number, bytes: Uint8Array): void {
    const { loss, duplicates } = this.faults;
    const link = this.#link(from, to);
    if (link.isCut || this.#random.chance(loss)) return;
    this.#post(link, from, to, bytes);
    if (this.#random.chance(duplicates)) this.#post(link, from, to, bytes);
  }

  cut(from: number, to: number): void {
    this.#link(from, to).isCut = true;
  }

  heal(): void {
    for (const links of this.#links) for (const link of links ?? []) if (link) link.isCut = false;
  }

  #link(from: number, to: number): Link {
    const links = (this.#links[from] ??= []);
    return (links[to] ??= { isCut: false, lastAt: 0 });
  }

  #post(link: Link, from: number, to: number, bytes: Uint8Array): void {
    const { delay, late, lateDelay, isUnordered } = this.faults;
    const isLate = this.#random.chance(late);
    const { now } = this.#timeline;
    let at = now + this.#random.next() * (isLate ? lateDelay : delay);
    if (!isLate && !isUnordered) link.lastAt = at = Math.max(at, link.lastAt);
    this.#timeline.after(at - now, () => {
      // Messages in flight when the link is cut are lost with it.
      if (!link.isCut) this.#deliver(from, to, bytes);
    });
  }
}
