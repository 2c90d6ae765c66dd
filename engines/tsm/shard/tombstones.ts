// Deleted points that are still in files: time ranges by series. A tombstone applies to points
// written before it and to none written later. The order is known from numbers: each head, and the
// file it becomes, has an ascending number. The active head deletes its points itself, so no
// tombstone applies to it.

/** Both ends inclusive. */
export interface TimeSpan {
  readonly from: number;
  readonly to: number;
}

export interface Tombstone extends TimeSpan {
  /** Counts up. */
  readonly id: number;
  /** Number of the head that was active. Everything with a lower number is hit. */
  readonly head: number;
  /** Ascending. */
  readonly series: Uint32Array;
}

/** A file or sealed head that a tombstone may apply to. */
export interface Aged {
  /** Number of the newest head in it. */
  readonly age: number;
  /** Tombstones up to this id have been applied to it. */
  readonly clearedTo: number;
}

export function hits(tombstone: Tombstone, target: Aged): boolean {
  return tombstone.head > target.age && tombstone.id > target.clearedTo;
}

/** Up to here a tombstone is listed under each of its series; a greater one is searched. */
const fewSeries = 16;
const none: readonly Tombstone[] = [];

/** Only grows: a reader that keeps `lastId` can continue reading it as it was. */
export class Tombstones {
  readonly all: Tombstone[] = [];
  lastId: number;
  readonly #bySeries = new Map<number, Tombstone[]>();
  readonly #great: Tombstone[] = [];

  constructor(lastId: number, tombstones: readonly Tombstone[] = []) {
    this.lastId = lastId;
    for (const tombstone of tombstones) this.add(tombstone);
  }

  add(tombstone: Tombstone): void {
    this.all.push(tombstone);
    this.lastId = Math.max(this.lastId, tombstone.id);
    if (tombstone.series.length > fewSeries) {
      this.#great.push(tombstone);
      return;
    }
    for (const series of tombstone.series) {
      const listed = this.#bySeries.get(series);
      if (listed === undefined) this.#bySeries.set(series, [tombstone]);
      else listed.push(tombstone);
    }
  }

  /** Tombstones of a series up to an id, in no order. */
  of(series: number, upTo: number): readonly Tombstone[] {
    if (this.all.length === 0) return none;
    const great = this.#great.filter((tombstone) => includes(tombstone.series, series));
    const few = this.#bySeries.get(series) ?? none;
    return few.concat(great).filter(({ id }) => id <= upTo);
  }
}

function includes(ascending: Uint32Array, value: number): boolean {
  const at = lowerBound(ascending, value, 0, ascending.length);
  return ascending[at] === value;
}

/** Some value is in both. */
export function intersects(a: Uint32Array, b: Uint32Array): boolean {
  const [few, many] = a.length < b.length ? [a, b] : [b, a];
  return few.some((value) => includes(many, value));
}

/** The first position in [lo, hi) whose value is not below `value`; `hi` when there is none. */
export function lowerBound(
  ascending: Uint32Array | Float64Array,
  value: number,
  lo: number,
  hi: number,
): number {
  let a = lo;
  let b = hi;
  while (a < b) {
    const middle = (a + b) >>> 1;
    if (ascending[middle]! < value) a = middle + 1;
    else b = middle;
  }
  return a;
}
