// Series by the values they have of some tags: by their numbers in the columns, without a text of one series.

import { sliceElements, type Slices } from '../../../universal-row/slices.ts';
import type { SeriesGroups } from '../parts.ts';
import type { MeasurementIndex } from './measurement-index.ts';
import type { SeriesRows } from './series-rows.ts';
import type { Tag } from './tag.ts';

export function* groupByTags(
  measurement: MeasurementIndex,
  rows: SeriesRows,
  series: Uint32Array,
  names: readonly string[],
): Slices<SeriesGroups> {
  const numbers = new Uint32Array(series.length);
  let values: string[][] = series.length === 0 ? [] : [[]];
  for (const name of names) {
    const tag = measurement.tag(name);
    if (tag === undefined) for (const each of values) each.push('');
    else {
      values = yield* divide(numbers, values, tag, (i) =>
        tag.column.get(rows.ordinalOf(series[i]!)),
      );
    }
  }
  return { numbers, values };
}

/** Beyond it an array by key takes more memory than groups are likely to. */
const mostCells = 1 << 22;

/** Numbers of groups by their keys. An array where that is not large: a map of a million takes 0.1 s to grow. */
class Numbers {
  readonly #cells: Uint32Array | undefined;
  readonly #map = new Map<number, number>();

  constructor(keys: number) {
    if (keys <= mostCells) this.#cells = new Uint32Array(keys);
  }

  /** -1 where there is none. */
  get(key: number): number {
    return this.#cells === undefined ? (this.#map.get(key) ?? -1) : this.#cells[key]! - 1;
  }

  set(key: number, number: number): void {
    if (this.#cells === undefined) this.#map.set(key, number);
    else this.#cells[key] = number + 1;
  }
}

/** Divides groups by one more tag: changes their numbers, and returns their values. */
function* divide(
  numbers: Uint32Array,
  values: readonly (readonly string[])[],
  tag: Tag,
  valueOf: (i: number) => number,
): Slices<string[][]> {
  const divided: string[][] = [];
  const stride = tag.values.count + 1;
  const known = new Numbers(values.length * stride);
  for (let i = 0; i < numbers.length; i++) {
    const before = numbers[i]!;
    const value = valueOf(i);
    const key = before * stride + value;
    let number = known.get(key);
    if (number < 0) {
      number = divided.length;
      known.set(key, number);
      divided.push([...values[before]!, value === 0 ? '' : tag.values.text(value)]);
    }
    numbers[i] = number;
    if (i % (2 * sliceElements) === 2 * sliceElements - 1) yield;
  }
  return divided;
}
