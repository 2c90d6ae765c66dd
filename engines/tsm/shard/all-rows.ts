// All points of a view, series by series and a piece of a series at a time, so that they can be written to a
// file or a snapshot between other things.

import type { Rows, SeriesIndex, TsmWriter } from '../parts.ts';
import type { SlicedWork } from '../sliced-work.ts';
import { RowBuffer } from './row-buffer.ts';
import { SeriesMerge } from './series-merge.ts';
import type { ExportedRows } from './shard.ts';
import { chunkRows } from './shard-scan.ts';
import type { ShardView } from './shard-view.ts';
import { allOf, fieldsWanted, type Wanted } from './source.ts';

/** All rows of the series in the view, all fields by their numbers. Each is valid until the next. */
function* allRows(
  view: ShardView,
  index: SeriesIndex,
  series: Iterable<number>,
): IterableIterator<ExportedRows> {
  let wanted: Wanted | undefined;
  let out: RowBuffer | undefined;
  let last = -1;
  for (const number of series) {
    const measurement = index.measurementOf(number);
    const fields = index.fields(measurement);
    if (wanted === undefined || measurement !== last || fields.length !== wanted.fields.length) {
      wanted = allOf(fieldsWanted(fields));
      out = new RowBuffer(wanted.types);
      last = measurement;
    }
    const options = { wanted, chunkRows, bounds: [], base: 0 };
    const merge = new SeriesMerge(view.sources(number, wanted), options, out!);
    for (;;) {
      const piece = merge.next();
      if (!(piece instanceof RowBuffer)) break;
      yield { series: number, measurement, rows: piece.rows() satisfies Rows };
    }
  }
}

/** As `allRows`; closes the view at its end. */
export function exported(
  view: ShardView,
  index: SeriesIndex,
  series: Iterable<number>,
): IterableIterator<ExportedRows> {
  const rows = allRows(view, index, series);
  // A generator that is not begun would not release the view.
  const end = (): IteratorResult<ExportedRows> => {
    view.close();
    return { done: true, value: undefined };
  };
  return {
    next: () => {
      const step = rows.next();
      return step.done ? end() : step;
    },
    return: end,
    [Symbol.iterator]() {
      return this;
    },
  };
}

/** Leaves out removed series. Yields between pieces; returns how many rows it wrote. */
export function* writeAll(
  view: ShardView,
  index: SeriesIndex,
  series: Iterable<number>,
  writer: TsmWriter,
): SlicedWork<number> {
  let written = 0;
  for (const piece of allRows(view, index, remaining(index, series))) {
    writer.add(piece.series, piece.measurement, piece.rows);
    written += piece.rows.count;
    yield writer.overdue();
  }
  return written;
}

function* remaining(index: SeriesIndex, series: Iterable<number>): IterableIterator<number> {
  for (const number of series) if (!index.isRemoved(number)) yield number;
}

/** The numbers in any of the ascending lists, ascending. */
export function* union(lists: readonly Uint32Array[]): IterableIterator<number> {
  const positions = lists.map(() => 0);
  for (;;) {
    let least = Infinity;
    for (let i = 0; i < lists.length; i++) {
      const value = lists[i]![positions[i]!];
      if (value !== undefined && value < least) least = value;
    }
    if (least === Infinity) return;
    for (let i = 0; i < lists.length; i++) {
      if (lists[i]![positions[i]!] === least) positions[i]!++;
    }
    yield least;
  }
}
