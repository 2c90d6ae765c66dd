// Points as cases write them down. A number is a float, a bigint an integer, and an unsigned integer says so.

import type { Column } from '../../universal-row/series/column.ts';
import type { FieldType } from '../../universal-row/series/field-type.ts';
import { compareText } from '../../universal-row/series/series-key.ts';

interface Unsigned {
  readonly unsigned: bigint;
}

export type FieldValue = number | bigint | boolean | string | Unsigned;
type Fields = Readonly<Record<string, FieldValue>>;

export interface Point {
  /** In the form of series-key.ts. */
  readonly series: string;
  /** Nanoseconds since 1970. */
  readonly time: bigint;
  readonly fields: Fields;
}

export const second = 1_000_000_000n;
export const hour = 3600n * second;
export const day = 24n * hour;

/** A time that is a number is in seconds. */
export function point(series: string, time: number | bigint, fields: Fields): Point {
  return { series, time: typeof time === 'number' ? BigInt(time) * second : time, fields };
}

export function unsigned(value: bigint): Unsigned {
  return { unsigned: value };
}

export function range(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}

export function typeOf(value: FieldValue): FieldType {
  switch (typeof value) {
    case 'number':
      return 'float';
    case 'bigint':
      return 'integer';
    case 'boolean':
      return 'boolean';
    case 'string':
      return 'string';
    default:
      return 'unsigned';
  }
}

/** Value at a row of a column that has been read; undefined if it has none. */
export function valueAt(column: Column, row: number): FieldValue | undefined {
  const { type, numbers, wide, texts, present } = column;
  if (present !== undefined && present[row] !== 1) return undefined;
  switch (type) {
    case 'string':
      return texts![row]!;
    case 'boolean':
      return numbers[row] === 1;
    case 'float':
      return numbers[row]!;
    case 'integer':
      return wide?.[row] ?? BigInt(numbers[row]!);
    case 'unsigned':
      return unsigned(wide?.[row] ?? BigInt(numbers[row]!));
  }
}

/**
 * Expected contents after these points are written: one point per series and time, later fields
 * over earlier ones.
 */
export function merged(points: readonly Point[]): Point[] {
  const byKey = new Map<string, Point>();
  for (const one of points) {
    const key = `${one.time} ${one.series}`;
    const fields = { ...byKey.get(key)?.fields, ...one.fields };
    byKey.set(key, { ...one, fields });
  }
  return sorted([...byKey.values()]);
}

/** By series, then by time. */
export function sorted(points: readonly Point[], descending = false): Point[] {
  const sign = descending ? -1 : 1;
  return points.toSorted(
    (a, b) =>
      compareText(a.series, b.series) || sign * (a.time < b.time ? -1 : a.time > b.time ? 1 : 0),
  );
}

/** The points that have one of the fields, with those only. */
export function withFields(points: readonly Point[], fields: readonly string[]): Point[] {
  return points.flatMap((one) => {
    const kept = fields.filter((field) => field in one.fields);
    if (kept.length === 0) return [];
    const entries = kept.map((field) => [field, one.fields[field]!] as const);
    return [{ ...one, fields: Object.fromEntries(entries) }];
  });
}

/** Both ends inclusive. */
export function inRange(points: readonly Point[], from: bigint, to: bigint): Point[] {
  return points.filter(({ time }) => time >= from && time <= to);
}

/** One list for each series, in the order in which they come. */
export function bySeries(points: readonly Point[]): Point[][] {
  const lists = new Map<string, Point[]>();
  for (const one of points) {
    const list = lists.get(one.series);
    if (list === undefined) lists.set(one.series, [one]);
    else list.push(one);
  }
  return [...lists.values()];
}
