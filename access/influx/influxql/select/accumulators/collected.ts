// Functions that need all values of a bucket at once: median, mode, percentile, stddev, distinct, sample.

import { QueryError } from '../../result.ts';
import { compareText } from '../../../../../universal-row/series/series-key.ts';
import { ColumnBuilder, compareTimes, has, scalarAt } from '../vector.ts';
import {
  type Accumulator,
  type AccumulatorOptions,
  type DenseRows,
  grown,
  type Points,
  type Scalar,
} from './accumulator.ts';

/** Rows of a bucket in the order of their times. */
interface Bucket {
  /** Numbers of rows. */
  readonly rows: Int32Array;
  readonly value: (row: number) => Scalar;
  /** Negative when a's time is before b's. */
  readonly compareTimes: (a: number, b: number) => number;
}

/** A row chosen as it is, or a value worked out. */
type Picked = { readonly row: number } | { readonly value: Scalar };

export type Chooser = (bucket: Bucket, parameter: number) => readonly Picked[];

const bytesPerRow = 32;
const bytesPerAuxValue = 16;

export class Collected implements Accumulator {
  readonly #options: AccumulatorOptions;
  readonly #choose: Chooser;
  readonly #descending: boolean;
  #count = 0;
  #capacity = 0;
  #series = 0;
  readonly #values: Scalar[] = [];
  #bases = new Float64Array(0);
  #offsets = new Float64Array(0);
  #slots = new Int32Array(0);
  readonly #aux: (Scalar | undefined)[][];
  /** By slot, its rows; made when all are there. */
  #bySlot: Int32Array = new Int32Array(0);
  #slotEnds: Int32Array = new Int32Array(0);
  #slotCount = 0;

  constructor(options: AccumulatorOptions, choose: Chooser, descending: boolean) {
    this.#options = options;
    this.#choose = choose;
    this.#descending = descending;
    this.#aux = options.aux.map(() => []);
  }

  grow(slots: number): void {
    this.#slotCount = Math.max(this.#slotCount, slots);
  }

  add(slot: number, rows: DenseRows, from: number, to: number): void {
    this.#reserve(this.#count + to - from);
    this.#options.memory.countKept(to - from);
    for (let row = from; row < to; row++) {
      const at = this.#count++;
      this.#values.push(scalarAt(rows.column, row));
      this.#bases[at] = rows.base;
      this.#offsets[at] = rows.times[row]!;
      this.#slots[at] = slot;
      if (this.#aux.length > 0) this.#addAux(rows, row);
    }
  }

  addSummary(): void {
    throw new QueryError('a summary where rows are needed');
  }

  startSeries(): void {
    this.#series++;
  }

  finish(): void {
    const ends = new Int32Array(this.#slotCount + 1);
    for (let i = 0; i < this.#count; i++) ends[this.#slots[i]! + 1]!++;
    for (let slot = 0; slot < this.#slotCount; slot++) ends[slot + 1]! += ends[slot]!;
    const next = ends.slice(0, this.#slotCount);
    const bySlot = new Int32Array(this.#count);
    for (let i = 0; i < this.#count; i++) bySlot[next[this.#slots[i]!]!++] = i;
    this.#bySlot = bySlot;
    this.#slotEnds = ends.subarray(1);
  }

  points(slots: Int32Array): Points {
    const { resultType, keepsTime, aux, parameter } = this.#options;
    const builder = new ColumnBuilder(resultType);
    const auxBuilders = aux.map(({ type }) => new ColumnBuilder(type));
    const places: number[] = [];
    const bases: number[] = [];
    const offsets: number[] = [];
    slots.forEach((slot, place) => {
      const bucket = this.#bucket(slot);
      if (bucket.rows.length === 0) return;
      for (const picked of this.#choose(bucket, parameter ?? 0)) {
        places.push(place);
        if ('value' in picked) {
          builder.push(picked.value);
          continue;
        }
        const { row } = picked;
        builder.push(this.#values[row]!);
        bases.push(this.#bases[row]!);
        offsets.push(this.#offsets[row]!);
        auxBuilders.forEach((auxBuilder, i) => {
          const value = this.#aux[i]![row];
          if (value === undefined) auxBuilder.pushNull();
          else auxBuilder.push(value);
        });
      }
    });
    return {
      count: places.length,
      places: Int32Array.from(places),
      times: keepsTime
        ? { bases: Float64Array.from(bases), offsets: Float64Array.from(offsets) }
        : undefined,
      column: builder.take(),
      aux: auxBuilders.map((auxBuilder) => auxBuilder.take()),
    };
  }

  #bucket(slot: number): Bucket {
    const ends = this.#slotEnds;
    const rows = this.#bySlot.subarray(slot === 0 ? 0 : ends[slot - 1]!, ends[slot]);
    const sign = this.#descending ? -1 : 1;
    const byTime = (a: number, b: number): number =>
      compareTimes(this.#bases[a]!, this.#offsets[a]!, this.#bases[b]!, this.#offsets[b]!);
    // One series alone is in order as it came.
    if (this.#series > 1) rows.sort((a, b) => sign * byTime(a, b) || a - b);
    return { rows, value: (row) => this.#values[row]!, compareTimes: byTime };
  }

  #addAux(rows: DenseRows, row: number): void {
    const from = rows.rowIds === undefined ? row : rows.rowIds[row]!;
    this.#options.aux.forEach(({ index }, i) => {
      const column = rows.chunk.columns[index];
      this.#aux[i]!.push(has(column, from) ? scalarAt(column, from) : undefined);
    });
  }

  #reserve(rows: number): void {
    if (rows <= this.#capacity) return;
    const capacity = Math.max(rows, this.#capacity * 2, 256);
    const perRow = bytesPerRow + bytesPerAuxValue * this.#aux.length;
    this.#options.memory.reserve((capacity - this.#capacity) * perRow);
    this.#capacity = capacity;
    this.#bases = grown(this.#bases, capacity);
    this.#offsets = grown(this.#offsets, capacity);
    const slots = new Int32Array(capacity);
    slots.set(this.#slots);
    this.#slots = slots;
  }
}

/** Order of values of one type. */
function compareScalars(a: Scalar, b: Scalar): number {
  if (typeof a === 'string') return compareText(a, b as string);
  return a < (b as number) ? -1 : a > (b as number) ? 1 : 0;
}

/** The bucket's rows by value; rows of the same value by time. */
function byValue({ rows, value }: Bucket): Int32Array {
  const places = Int32Array.from(rows, (_, i) => i);
  places.sort((a, b) => compareScalars(value(rows[a]!), value(rows[b]!)) || a - b);
  return places.map((place) => rows[place]!);
}

/** Values of numeric rows as sorted doubles; undefined where one of them is no double. */
function sortedDoubles({ rows, value }: Bucket): Float64Array | undefined {
  const values = new Float64Array(rows.length);
  for (let i = 0; i < rows.length; i++) {
    const each = value(rows[i]!);
    if (typeof each !== 'number') return undefined;
    values[i] = each;
  }
  return values.sort();
}

export const median: Chooser = (bucket) => {
  const sorted = sortedDoubles(bucket) ?? byValue(bucket);
  const at = (i: number): number | bigint => {
    const found = sorted[i]!;
    return sorted instanceof Float64Array ? found : (bucket.value(found) as number | bigint);
  };
  const middle = sorted.length >> 1;
  const high = at(middle);
  if (sorted.length % 2 === 1) return [{ value: Number(high) }];
  const low = at(middle - 1);
  const step =
    typeof low === 'number' && typeof high === 'number'
      ? high - low
      : Number(BigInt.asIntN(64, BigInt(high) - BigInt(low)));
  return [{ value: Number(low) + step / 2 }];
};

/**
 * The value that comes most often, of several the one seen first. Values that come once only count when
 * they are the smallest, as they do in InfluxDB.
 */
export const mode: Chooser = (bucket) => {
  const { rows, value } = bucket;
  const first = value(rows[0]!);
  if (rows.length === 1) return [{ value: first }];
  const sorted = byValue(bucket);
  let most = 0;
  let mostRow = sorted[0]!;
  let frequency = 0;
  let currentRow = sorted[0]!;
  for (const row of sorted) {
    if (value(row) !== value(currentRow)) {
      frequency = 1;
      currentRow = row;
      continue;
    }
    frequency++;
    if (most > frequency) continue;
    if (most === frequency && bucket.compareTimes(currentRow, mostRow) > 0) continue;
    most = frequency;
    mostRow = currentRow;
  }
  return [{ value: value(mostRow) }];
};

export const booleanMode: Chooser = ({ rows, value }) => {
  let trues = 0;
  for (const row of rows) if (value(row) === 1) trues++;
  return [{ value: trues * 2 >= rows.length ? 1 : 0 }];
};

/** The nearest rank; nothing when that is below the first. */
export const percentile: Chooser = (bucket, percent) => {
  const { length } = bucket.rows;
  const at = Math.floor((length * percent) / 100 + 0.5) - 1;
  return at < 0 || at >= length ? [] : [{ row: byValue(bucket)[at]! }];
};

export const stddev: Chooser = ({ rows, value }) => {
  if (rows.length < 2) return [{ value: NaN }];
  let mean = 0;
  let count = 0;
  for (const row of rows) mean += (Number(value(row)) - mean) / ++count;
  let variance = 0;
  for (const row of rows) variance += (Number(value(row)) - mean) ** 2;
  return [{ value: Math.sqrt(variance / (count - 1)) }];
};

/** Rows with each value's first appearance. */
function firstAppearances({ rows, value }: Bucket): Map<Scalar, number> {
  const found = new Map<Scalar, number>();
  for (const row of rows) {
    const each = value(row);
    if (!found.has(each)) found.set(each, row);
  }
  return found;
}

export const distinct: Chooser = (bucket) => {
  const rows = [...firstAppearances(bucket).values()];
  const { value } = bucket;
  rows.sort((a, b) => bucket.compareTimes(a, b) || compareScalars(value(a), value(b)));
  return rows.map((row) => ({ value: value(row) }));
};

export const countDistinct: Chooser = (bucket) => [{ value: firstAppearances(bucket).size }];

/** So many rows, any as likely as another, in the order of time. */
export const sample: Chooser = ({ rows }, size) => {
  const chosen = rows.slice();
  const count = Math.min(size, chosen.length);
  for (let i = 0; i < count; i++) {
    const other = i + Math.floor(Math.random() * (chosen.length - i));
    [chosen[i], chosen[other]] = [chosen[other]!, chosen[i]!];
  }
  const places = new Map(Array.from(rows, (row, place) => [row, place]));
  return Array.from(chosen.subarray(0, count))
    .sort((a, b) => places.get(a)! - places.get(b)!)
    .map((row) => ({ row }));
};
