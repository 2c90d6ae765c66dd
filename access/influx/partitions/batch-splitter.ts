// Splits a batch of points by partition. The partition of a series is computed once and kept by the series' handle;
// keys are not read again until the parser's cache is emptied. Arrays are used again from batch to batch.

import type { BatchIdentity } from '../../../universal-row/series/batch-identity.ts';
import type {
  PointBatch,
  PointColumn,
  PointGroup,
} from '../../../universal-row/series/point-batch.ts';
import type { SeriesCache } from '../../../universal-row/series/series-cache.ts';
import { seriesPartition } from '../../../universal-row/series/series-partition.ts';

/** Partitions of the series of one cache, by handle. */
class HandlePlaces {
  readonly #partitions: number;
  #generation = -1;
  /** The partition plus one; 0 where it was not computed. */
  #places = new Uint8Array(256);

  constructor(partitions: number) {
    this.#partitions = partitions;
  }

  /** Valid until the next call. */
  of({ cache, generation }: PointBatch): Uint8Array {
    if (this.#generation !== generation) {
      this.#generation = generation;
      this.#places.fill(0);
    }
    if (this.#places.length < cache.size) {
      const longer = new Uint8Array(Math.max(cache.size, this.#places.length * 2));
      longer.set(this.#places);
      this.#places = longer;
    }
    return this.#places;
  }

  compute(cache: SeriesCache, handle: number): number {
    const start = cache.keyStart(handle);
    const end = cache.keyEnd(handle);
    const partition = seriesPartition(cache.keys(handle), start, end, this.#partitions);
    this.#places[handle] = partition + 1;
    return partition;
  }
}

/** The handles of all caches in use. One for a store. */
export class SeriesPlaces {
  readonly partitions: number;
  readonly #byCache = new WeakMap<SeriesCache, HandlePlaces>();

  constructor(partitions: number) {
    this.partitions = partitions;
  }

  of(cache: SeriesCache): HandlePlaces {
    let places = this.#byCache.get(cache);
    if (places === undefined) {
      places = new HandlePlaces(this.partitions);
      this.#byCache.set(cache, places);
    }
    return places;
  }
}

/** A column whose arrays are kept. */
class PartColumn implements PointColumn {
  field = '';
  type: PointColumn['type'] = 'float';
  numbers = new Float64Array(0);
  wide: BigInt64Array | undefined;
  present: Uint8Array | undefined;
  count = 0;
  #wide = new BigInt64Array(0);
  #present = new Uint8Array(0);

  /** Takes the rows `rows[start, end)` of the column. */
  take(from: PointColumn, rows: Uint32Array, start: number, end: number): void {
    const count = end - start;
    this.field = from.field;
    this.type = from.type;
    if (this.numbers.length < count) this.numbers = new Float64Array(grown(count));
    this.wide = undefined;
    this.present = undefined;
    this.count = count;
    const { numbers } = this;
    if (from.wide === undefined) {
      for (let i = 0; i < count; i++) numbers[i] = from.numbers[rows[start + i]!]!;
    } else {
      if (this.#wide.length < count) this.#wide = new BigInt64Array(grown(count));
      for (let i = 0; i < count; i++) this.#wide[i] = from.wide[rows[start + i]!]!;
      this.wide = this.#wide;
    }
    if (from.present === undefined) return;
    if (this.#present.length < count) this.#present = new Uint8Array(grown(count));
    let there = 0;
    for (let i = 0; i < count; i++) {
      const has = from.present[rows[start + i]!]!;
      this.#present[i] = has;
      there += has;
    }
    this.count = there;
    if (there < count) this.present = this.#present;
  }
}

class PartGroup implements PointGroup {
  measurement = '';
  rows = 0;
  series = new Uint32Array(0);
  times = new Float64Array(0);
  columns: PartColumn[] = [];
  readonly #kept: PartColumn[] = [];

  /** Takes the rows `rows[start, end)` of the group. */
  take(from: PointGroup, rows: Uint32Array, start: number, end: number): void {
    const count = end - start;
    this.measurement = from.measurement;
    this.rows = count;
    if (this.series.length < count) {
      this.series = new Uint32Array(grown(count));
      this.times = new Float64Array(this.series.length);
    }
    const { series, times } = this;
    for (let i = 0; i < count; i++) {
      const row = rows[start + i]!;
      series[i] = from.series[row]!;
      times[i] = from.times[row]!;
    }
    this.columns = [];
    for (const column of from.columns) {
      const at = this.columns.length;
      const part = (this.#kept[at] ??= new PartColumn());
      part.take(column, rows, start, end);
      // A partition without a value of the field must not get to know it.
      if (part.count > 0) this.columns.push(part);
    }
  }
}

/** Points of a batch that are of one partition. Texts are the whole batch's. */
class Part implements PointBatch {
  cache!: SeriesCache;
  generation = 0;
  baseSeconds = 0;
  rows = 0;
  groups: PointGroup[] = [];
  text!: Buffer;
  textEnds!: Uint32Array;
  identity: BatchIdentity | undefined;
  #used = 0;
  readonly #kept: PartGroup[] = [];

  begin({ cache, generation, baseSeconds, text, textEnds, identity }: PointBatch): void {
    Object.assign(this, { cache, generation, baseSeconds, text, textEnds, identity });
    this.rows = 0;
    this.groups = [];
    this.#used = 0;
  }

  /** All of it. */
  addWhole(group: PointGroup): void {
    this.groups.push(group);
    this.rows += group.rows;
  }

  add(group: PointGroup, rows: Uint32Array, start: number, end: number): void {
    const part = (this.#kept[this.#used++] ??= new PartGroup());
    part.take(group, rows, start, end);
    this.addWhole(part);
  }
}

/** Splits one batch at a time. Its parts are valid until the next `split`. */
export class BatchSplitter {
  readonly #places: SeriesPlaces;
  readonly #parts: readonly Part[];
  /** Rows of the current group sorted by partition, the partition of each row, and where each partition's rows end. */
  #rows = new Uint32Array(0);
  #placeOf = new Uint8Array(0);
  readonly #ends: Uint32Array;

  constructor(places: SeriesPlaces) {
    this.#places = places;
    this.#parts = Array.from({ length: places.partitions }, () => new Part());
    this.#ends = new Uint32Array(places.partitions);
  }

  /** Returns one part per partition. A part without points has no rows. */
  split(batch: PointBatch): readonly PointBatch[] {
    for (const part of this.#parts) part.begin(batch);
    for (const group of batch.groups) if (group.rows > 0) this.#add(batch, group);
    return this.#parts;
  }

  #add(batch: PointBatch, group: PointGroup): void {
    const { rows } = group;
    if (this.#rows.length < rows) {
      this.#rows = new Uint32Array(grown(rows));
      this.#placeOf = new Uint8Array(this.#rows.length);
    }
    const ends = this.#ends.fill(0);
    const placeOf = this.#placeOf;
    const places = this.#places.of(batch.cache);
    const known = places.of(batch);
    const { series } = group;
    for (let i = 0; i < rows; i++) {
      const place = known[series[i]!]!;
      const partition = place === 0 ? places.compute(batch.cache, series[i]!) : place - 1;
      placeOf[i] = partition;
      ends[partition]!++;
    }
    const only = ends.indexOf(rows);
    if (only >= 0) {
      this.#parts[only]!.addWhole(group);
      return;
    }
    // Counts become where each partition's rows begin, and with each row move on to where they end.
    for (let partition = 0, at = 0; partition < ends.length; partition++) {
      const count = ends[partition]!;
      ends[partition] = at;
      at += count;
    }
    for (let i = 0; i < rows; i++) this.#rows[ends[placeOf[i]!]!++] = i;
    for (let partition = 0, start = 0; partition < ends.length; partition++) {
      const end = ends[partition]!;
      if (end > start) this.#parts[partition]!.add(group, this.#rows, start, end);
      start = end;
    }
  }
}

/** Room for so many and some more. */
function grown(count: number): number {
  return Math.max(256, Math.ceil(count * 1.25));
}
