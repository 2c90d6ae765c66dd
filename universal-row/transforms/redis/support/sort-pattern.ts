// The patterns of SORT's BY and GET: `weight_*` is the string under a key made from the element,
// `object_*->name` the field of a hash, and `#` the element itself.

import { Slice } from '../../../bytes.ts';
import { type Row, type Rows, Shape } from '../../../rows.ts';
import { TimedMap } from '../../../timed-map.ts';

const timed = new TimedMap();

export interface SortPattern {
  /** Where the element goes in; -1 when there is no star. */
  star: number;
  before: Buffer;
  after: Buffer;
  field: Buffer | undefined;
  /** `#` */
  itself: boolean;
}

const value = new Slice();

export function patternOf(pattern: Buffer): SortPattern {
  const star = pattern.indexOf('*');
  const arrow = star < 0 ? -1 : pattern.indexOf('->', star + 1);
  const hasField = arrow >= 0 && arrow + 2 < pattern.length;
  return {
    star,
    before: pattern.subarray(0, Math.max(0, star)),
    after: pattern.subarray(star + 1, hasField ? arrow : pattern.length),
    field: hasField ? pattern.subarray(arrow + 2) : undefined,
    itself: pattern.length === 1 && pattern[0] === 35,
  };
}

/** Sets `value`; false when the row is no hash that has the field. */
function findField(rows: Rows, row: Row, field: Buffer): boolean {
  const shape = rows.shape(row);
  if (shape === Shape.map) return rows.field(row, field, 0, field.length, value);
  if (shape !== Shape.timed) return false;
  timed.load(rows, row);
  const time = timed.find(rows, row, field, 0, field.length, value);
  return time === 0 || time > rows.now;
}

/** Value the pattern resolves to for this element; undefined for none. */
export function resolve(rows: Rows, pattern: SortPattern, element: Buffer): Buffer | undefined {
  if (pattern.itself) return element;
  if (pattern.star < 0) return undefined;
  const key = Buffer.concat([pattern.before, element, pattern.after]);
  const row = rows.find(key, 0, key.length);
  if (row === 0) return undefined;
  const { field } = pattern;
  if (field === undefined) {
    if (rows.shape(row) !== Shape.value) return undefined;
    rows.value(row, value);
  } else if (!findField(rows, row, field)) return undefined;
  const found = value.copy();
  value.b = key;
  return found;
}
