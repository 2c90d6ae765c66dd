// A scan over several shards. The same series in several shards appears once, and its cursor goes from shard to shard
// in the direction of the scan.

import { sliceElements, type Slices } from '../../universal-row/slices.ts';
import type { BlockSummary, SeriesRows } from '../../universal-row/series/column.ts';
import type { FieldType } from '../../universal-row/series/field-type.ts';
import { compareText } from '../../universal-row/series/series-key.ts';
import {
  type ScannedSeries,
  type ScanRequest,
  type SeriesCursor,
  SeriesError,
  type SeriesScan,
} from '../../contracts/series-store.ts';
import { newBlockCache } from './file/shared-block-cache.ts';
import type { LiveShard } from './live-shard.ts';
import { CorruptFileError, type SeriesIndex } from './parts.ts';
import type { Opening, ShardScan } from './shard/shard-types.ts';

/** Series of two shards that are compared between two yields. Keys are made into texts for it. */
const mergedAtOnce = 2048;

interface Part {
  readonly scan: ShardScan;
  readonly series: number;
}

class FoundSeries implements ScannedSeries {
  /** Ascending in time. */
  readonly parts: Part[];
  readonly #index: SeriesIndex;
  readonly #number: number;
  #key: string | undefined = undefined;

  constructor(index: SeriesIndex, scan: ShardScan, number: number) {
    this.#index = index;
    this.#number = number;
    this.parts = [{ scan, series: number }];
  }

  get key(): string {
    return (this.#key ??= this.#index.key(this.#number));
  }

  tag(name: string): string {
    return this.#index.tagValue(this.#number, name);
  }
}

/** `shards` are those that overlap the range, ascending. Shows the state at the first slice. */
export function* scanShards(
  shards: readonly LiveShard[],
  request: ScanRequest,
): Slices<SeriesScan> {
  const fieldTypes: (FieldType | undefined)[] = request.fields.map(() => undefined);
  const openings: { opening: Opening<ShardScan>; index: SeriesIndex }[] = [];
  const close = (): void => {
    for (const { opening } of openings) opening.close();
  };
  const own = request.bypassesCaches === true ? newBlockCache() : undefined;
  let series: FoundSeries[] = [];
  let isOpen = false;
  try {
    for (const live of shards) {
      const { index } = live.shard;
      const range = live.clip(request.from, request.to);
      const measurement = index.findMeasurement(request.measurement);
      if (range === undefined || measurement < 0) continue;
      const { filter, fields, descending, summaries, rowsPerSeries, bounds } = request;
      const opening = live.shard.scan({
        measurement,
        filter,
        ...range,
        fields,
        descending,
        summaries,
        rowsPerSeries,
        bounds,
        own,
      });
      openings.push({ opening, index });
    }
    for (const { opening, index } of openings) {
      const scan = yield* opening.slices;
      for (const [i, type] of scan.fieldTypes.entries()) fieldTypes[i] = type ?? fieldTypes[i];
      const found: FoundSeries[] = [];
      for (const number of scan.series) {
        found.push(new FoundSeries(index, scan, number));
        if (found.length % sliceElements === 0) yield;
      }
      series = series.length === 0 ? found : yield* merged(series, found);
    }
    isOpen = true;
  } finally {
    // Also runs when the caller abandons the generator.
    if (!isOpen) close();
  }
  return {
    fieldTypes,
    series,
    cursor: (of) => new ShardsCursor((of as FoundSeries).parts, request.descending),
    close,
  };
}

/** Both are ascending by key. Series of `later` are in a later shard than those of `earlier`. */
function* merged(earlier: FoundSeries[], later: FoundSeries[]): Slices<FoundSeries[]> {
  const all: FoundSeries[] = [];
  let i = 0;
  let j = 0;
  while (i < earlier.length && j < later.length) {
    if (all.length % mergedAtOnce === mergedAtOnce - 1) yield;
    const a = earlier[i]!;
    const b = later[j]!;
    const order = a.key === b.key ? 0 : compareText(a.key, b.key);
    if (order <= 0) {
      if (order === 0) a.parts.push(...later[j++]!.parts);
      all.push(a);
      i++;
    } else {
      all.push(b);
      j++;
    }
  }
  while (i < earlier.length) all.push(earlier[i++]!);
  while (j < later.length) all.push(later[j++]!);
  return all;
}

class ShardsCursor implements SeriesCursor {
  readonly #parts: readonly Part[];
  readonly #descending: boolean;
  #opened = 0;
  #cursor: SeriesCursor | undefined = undefined;

  constructor(parts: readonly Part[], descending: boolean) {
    this.#parts = parts;
    this.#descending = descending;
  }

  next(): SeriesRows | BlockSummary | undefined {
    for (;;) {
      const piece = this.#cursor === undefined ? undefined : read(this.#cursor);
      if (piece !== undefined) return piece;
      if (this.#opened === this.#parts.length) return undefined;
      const at = this.#descending ? this.#parts.length - 1 - this.#opened : this.#opened;
      this.#opened++;
      const { scan, series } = this.#parts[at]!;
      this.#cursor = scan.cursor(series);
    }
  }
}

function read(cursor: SeriesCursor): SeriesRows | BlockSummary | undefined {
  try {
    return cursor.next();
  } catch (error) {
    return refused(error);
  }
}

/** Reports a damaged file to the reader, by its name. */
export function refused(error: unknown): never {
  if (!(error instanceof CorruptFileError)) throw error;
  throw new SeriesError(error.message);
}
