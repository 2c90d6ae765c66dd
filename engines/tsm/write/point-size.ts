// Size of a point, for limits: about the bytes of its line. Its series' key, its time, and for each
// field the name and the value. Numbers and times count as 8 bytes, a boolean as 1.

import type { PointBatch, PointGroup } from '../../../universal-row/series/point-batch.ts';

const numberBytes = 8;
const timeBytes = 8;

/** By row: 1 for a point of more than `limit` bytes; undefined when no point of the group is. */
export function largerPoints(
  batch: PointBatch,
  group: PointGroup,
  limit: number,
): Uint8Array | undefined {
  const { cache } = batch;
  let larger: Uint8Array | undefined;
  const sizes = fieldBytes(batch, group);
  for (let row = 0; row < group.rows; row++) {
    const handle = group.series[row]!;
    const keyBytes = cache.keyEnd(handle) - cache.keyStart(handle);
    if (keyBytes + timeBytes + sizes[row]! <= limit) continue;
    larger ??= new Uint8Array(group.rows);
    larger[row] = 1;
  }
  return larger;
}

/** By row, of all fields together. */
function fieldBytes({ textEnds }: PointBatch, { columns, rows }: PointGroup): Float64Array {
  const sizes = new Float64Array(rows);
  for (const { field, type, numbers, present } of columns) {
    const nameBytes = Buffer.byteLength(field);
    const fixed = type === 'boolean' ? 1 : numberBytes;
    for (let row = 0; row < rows; row++) {
      if (present !== undefined && present[row] !== 1) continue;
      let valueBytes = fixed;
      if (type === 'string') {
        const n = numbers[row]!;
        valueBytes = textEnds[n]! - (n > 0 ? textEnds[n - 1]! : 0);
      }
      sizes[row]! += nameBytes + valueBytes;
    }
  }
  return sizes;
}
