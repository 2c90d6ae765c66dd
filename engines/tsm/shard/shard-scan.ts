// A scan of a view: the series that match, and a cursor over each.

import type { Slices } from '../../../universal-row/slices.ts';
import type { Column, ColumnSummary } from '../../../universal-row/series/column.ts';
import type { FieldType } from '../../../universal-row/series/field-type.ts';
import type { SeriesCursor } from '../../../contracts/series-store.ts';
import type { SeriesIndex } from '../parts.ts';
import { Buckets } from './buckets.ts';
import { LastPoint } from './last-point.ts';
import { RowBuffer } from './row-buffer.ts';
import { type MergeOptions, SeriesMerge } from './series-merge.ts';
import type { ShardScan, ShardScanRequest } from './shard-types.ts';
import type { ShardView } from './shard-view.ts';
import { fieldsWanted } from './source.ts';

/** A few blocks. */
export const chunkRows = 4096;

const emptyCursor: SeriesCursor = { next: () => undefined };

/** Finds the series of a view. */
export function* openScan(
  view: ShardView,
  index: SeriesIndex,
  startSeconds: number,
  request: ShardScanRequest,
): Slices<ShardScan> {
  const { measurement, from, to, filter } = request;
  const series = yield* index.select(measurement, filter, {
    chooser: (count) => view.toucher(from, to, count, index.seriesCount),
  });
  return new ViewScan(view, index, startSeconds, request, series);
}

class ViewScan implements ShardScan {
  readonly fieldTypes: readonly (FieldType | undefined)[];
  readonly series: Uint32Array;
  readonly #view: ShardView;
  readonly #options: MergeOptions;
  /** By field of the request: which column wanted it is, -1 for one that is not there. */
  readonly #slots: readonly number[];
  /** No row can meet all bounds. */
  readonly #isEmpty: boolean;
  readonly #lastPoint: LastPoint | undefined;
  /** Buffers of cursors that have ended. */
  readonly #idle: RowBuffer[] = [];

  constructor(
    view: ShardView,
    index: SeriesIndex,
    startSeconds: number,
    request: ShardScanRequest,
    series: Uint32Array,
  ) {
    const { measurement, from, to, descending, summaries, own } = request;
    const found = request.fields.map((name) => index.findField(measurement, name));
    const fields = [...new Set(found.filter((field) => field !== undefined))];
    this.#view = view;
    this.fieldTypes = found.map((field) => field?.type);
    this.series = series;
    this.#slots = found.map((field) => (field === undefined ? -1 : fields.indexOf(field)));
    const bounds = (request.bounds ?? []).map(({ field, op, value }) => ({
      column: this.#slots[field]!,
      op,
      value,
    }));
    this.#isEmpty = fields.length === 0 || bounds.some(({ column }) => column < 0);
    const single = request.rowsPerSeries === 1 && bounds.length === 0;
    this.#options = {
      wanted: { ...fieldsWanted(fields), from, to, descending, single, own },
      chunkRows: Math.min(request.rowsPerSeries || chunkRows, chunkRows),
      buckets: summaries && new Buckets(summaries.width, summaries.offset, startSeconds),
      bounds,
      base: startSeconds,
    };
    // The scan caches the last rows it finds.
    if (descending && single && own === undefined) {
      this.#lastPoint = new LastPoint(view, this.#options, index.fields(measurement));
    }
  }

  cursor(series: number): SeriesCursor {
    if (this.#isEmpty) return emptyCursor;
    const { wanted, base } = this.#options;
    const out = this.#idle.pop() ?? new RowBuffer(wanted.types);
    out.clear();
    const pieces = this.#lastPoint?.find(series, out)
      ? new OnePiece(out)
      : new SeriesMerge(this.#view.sources(series, wanted), this.#options, out);
    return new PieceCursor(pieces, this.#slots, base, () => this.#idle.push(out));
  }

  close(): void {
    this.#view.close();
  }
}

type Pieces = Pick<SeriesMerge, 'next'>;

class OnePiece implements Pieces {
  #piece: RowBuffer | undefined;

  constructor(piece: RowBuffer) {
    this.#piece = piece;
  }

  next(): RowBuffer | undefined {
    const piece = this.#piece;
    this.#piece = undefined;
    return piece;
  }
}

class PieceCursor implements SeriesCursor {
  #pieces: Pieces | undefined;
  readonly #slots: readonly number[];
  readonly #base: number;
  readonly #onEnd: () => void;

  constructor(pieces: Pieces, slots: readonly number[], base: number, onEnd: () => void) {
    this.#pieces = pieces;
    this.#slots = slots;
    this.#base = base;
    this.#onEnd = onEnd;
  }

  next(): ReturnType<SeriesCursor['next']> {
    const piece = this.#pieces?.next();
    if (piece === undefined) {
      if (this.#pieces !== undefined) this.#onEnd();
      this.#pieces = undefined;
      return undefined;
    }
    if (piece instanceof RowBuffer) {
      const columns = this.#inSlots<Column>(piece.columns());
      const { times, count } = piece;
      return { kind: 'rows', base: this.#base, times, count, columns };
    }
    return { ...piece, columns: this.#inSlots<ColumnSummary>(piece.columns) };
  }

  /** Of the requested columns, those of the request's fields. */
  #inSlots<T>(columns: readonly (T | undefined)[]): (T | undefined)[] {
    return this.#slots.map((slot) => (slot < 0 ? undefined : columns[slot]));
  }
}
