// Load of replicas and pods, minute by minute, from the reports of nodes. A node reports the usage
// of each of its replicas since its last report, about every ten seconds; a minute keeps the mean
// and the highest of its reports, an hour those of its minutes. Memory is bounded: rings of typed
// arrays for so many members, minutes and hours.

interface LoadReport {
  node: string;
  /** Unix milliseconds. */
  at: number;
  /** Seconds that the numbers are about. */
  seconds: number;
  /** Names of replicas; if absent, the list in the node's previous report applies. */
  members?: readonly string[];
  /** Units used by each member, dimension by dimension. */
  used: Float32Array;
}

interface LoadRetention {
  /** Members in all; reports about more are counted in `dropped`. */
  members: number;
  minutes: number;
  hours: number;
}

/** A week of minutes takes 315 kB a member with four dimensions. */
const usualRetention: LoadRetention = {
  members: 1000,
  minutes: 7 * 24 * 60,
  hours: 30 * 24,
};

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

export class LoadMonitor {
  readonly dimensions: number;
  readonly #retention: LoadRetention;
  readonly #lists = new Map<string, readonly string[]>();
  readonly #members = new Map<string, { minutes: Ring; hours: Ring }>();
  #dropped = 0;

  constructor(dimensions: number, retention: LoadRetention = usualRetention) {
    this.dimensions = dimensions;
    this.#retention = retention;
  }

  /** Numbers of members that were beyond the bound. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Throws a RangeError when the numbers do not fit the members. */
  add({ node, at, seconds, members = this.#lists.get(node) ?? [], used }: LoadReport): void {
    if (used.length !== members.length * this.dimensions || !(seconds > 0)) {
      throw new RangeError(`a report of ${node} does not fit its ${members.length} members`);
    }
    this.#lists.set(node, members);
    members.forEach((member, i) => {
      const rings = this.#ringsOf(member);
      if (rings === undefined) {
        this.#dropped++;
        return;
      }
      for (let d = 0; d < this.dimensions; d++) {
        const rate = used[i * this.dimensions + d]! / seconds;
        rings.minutes.add(Math.floor(at / minuteMs), d, rate);
        rings.hours.add(Math.floor(at / hourMs), d, rate);
      }
    });
  }

  /** Forgets a replica that was removed. */
  forget(member: string): void {
    this.#members.delete(member);
  }

  /** Mean units a second in a Unix minute; undefined if nothing was reported. */
  mean(member: string, dimension: number, minute: number): number | undefined {
    const ring = this.#members.get(member)?.minutes;
    return ring?.has(minute) === true ? ring.mean(minute, dimension) : undefined;
  }

  /** Units a second in each minute of [from, to), Unix minutes; 0 where nothing was reported. */
  minutes(member: string, dimension: number, from: number, to: number): Points {
    return this.#points(this.#members.get(member)?.minutes, dimension, from, to);
  }

  /** The same by hours. */
  hours(member: string, dimension: number, from: number, to: number): Points {
    return this.#points(this.#members.get(member)?.hours, dimension, from, to);
  }

  #points(ring: Ring | undefined, dimension: number, from: number, to: number): Points {
    const mean = new Float32Array(to - from);
    const most = new Float32Array(to - from);
    for (let slot = from; slot < to; slot++) {
      mean[slot - from] = ring?.mean(slot, dimension) ?? 0;
      most[slot - from] = ring?.most(slot, dimension) ?? 0;
    }
    return { mean, most };
  }

  #ringsOf(member: string): { minutes: Ring; hours: Ring } | undefined {
    let rings = this.#members.get(member);
    if (rings === undefined && this.#members.size < this.#retention.members) {
      const { minutes, hours } = this.#retention;
      rings = {
        minutes: new Ring(minutes, this.dimensions),
        hours: new Ring(hours, this.dimensions),
      };
      this.#members.set(member, rings);
    }
    return rings;
  }
}

interface Points {
  mean: Float32Array;
  most: Float32Array;
}

/** Ring buffer with the sum, count and maximum of each slot. A new slot overwrites the oldest. */
class Ring {
  readonly #dimensions: number;
  readonly #slots: Int32Array;
  readonly #sums: Float32Array;
  readonly #most: Float32Array;
  readonly #counts: Uint16Array;

  constructor(length: number, dimensions: number) {
    this.#dimensions = dimensions;
    this.#slots = new Int32Array(length).fill(-1);
    this.#sums = new Float32Array(length * dimensions);
    this.#most = new Float32Array(length * dimensions);
    this.#counts = new Uint16Array(length * dimensions);
  }

  add(slot: number, dimension: number, rate: number): void {
    const place = slot % this.#slots.length;
    // The report is too late: its slot was overwritten by a newer one.
    if (this.#slots[place]! > slot) return;
    if (this.#slots[place] !== slot) {
      const [from, to] = [place * this.#dimensions, (place + 1) * this.#dimensions];
      this.#slots[place] = slot;
      this.#sums.fill(0, from, to);
      this.#most.fill(0, from, to);
      this.#counts.fill(0, from, to);
    }
    const at = place * this.#dimensions + dimension;
    this.#sums[at]! += rate;
    this.#counts[at]!++;
    this.#most[at] = Math.max(this.#most[at]!, rate);
  }

  has(slot: number): boolean {
    return this.#slots[slot % this.#slots.length] === slot;
  }

  mean(slot: number, dimension: number): number {
    const at = this.#at(slot, dimension);
    return at === undefined || this.#counts[at] === 0 ? 0 : this.#sums[at]! / this.#counts[at]!;
  }

  most(slot: number, dimension: number): number {
    const at = this.#at(slot, dimension);
    return at === undefined ? 0 : this.#most[at]!;
  }

  #at(slot: number, dimension: number): number | undefined {
    const place = slot % this.#slots.length;
    return this.#slots[place] === slot ? place * this.#dimensions + dimension : undefined;
  }
}
