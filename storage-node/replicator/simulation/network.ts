// Messages between nodes: late, lost, twice, out of order; links can be cut one way.

import type { Random, Timeline } from './timeline.ts';

interface NetworkFaults {
  /** Probabilities. */
  loss: number;
  duplicates: number;
  /** Milliseconds: the usual delay, and that of messages that are late. */
  delay: number;
  lateDelay: number;
  late: number;
}

export const calm: NetworkFaults = { loss: 0, duplicates: 0, delay: 2, lateDelay: 0, late: 0 };

export class Network {
  faults: NetworkFaults = calm;
  readonly #timeline: Timeline;
  readonly #random: Random;
  readonly #deliver: (from: number, to: number, bytes: Uint8Array) => void;
  /** `from>to` of links that are cut. */
  readonly #cut = new Set<string>();

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
    if (this.#cut.has(`${from}>${to}`) || this.#random.chance(loss)) return;
    this.#post(from, to, bytes);
    if (this.#random.chance(duplicates)) this.#post(from, to, bytes);
  }

  cut(from: number, to: number): void {
    this.#cut.add(`${from}>${to}`);
  }

  heal(): void {
    this.#cut.clear();
  }

  #post(from: number, to: number, bytes: Uint8Array): void {
    const { delay, late, lateDelay } = this.faults;
    const isLate = this.#random.chance(late);
    const ms = this.#random.next() * (isLate ? lateDelay : delay);
    this.#timeline.after(ms, () => {
      // What was under way when the link was cut is lost with it.
      if (!this.#cut.has(`${from}>${to}`)) this.#deliver(from, to, bytes);
    });
  }
}
