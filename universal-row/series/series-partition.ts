// Which of several partitions has a series: by the hash of measurement and tags, each partition an equal range of
// hashes. The same on every node and for good, as points are found again by it.

import { hashKey } from './series-key.ts';

/** Partitions at most: each has a log, files and memory of its own. */
export const mostSeriesPartitions = 64;

/** Of the series with the key `buf[start, end)`. */
export function seriesPartition(
  buf: Buffer,
  start: number,
  end: number,
  partitions: number,
): number {
  return Math.floor((hashKey(buf, start, end) * partitions) / 0x1_0000_0000);
}
