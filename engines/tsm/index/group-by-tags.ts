// Series by the values they have of some tags: by their numbers in the columns, without a text of one series.

import type { SeriesGroups } from '../parts.ts';
import type { MeasurementIndex } from './measurement-index.ts';
import type { SeriesRows } from './series-rows.ts';
import type { Tag } from './tag.ts';

export function groupByTags(
  measurement: MeasurementIndex,
  rows: SeriesRows,
  series: Uint32Array,
  names: readonly string[],
): SeriesGroups {
  const numbers = new Uint32Array(series.length);
  let values: string[][] = series.length === 0 ? [] : [[]];
  for (const name of names) {
    const tag = measurement.tag(name);
    if (tag === undefined) for (const each of values) each.push('');
    else values = divide(numbers, values, tag, (i) => tag.column.get(rows.ordinalOf(series[i]!)));
  }
  return { numbers, values };
}

/** Divides groups by one more tag: changes their numbers, and returns their values. */
function divide(
  numbers: Uint32Array,
  values: readonly (readonly string[])[],
  tag: Tag,
  valueOf: (i: number) => number,
): string[][] {
  const divided: string[][] = [];
  const known = new Map<number, number>();
  const stride = tag.values.count + 1;
  for (let i = 0; i < numbers.length; i++) {
    const before = numbers[i]!;
    const value = valueOf(i);
    const key = before * stride + value;
    let number = known.get(key);
    if (number === undefined) {
      number = divided.length;
      known.set(key, number);
      divided.push([...values[before]!, value === 0 ? '' : tag.values.text(value)]);
    }
    numbers[i] = number;
  }
  return divided;
}
