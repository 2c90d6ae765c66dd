// Points as tests write them down, and the batches that adapters would make of them.

import type { FieldType } from '../../../universal-row/series/field-type.ts';
import type {
  PointBatch,
  PointColumn,
  PointGroup,
} from '../../../universal-row/series/point-batch.ts';
import type { SeriesCache } from '../../../universal-row/series/series-cache.ts';
import { keyedHash } from '../../../universal-row/keyed-hash.ts';
import { decodeSeriesKey } from '../../../universal-row/series/series-key.ts';

/** A whole number is an integer by being `{ integer }`; a number is a float. */
export type FieldValue = number | boolean | string | { integer: number | bigint };

export interface TestPoint {
  /** As in series-key.ts. */
  series: string;
  fields: Record<string, FieldValue>;
  /** Nanoseconds since 1970. */
  time: bigint;
}

export class TestSeriesCache implements SeriesCache {
  generation = 0;
  readonly #handles = new Map<string, number>();
  #keys: Buffer[] = [];

  get size(): number {
    return this.#keys.length;
  }

  handle(key: string): number {
    let handle = this.#handles.get(key);
    if (handle === undefined) {
      handle = this.#keys.length;
      this.#handles.set(key, handle);
      this.#keys.push(Buffer.from(key));
    }
    return handle;
  }

  empty(): void {
    this.generation++;
    this.#handles.clear();
    this.#keys = [];
  }

  keys(handle: number): Buffer {
    return this.#keys[handle]!;
  }

  keyStart(): number {
    return 0;
  }

  keyEnd(handle: number): number {
    return this.#keys[handle]!.length;
  }

  keyHash(handle: number): number {
    const key = this.#keys[handle]!;
    return keyedHash(key, 0, key.length);
  }
}

interface GrowingGroup extends PointGroup {
  handles: number[];
  offsets: number[];
  values: Map<string, { column: PointColumn; byRow: Map<number, FieldValue> }>;
}

/** The points as one batch, their times relative to `baseSeconds`. */
export function batchOf(
  cache: TestSeriesCache,
  points: readonly TestPoint[],
  baseSeconds = points.length === 0 ? 0 : Number(points[0]!.time / 1_000_000_000n),
): PointBatch {
  const groups = new Map<string, GrowingGroup>();
  for (const { series, fields, time } of points) {
    const key = Buffer.from(series);
    const { measurement } = decodeSeriesKey(key, 0, key.length);
    const group = groups.get(measurement) ?? newGroup(measurement);
    groups.set(measurement, group);
    for (const [field, value] of Object.entries(fields)) {
      const type = typeOf(value);
      let values = group.values.get(`${type} ${field}`);
      if (values === undefined) {
        values = { column: newColumn(field, type), byRow: new Map() };
        group.values.set(`${type} ${field}`, values);
      }
      values.byRow.set(group.rows, value);
    }
    group.handles.push(cache.handle(series));
    group.offsets.push(Number(time - BigInt(baseSeconds) * 1_000_000_000n));
    group.rows++;
  }
  const texts: Buffer[] = [];
  const textEnds: number[] = [];
  for (const group of groups.values()) {
    group.series = Uint32Array.from(group.handles);
    group.times = Float64Array.from(group.offsets);
    group.columns = Array.from(group.values.values(), ({ column, byRow }) =>
      filled(column, byRow, group.rows, texts, textEnds),
    );
  }
  return {
    cache,
    generation: cache.generation,
    baseSeconds,
    rows: points.length,
    groups: [...groups.values()],
    text: Buffer.concat(texts),
    textEnds: Uint32Array.from(textEnds),
  };
}

function newGroup(measurement: string): GrowingGroup {
  return {
    measurement,
    rows: 0,
    series: new Uint32Array(0),
    times: new Float64Array(0),
    columns: [],
    handles: [],
    offsets: [],
    values: new Map(),
  };
}

function newColumn(field: string, type: FieldType): PointColumn {
  const numbers = new Float64Array(0);
  return { field, type, numbers, wide: undefined, present: undefined, count: 0 };
}

function typeOf(value: FieldValue): FieldType {
  if (typeof value === 'number') return 'float';
  if (typeof value === 'boolean') return 'boolean';
  return typeof value === 'string' ? 'string' : 'integer';
}

function filled(
  column: PointColumn,
  byRow: ReadonlyMap<number, FieldValue>,
  rows: number,
  texts: Buffer[],
  textEnds: number[],
): PointColumn {
  // Fills absent values with NaN, which readers must ignore.
  column.numbers = new Float64Array(rows).fill(NaN);
  const present = new Uint8Array(rows);
  const isWide = [...byRow.values()].some(
    (value) => typeof value === 'object' && !Number.isSafeInteger(Number(value.integer)),
  );
  if (isWide) column.wide = new BigInt64Array(rows);
  for (const [row, value] of byRow) {
    present[row] = 1;
    if (typeof value === 'string') {
      column.numbers[row] = textEnds.length;
      texts.push(Buffer.from(value));
      textEnds.push((textEnds.at(-1) ?? 0) + Buffer.byteLength(value));
    } else if (typeof value === 'object') {
      if (column.wide !== undefined) column.wide[row] = BigInt(value.integer);
      else column.numbers[row] = Number(value.integer);
    } else column.numbers[row] = Number(value);
  }
  column.count = byRow.size;
  if (byRow.size < rows) column.present = present;
  return column;
}
