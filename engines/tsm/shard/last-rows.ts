// Cache of the last row that the files have of a series, for requested series. Files do not change, so a cached row
// is valid until a file is added or rows are deleted. Then the shard begins a new cache.

import type { Scalar } from '../../../universal-row/series/column.ts';

/** By field number; undefined where the row has none. */
type LastValues = readonly (Scalar | undefined)[];

/** Values held at most: some 10 MB. */
const maxValues = 1 << 19;
const leastCapacity = 1024;

export class LastRows {
  /** By series. NaN where it is not known. */
  #times = new Float64Array(0);
  readonly #values: (LastValues | undefined)[] = [];
  #held = 0;

  get isFull(): boolean {
    return this.#held >= maxValues;
  }

  /** NaN when it is not known, -Infinity when the files have no row of the series. */
  timeOf(series: number): number {
    return series < this.#times.length ? this.#times[series]! : NaN;
  }

  /** Last values of a series whose time is known and finite. */
  valuesOf(series: number): LastValues {
    return this.#values[series]!;
  }

  keep(series: number, time: number, values: LastValues): void {
    if (series >= this.#times.length) this.#grow(series);
    this.#held += values.length + 1;
    this.#times[series] = time;
    this.#values[series] = values;
  }

  #grow(series: number): void {
    const times = new Float64Array(Math.max(series + 1, this.#times.length * 2, leastCapacity));
    times.fill(NaN, this.#times.length);
    times.set(this.#times);
    this.#times = times;
    // Without holes, so that it stays an array to the machine.
    while (this.#values.length < times.length) this.#values.push(undefined);
  }
}
