// Encodes deletions. The leader resolves a selection to series against its current shards. An entry has the numbers
// of these series, and of the series that are left without a point.

import type { RecordBatchWriter } from '../../../universal-row/record-batch.ts';
import { unwaiting } from '../../../universal-row/slices.ts';
import type { SeriesSelection } from '../../../contracts/series-store.ts';
import type { LiveShard } from '../live-shard.ts';
import { Op, putF64, putSeries, putU32, putU8 } from '../ops/op-codec.ts';

export function putDrop(into: RecordBatchWriter, shard: number): void {
  putU8(into, Op.drop);
  putU32(into, shard);
}

/** Encoder of one entry of a deletion; undefined if there is none yet. */
export type DeletionPart = ((into: RecordBatchWriter) => void) | undefined;

/** Series that one entry is about. */
const seriesAtOnce = 2048;

/** Deletes whole series: those that exist at the start. */
export function* dropSeriesParts(
  shards: readonly LiveShard[],
  selection: SeriesSelection,
): Generator<DeletionPart, void, void> {
  for (const live of shards) yield* removalParts(live, yield* select(live, selection));
}

/** Deletes the points in the range, and the series that have no others. */
export function* deletePointsParts(
  shards: readonly LiveShard[],
  selection: SeriesSelection,
): Generator<DeletionPart, void, void> {
  for (const live of shards) {
    const range = live.clip(selection.from, selection.to);
    if (range === undefined) continue;
    const { from, to } = range;
    const selected = yield* select(live, selection);
    if (from === 0 && to === live.lastOffset) yield* removalParts(live, selected);
    else {
      yield* partsOf(live, selected, (into, series) => putDeletion(live, series, from, to, into));
    }
  }
}

/** A shard whose series are all meant goes as a whole. */
function* removalParts(
  live: LiveShard,
  selected: Uint32Array,
): Generator<DeletionPart, void, void> {
  if (selected.length > 0 && selected.length === live.series) {
    let isDropped = false;
    yield (into) => {
      if (live.isDropped || selected.length !== live.series) return;
      if (selected.some((series) => live.shard.index.isRemoved(series))) return;
      putDrop(into, live.span.number);
      isDropped = true;
    };
    if (isDropped) return;
  }
  yield* partsOf(live, selected, (into, series) => putRemoval(live, series, into));
}

/** Some series at a time, less those that were removed since they were selected. */
function* partsOf(
  live: LiveShard,
  selected: Uint32Array,
  put: (into: RecordBatchWriter, series: Uint32Array) => void,
): Generator<DeletionPart, void, void> {
  for (let start = 0; start < selected.length; start += seriesAtOnce) {
    yield (into) => {
      if (live.isDropped) return;
      const series = selected.subarray(start, start + seriesAtOnce);
      put(
        into,
        series.filter((one) => !live.shard.index.isRemoved(one)),
      );
    };
  }
}

function putDeletion(
  live: LiveShard,
  series: Uint32Array,
  from: number,
  to: number,
  into: RecordBatchWriter,
): void {
  const { shard, lastOffset } = live;
  const touched = series.filter((one) => shard.hasRows(one, from, to));
  if (touched.length === 0) return;
  const remains = (one: number): boolean =>
    (from > 0 && shard.hasRows(one, 0, from - 1)) ||
    (to < lastOffset && shard.hasRows(one, to + 1, lastOffset));
  const emptied = touched.filter((one) => !remains(one));
  if (emptied.length < touched.length) {
    putU8(into, Op.delete);
    putU32(into, live.span.number);
    putF64(into, from);
    putF64(into, to);
    putSeries(into, touched);
  }
  putRemoval(live, emptied, into);
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
function* select(
  live: LiveShard,
  { measurement, filter }: SeriesSelection,
): Generator<undefined, Uint32Array, void> {
  const { index } = live.shard;
  if (measurement !== undefined) {
    const number = index.findMeasurement(measurement);
    return number < 0 ? new Uint32Array(0) : yield* unwaiting(index.select(number, filter));
  }
  const parts: Uint32Array[] = [];
  for (let number = 0; number < index.measurementCount; number++) {
    if (index.liveSeriesOf(number) > 0) parts.push(yield* unwaiting(index.select(number, filter)));
  }
  const all = new Uint32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
