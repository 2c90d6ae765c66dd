// Batches as an adapter would fill them, using the contract's freedom in the least convenient way:
// arrays are longer than necessary, and hold arbitrary values where there is none.

import { viewed } from '../../universal-row/bytes.ts';
import type { FieldType } from '../../universal-row/series/field-type.ts';
import type {
  PointBatch,
  PointColumn,
  PointGroup,
} from '../../universal-row/series/point-batch.ts';
import type { SeriesCache } from '../../universal-row/series/series-cache.ts';
import { keyedHash } from '../../universal-row/keyed-hash.ts';
import { decodeSeriesKey } from '../../universal-row/series/series-key.ts';
import { second, typeOf, type FieldValue, type Point } from './points.ts';

export class SimpleSeriesCache implements SeriesCache {
  generation = 0;
  readonly #handles = new Map<string, number>();
  #entries: { start: number; end: number; hash: number }[] = [];
  /** All keys in one buffer, which is another one whenever it grows. */
  #keys: Buffer = viewed(Buffer.alloc(0));

  get size(): number {
    return this.#entries.length;
  }

  handle(key: string): number {
    const known = this.#handles.get(key);
    if (known !== undefined) return known;
    const bytes = Buffer.from(key);
    const start = this.#keys.length;
    this.#keys = viewed(Buffer.concat([this.#keys, bytes]));
    const end = this.#keys.length;
    this.#entries.push({ start, end, hash: keyedHash(this.#keys, start, end) });
    this.#handles.set(key, this.size - 1);
    return this.size - 1;
  }

  empty(): void {
    this.generation++;
    this.#handles.clear();
    this.#entries = [];
    this.#keys = viewed(Buffer.alloc(0));
  }

  keys(): Buffer {
    return this.#keys;
  }

  keyStart(handle: number): number {
    return this.#entries[handle]!.start;
  }

  keyEnd(handle: number): number {
    return this.#entries[handle]!.end;
  }

  keyHash(handle: number): number {
    return this.#entries[handle]!.hash;
  }
}

/** The points as batches: one, unless they are further apart than one can tell times. */
export function batchesOf(cache: SimpleSeriesCache, points: readonly Point[]): PointBatch[] {
  const batches: PointBatch[] = [];
  let from = 0;
  while (from < points.length) {
    const base = wholeSeconds(points[from]!.time);
    let to = from + 1;
    while (to < points.length && Number.isSafeInteger(offset(points[to]!, base))) to++;
    batches.push(batchOf(cache, points.slice(from, to), base));
    from = to;
  }
  return batches;
}

export function batchOf(
  cache: SimpleSeriesCache,
  points: readonly Point[],
  baseSeconds = wholeSeconds(points[0]!.time),
): PointBatch {
  const texts = new Texts();
  const byMeasurement = new Map<string, Point[]>();
  for (const one of points) {
    const key = Buffer.from(one.series);
    const { measurement } = decodeSeriesKey(key, 0, key.length);
    const group = byMeasurement.get(measurement) ?? [];
    byMeasurement.set(measurement, group);
    group.push(one);
  }
  const groups = [...byMeasurement].map(([measurement, members]): PointGroup => {
    const series = new Uint32Array(members.length + spare).fill(0xdead_beef);
    series.set(members.map((one) => cache.handle(one.series)));
    const times = new Float64Array(members.length + spare).fill(NaN);
    times.set(members.map((one) => offset(one, baseSeconds)));
    return { measurement, rows: members.length, series, times, columns: columnsOf(members, texts) };
  });
  const { generation } = cache;
  return {
    cache,
    generation,
    baseSeconds,
    rows: points.length,
    groups,
    text: viewed(Buffer.concat([...texts.parts, Buffer.from('nonsense')])),
    textEnds: Uint32Array.from([...texts.ends, 0, 0]),
  };
}

const spare = 3;

class Texts {
  readonly parts: Buffer[] = [];
  readonly ends: number[] = [];

  add(text: string): number {
    const bytes = Buffer.from(text);
    this.parts.push(bytes);
    this.ends.push((this.ends.at(-1) ?? 0) + bytes.length);
    return this.ends.length - 1;
  }
}

/** A column for each field and type, in the order in which they come. */
function columnsOf(points: readonly Point[], texts: Texts): PointColumn[] {
  const names = new Map<string, { field: string; type: FieldType }>();
  for (const { fields } of points) {
    for (const [field, value] of Object.entries(fields)) {
      const type = typeOf(value);
      names.set(`${type} ${field}`, { field, type });
    }
  }
  return [...names.values()].map(({ field, type }) => {
    const values = points.map(({ fields }) => {
      const value = fields[field];
      return value !== undefined && typeOf(value) === type ? value : undefined;
    });
    return columnOf(field, type, values, texts);
  });
}

function columnOf(
  field: string,
  type: FieldType,
  values: readonly (FieldValue | undefined)[],
  texts: Texts,
): PointColumn {
  const rows = values.length;
  const integers = values.map((value) =>
    typeof value === 'object' ? value.unsigned : typeof value === 'bigint' ? value : undefined,
  );
  const isWide = integers.some(
    (value) => value !== undefined && !Number.isSafeInteger(Number(value)),
  );
  const numbers = new Float64Array(rows + spare).fill(NaN);
  const wide = isWide ? new BigInt64Array(rows + spare).fill(-77n) : undefined;
  const present = new Uint8Array(rows + spare);
  let count = 0;
  for (const [row, value] of values.entries()) {
    if (value === undefined) continue;
    present[row] = 1;
    count++;
    const integer = integers[row];
    if (typeof value === 'string') numbers[row] = texts.add(value);
    else if (integer === undefined) numbers[row] = Number(value);
    else if (wide === undefined) numbers[row] = Number(integer);
    else wide[row] = BigInt.asIntN(64, integer);
  }
  return { field, type, numbers, wide, present: count === rows ? undefined : present, count };
}

/** Makes nonsense of a batch: once it is written it is the adapter's again. */
export function scribbleOver({ groups, text, textEnds }: PointBatch): void {
  for (const group of groups) {
    group.series.fill(0xffff_fff0);
    group.times.fill(-1);
    for (const column of group.columns) {
      column.numbers.fill(-12345.678);
      column.wide?.fill(-1n);
      column.present?.fill(1);
    }
  }
  text.fill('#');
  textEnds.fill(1);
}

function wholeSeconds(time: bigint): number {
  const seconds = time / second;
  return Number(seconds * second > time ? seconds - 1n : seconds);
}

function offset({ time }: Point, baseSeconds: number): number {
  return Number(time - BigInt(baseSeconds) * second);
}
