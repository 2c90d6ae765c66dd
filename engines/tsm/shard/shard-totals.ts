// Adds up many series of few points each by group, without a cursor for each series. Shared blocks are read one after
// the other, in file order, and each run of rows is added to the group of its series. Series that also have rows
// elsewhere are read as in a scan.

import type { Slices } from '../../../universal-row/slices.ts';
import type { BlockSummary, Column } from '../../../universal-row/series/column.ts';
import type { FieldType } from '../../../universal-row/series/field-type.ts';
import type { SeriesIndex } from '../parts.ts';
import { Buckets } from './buckets.ts';
import { RowBuffer } from './row-buffer.ts';
import { SeriesMerge, type MergeOptions } from './series-merge.ts';
import type { ShardScanRequest } from './shard-types.ts';
import { chunkRows } from './shard-scan.ts';
import type { ShardView } from './shard-view.ts';
import { fieldsWanted } from './source.ts';
import type { StoredFile } from './stored-points.ts';
import { lowerBound } from './tombstones.ts';
import { ColumnTotals } from './totals.ts';

/** The parts of the request that totals use. */
export type TotalsRequest = Pick<
  ShardScanRequest,
  'measurement' | 'filter' | 'from' | 'to' | 'fields' | 'summaries' | 'own'
> & {
  /** Series with the same values of these are a group. */
  readonly tags: readonly string[];
};

/** With fewer series there is not enough to gain, ... */
const leastSeries = 256;
/** ... nor with groups of fewer. */
const leastPerGroup = 8;
/** All slots of all columns take 16 MB. */
const maxCells = 1 << 19;
/** Series read individually between two clock checks. */
const seriesAtOnce = 16;

const noGroup = 0xffffffff;

/** Undefined where a scan does as well. */
export function* openTotals(
  view: ShardView,
  index: SeriesIndex,
  startSeconds: number,
  request: TotalsRequest,
): Slices<ShardTotals | undefined> {
  const { measurement, filter, from, to } = request;
  if (view.hasTombstones || index.liveSeriesOf(measurement) < leastSeries) return undefined;
  const blocks = view.files.map((stored) => ({
    stored,
    blocks: stored.file.sharedBlocks(from, to),
  }));
  if (blocks.every((each) => each.blocks.length === 0)) return undefined;
  const sources = view.sourceCounts(from, to, index.seriesCount);
  const series = yield* index.select(measurement, filter, {
    // Series added meanwhile are in no source of the view.
    chooser: () => (one) => one < sources.length && sources[one]! > 0,
    isUnordered: true,
  });
  if (series.length < leastSeries) return undefined;
  const groups = yield* index.group(measurement, series, request.tags);
  if (groups.values.length * leastPerGroup > series.length) return undefined;
  const groupOf = new Uint32Array(sources.length).fill(noGroup);
  for (let i = 0; i < series.length; i++) groupOf[series[i]!] = groups.numbers[i]!;
  const slots = new Slots(request, startSeconds);
  const found = request.fields.map((name) => index.findField(measurement, name));
  const fields = [...new Set(found.filter((field) => field !== undefined))];
  if (slots.perGroup * groups.values.length * fields.length > maxCells) return undefined;
  return new ShardTotals(view, {
    startSeconds,
    series,
    sources,
    groupOf,
    groups: groups.values,
    slots,
    blocks,
    fieldTypes: found.map((field) => field?.type),
    places: found.map((field) => (field === undefined ? -1 : fields.indexOf(field))),
    merge: {
      wanted: {
        ...fieldsWanted(fields),
        from,
        to,
        descending: false,
        single: false,
        own: request.own,
      },
      chunkRows,
      buckets: new Buckets(
        request.summaries?.width ?? 0n,
        request.summaries?.offset ?? 0n,
        startSeconds,
      ),
      bounds: [],
      base: startSeconds,
    },
  });
}

/** Buckets of a group, by number from the range's first. */
class Slots {
  readonly perGroup: number;
  readonly #width: number;
  readonly #first: number;

  constructor({ summaries, from, to }: TotalsRequest, startSeconds: number) {
    const width = summaries?.width ?? 0n;
    this.#width = width === 0n ? Infinity : Number(width);
    const buckets = new Buckets(width, summaries?.offset ?? 0n, startSeconds);
    this.#first = width === 0n ? -Infinity : buckets.startOf(from);
    this.perGroup = width === 0n ? 1 : this.of(to) + 1;
  }

  of(time: number): number {
    const width = this.#width;
    if (width === Infinity) return 0;
    const into = time - this.#first;
    // The remainder is exact; a quotient may be rounded up.
    return Math.round((into - (into % width)) / width);
  }

  /** The first time behind a bucket. */
  end(bucket: number): number {
    return this.#width === Infinity ? Infinity : this.#first + (bucket + 1) * this.#width;
  }
}

interface TotalsPlan {
  readonly startSeconds: number;
  readonly series: Uint32Array;
  /** By series: in how many files and heads it is, 0 once it has been read. */
  readonly sources: Uint16Array;
  /** By series. */
  readonly groupOf: Uint32Array;
  readonly groups: readonly (readonly string[])[];
  readonly slots: Slots;
  readonly blocks: readonly { readonly stored: StoredFile; readonly blocks: readonly number[] }[];
  readonly fieldTypes: readonly (FieldType | undefined)[];
  /** By field of the request: which of the fields wanted, -1 for none. */
  readonly places: readonly number[];
  readonly merge: MergeOptions;
}

export class ShardTotals {
  readonly fieldTypes: readonly (FieldType | undefined)[];
  /** Values of the tags, by group. */
  readonly groups: readonly (readonly string[])[];
  readonly seriesCount: number;
  readonly #view: ShardView;
  readonly #plan: TotalsPlan;
  readonly #columns: readonly ColumnTotals[];
  /** By slot: rows, and the time of one of them. */
  readonly #rows: Float64Array;
  readonly #times: Float64Array;
  readonly #out: RowBuffer;
  #file = 0;
  #block = 0;
  #series = 0;
  #merge: SeriesMerge | undefined;

  /** Use `openTotals`. */
  constructor(view: ShardView, plan: TotalsPlan) {
    this.#view = view;
    this.#plan = plan;
    this.fieldTypes = plan.fieldTypes;
    this.groups = plan.groups;
    this.seriesCount = plan.series.length;
    const slots = plan.groups.length * plan.slots.perGroup;
    const { types } = plan.merge.wanted;
    this.#columns = types.map((type) => new ColumnTotals(type, slots));
    this.#rows = new Float64Array(slots);
    this.#times = new Float64Array(slots);
    this.#out = new RowBuffer(types);
  }

  /** Does about a block's work; false when there is no more. */
  work(): boolean {
    const file = this.#plan.blocks[this.#file];
    if (file === undefined) return this.#readRest();
    const block = file.blocks[this.#block++];
    if (block === undefined) {
      this.#file++;
      this.#block = 0;
    } else this.#addBlock(file.stored, block);
    return true;
  }

  /** Summaries of a group by bucket, once all work is done. */
  *summaries(group: number): IterableIterator<BlockSummary> {
    const { slots, places, startSeconds: base } = this.#plan;
    const kind = 'summary';
    for (let slot = group * slots.perGroup; slot < (group + 1) * slots.perGroup; slot++) {
      const count = this.#rows[slot]!;
      if (count === 0) continue;
      const time = this.#times[slot]!;
      const totals = this.#columns.map((column) => column.summary(slot, time));
      const columns = places.map((place) => (place < 0 ? undefined : totals[place]));
      yield { kind, base, minTime: time, maxTime: time, count, columns };
    }
  }

  close(): void {
    this.#view.close();
  }

  #addBlock(stored: StoredFile, block: number): void {
    const { groupOf, sources, merge } = this.#plan;
    const { from, to, fields, own } = merge.wanted;
    stored.borrower = undefined;
    const { series, ends, times, columns, minTime, maxTime } = stored.file.readShared(
      block,
      fields,
      own,
    );
    const isWhole = minTime >= from && maxTime <= to;
    let end = 0;
    for (let run = 0; run < series.length; run++) {
      let lo = end;
      end = ends[run]!;
      const one = series[run]!;
      // One that is in several files or heads takes a merge.
      if (groupOf[one] === noGroup || sources[one] !== 1) continue;
      sources[one] = 0;
      let hi = end;
      if (!isWhole) {
        lo = lowerBound(times, from, lo, hi);
        hi = lowerBound(times, to + 1, lo, hi);
      }
      this.#addRows(groupOf[one]!, times, columns, lo, hi);
    }
  }

  /** Rows ascending in time. */
  #addRows(
    group: number,
    times: Float64Array,
    columns: readonly (Column | undefined)[],
    lo: number,
    hi: number,
  ): void {
    const { slots } = this.#plan;
    for (let row = lo; row < hi; ) {
      const bucket = slots.of(times[row]!);
      const behind = slots.end(bucket);
      let end = hi;
      if (times[hi - 1]! >= behind) {
        end = row + 1;
        while (times[end]! < behind) end++;
      }
      const slot = group * slots.perGroup + bucket;
      const counting = rowsWithField(columns, row, end);
      if (counting > 0) this.#times[slot] = times[row]!;
      this.#rows[slot]! += counting;
      for (let c = 0; c < columns.length; c++) {
        const column = columns[c];
        if (column !== undefined) this.#columns[c]!.add(slot, column, row, end);
      }
      row = end;
    }
  }

  #readRest(): boolean {
    const { series, sources, groupOf, merge } = this.#plan;
    for (let n = 0; n < seriesAtOnce && this.#series < series.length; ) {
      const one = series[this.#series]!;
      if (sources[one] === 0) {
        this.#series++;
        continue;
      }
      n++;
      this.#merge ??= new SeriesMerge(this.#view.sources(one, merge.wanted), merge, this.#out);
      const piece = this.#merge.next();
      if (piece === undefined) {
        this.#merge = undefined;
        this.#series++;
      } else if (piece instanceof RowBuffer) {
        this.#addRows(groupOf[one]!, piece.times, piece.columns(), 0, piece.count);
      } else this.#addSummary(groupOf[one]!, piece);
    }
    return this.#series < series.length;
  }

  #addSummary(group: number, { minTime, count, columns }: BlockSummary): void {
    const { slots } = this.#plan;
    const slot = group * slots.perGroup + slots.of(minTime);
    this.#rows[slot]! += count;
    this.#times[slot] = minTime;
    columns.forEach((column, c) => {
      if (column !== undefined) this.#columns[c]!.addSummary(slot, column);
    });
  }
}

/** Rows of [lo, hi) that have a value in some column. */
function rowsWithField(columns: readonly (Column | undefined)[], lo: number, hi: number): number {
  for (const column of columns) {
    if (column !== undefined && column.present === undefined) return hi - lo;
  }
  let count = 0;
  for (let row = lo; row < hi; row++) {
    if (columns.some((column) => column !== undefined && column.present![row] === 1)) count++;
  }
  return count;
}
