// Puts deletions into words. Which series a selection means is settled here, by whoever has the shards as
// they are now: whoever applies the words is told numbers. So is which series are left without a point.

import type { RecordBatchWriter } from '../../../universal-row/record-batch.ts';
import type { SeriesSelection } from '../../../contracts/series-store.ts';
import type { LiveShard } from '../live-shard.ts';
import { Op, putF64, putSeries, putU32, putU8 } from '../words/words.ts';

export function putDrop(into: RecordBatchWriter, shard: number): void {
  putU8(into, Op.drop);
  putU32(into, shard);
}

/** Deletes whole series. */
export function prepareDropSeries(
  shards: readonly LiveShard[],
  selection: SeriesSelection,
  into: RecordBatchWriter,
): void {
  for (const live of shards) putRemoval(live, select(live, selection), into);
}

/** Deletes the points in the range, and the series that have no others. */
export function prepareDeletePoints(
  shards: readonly LiveShard[],
  selection: SeriesSelection,
  into: RecordBatchWriter,
): void {
  for (const live of shards) {
    const range = live.clip(selection.from, selection.to);
    if (range === undefined) continue;
    const { from, to } = range;
    const selected = select(live, selection);
    if (from === 0 && to === live.lastOffset) {
      putRemoval(live, selected, into);
      continue;
    }
    const { shard, lastOffset } = live;
    const touched = selected.filter((series) => shard.hasRows(series, from, to));
    if (touched.length === 0) continue;
    const remains = (series: number): boolean =>
      (from > 0 && shard.hasRows(series, 0, from - 1)) ||
      (to < lastOffset && shard.hasRows(series, to + 1, lastOffset));
    const emptied = touched.filter((series) => !remains(series));
    if (emptied.length < touched.length) {
      putU8(into, Op.delete);
      putU32(into, live.span.number);
      putF64(into, from);
      putF64(into, to);
      putSeries(into, touched);
    }
    putRemoval(live, emptied, into);
  }
}

/** A shard without series goes as a whole. */
function putRemoval(live: LiveShard, series: Uint32Array, into: RecordBatchWriter): void {
  if (series.length === 0) return;
  if (series.length === live.series) {
    putDrop(into, live.span.number);
    return;
  }
  putU8(into, Op.remove);
  putU32(into, live.span.number);
  putSeries(into, series);
}

/** Live series that the selection means, in any order. */
function select(live: LiveShard, { measurement, filter }: SeriesSelection): Uint32Array {
  const { index } = live.shard;
  if (measurement !== undefined) {
    const number = index.findMeasurement(measurement);
    return number < 0 ? new Uint32Array(0) : index.select(number, filter);
  }
  const parts: Uint32Array[] = [];
  for (let number = 0; number < index.measurementCount; number++) {
    if (index.liveSeriesOf(number) > 0) parts.push(index.select(number, filter));
  }
  const all = new Uint32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
