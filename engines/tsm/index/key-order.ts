// The series of one measurement in the order of their keys. Made when it is first of use and kept; series
// added since are sorted by themselves and merged in.

import { type Slices, sliceElements, sortedInSlices } from '../../../universal-row/slices.ts';
import type { MemoryTally } from './growing.ts';
import { ordinalsByKey } from './key-ranks.ts';
import type { MeasurementIndex } from './measurement-index.ts';
import type { SeriesRows } from './series-rows.ts';

// Comparing two keys costs some 100 ns, and so does ranking one series. So many series for each comparison
// it would take to sort a few, and the whole order is not made for their sake ...
const seriesPerComparison = 4;
// ... and so many for each new one, and the new ones are merged in.
const seriesPerNew = 16;
// When at least one in this many series is selected, they are picked from the order of all instead
// of sorted.
const seriesPerMark = 32;
/** Ordinals processed between two yields where each takes one array access. */
const pickedAtOnce = 16 * sliceElements;

export class KeyOrder {
  readonly #rows: SeriesRows;
  readonly #measurement: MeasurementIndex;
  readonly #tally: MemoryTally;
  /** Ordinals, ascending by key. Of equal keys, which only removed series have, the older first. */
  #ordinals: Uint32Array = new Uint32Array(0);
  /** Place in `#ordinals` by ordinal; made when needed. */
  #places: Uint32Array | undefined = undefined;
  /** The order that is being made. The next user continues with it. */
  #making: Slices<void> | undefined = undefined;

  constructor(rows: SeriesRows, measurement: MeasurementIndex, tally: MemoryTally) {
    this.#rows = rows;
    this.#measurement = measurement;
    this.#tally = tally;
  }

  /**
   * All ordinals that exist at the start, and perhaps some added meanwhile, ascending by key. The caller must not
   * change the array.
   */
  *all(): Slices<Uint32Array> {
    const count = this.#measurement.series.length;
    while (this.#ordinals.length < count) {
      this.#making ??= this.#make();
      let isDone = true;
      try {
        isDone = this.#making.next().done === true;
      } finally {
        if (isDone) this.#making = undefined;
      }
      if (!isDone) yield;
    }
    return this.#ordinals;
  }

  *#make(): Slices<void> {
    const count = this.#measurement.series.length;
    const added = count - this.#ordinals.length;
    const ordinals =
      added * seriesPerNew > count
        ? yield* ordinalsByKey(this.#measurement, this.#rows)
        : yield* this.#merged();
    this.#dropPlaces();
    this.#tally.bytes += ordinals.byteLength - this.#ordinals.byteLength;
    this.#ordinals = ordinals;
  }

  /** The given ordinals, ascending, in the order of their keys. Changes and returns the array. */
  *sort(ordinals: Uint32Array): Slices<Uint32Array> {
    const count = this.#measurement.series.length;
    const length = ordinals.length;
    if (length < 2) return ordinals;
    const isFresh = this.#ordinals.length === count;
    if (!isFresh && length * Math.log2(length) * seriesPerComparison < count) {
      return ordinals.sort(this.#compare);
    }
    const order = yield* this.all();
    if (length * seriesPerMark > count) return yield* pickInOrder(order, ordinals);
    const places = this.#freshPlaces();
    for (let i = 0; i < length; i++) ordinals[i] = places[ordinals[i]!]!;
    ordinals.sort();
    for (let i = 0; i < length; i++) ordinals[i] = order[ordinals[i]!]!;
    return ordinals;
  }

  readonly #compare = (a: number, b: number): number => {
    const series = this.#measurement.series.array;
    return this.#rows.compare(series[a]!, series[b]!) || a - b;
  };

  *#merged(): Slices<Uint32Array> {
    const before = this.#ordinals;
    const count = this.#measurement.series.length;
    const added = new Uint32Array(count - before.length);
    for (let i = 0; i < added.length; i++) added[i] = before.length + i;
    const sorted = yield* sortedInSlices([...added], this.#compare);
    const after = new Uint32Array(count);
    let taken = 0;
    for (let i = 0; i < sorted.length; i++) {
      if (i % sliceElements === sliceElements - 1) yield;
      const upTo = this.#placeOf(sorted[i]!, taken);
      after.set(before.subarray(taken, upTo), taken + i);
      after[upTo + i] = sorted[i]!;
      taken = upTo;
    }
    after.set(before.subarray(taken), taken + sorted.length);
    return after;
  }

  /** How many of the ordinals so far come before this one; at least `from`. */
  #placeOf(ordinal: number, from: number): number {
    let low = from;
    let high = this.#ordinals.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#compare(this.#ordinals[middle]!, ordinal) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #freshPlaces(): Uint32Array {
    if (this.#places !== undefined) return this.#places;
    const places = new Uint32Array(this.#ordinals.length);
    for (let i = 0; i < places.length; i++) places[this.#ordinals[i]!] = i;
    this.#tally.bytes += places.byteLength;
    this.#places = places;
    return places;
  }

  #dropPlaces(): void {
    this.#tally.bytes -= this.#places?.byteLength ?? 0;
    this.#places = undefined;
  }
}

/** Puts the ordinals into the order of `order`. */
function* pickInOrder(order: Uint32Array, ordinals: Uint32Array): Slices<Uint32Array> {
  const isWanted = new Uint8Array(order.length);
  for (let i = 0; i < ordinals.length; i++) isWanted[ordinals[i]!] = 1;
  let at = 0;
  for (let i = 0; i < order.length; ) {
    const stop = Math.min(order.length, i + pickedAtOnce);
    for (; i < stop; i++) {
      const ordinal = order[i]!;
      if (isWanted[ordinal] === 1) ordinals[at++] = ordinal;
    }
    yield;
  }
  return ordinals;
}
