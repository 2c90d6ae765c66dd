// Writes a row of an engine as the ops of a record batch, by which any other engine makes the same row.

import { emptyBytes, Slice } from './bytes.ts';
import type { RecordBatchWriter } from './record-batch.ts';
import { endOfRecords, Shape, type Row, type RowReads } from './rows.ts';

const key = new Slice();
const bytes = new Slice();

/**
 * Appends the ops that replace whatever is under the row's key in `table`; none for no row. A `ReadFault` leaves the ops
 * of a part of the row.
 */
export function appendRow(
  rows: RowReads,
  row: Row,
  table: number,
  writer: RecordBatchWriter,
): void {
  const shape = rows.shape(row);
  if (shape === Shape.none) return;
  const expireAt = rows.expireAt(row);
  rows.key(row, key);
  if (shape === Shape.value) {
    rows.value(row, bytes);
    const { b, s, n } = bytes;
    writer.value(table, key.b, key.s, key.n, b, s, n, expireAt);
    return;
  }
  writer.row(table, key.b, key.s, key.n);
  writer.create(shape);
  appendElements(rows, row, shape, writer);
  if (expireAt !== 0) writer.expire(expireAt);
}

function appendElements(rows: RowReads, row: Row, shape: Shape, writer: RecordBatchWriter): void {
  switch (shape) {
    case Shape.map:
    case Shape.set:
      rows.eachField(row, (fb, fs, fn, vb, vs, vn) => {
        writer.field(fb, fs, fn, vb, vs, vn);
      });
      return;
    case Shape.ranked:
      rows.eachByRank(row, 0, rows.count(row), false, (b, s, n, score) => {
        writer.score(score, b, s, n);
      });
      return;
    case Shape.array:
      rows.eachElement(row, 0, rows.count(row), false, (b, s, n) => {
        writer.push(false, b, s, n);
      });
      return;
    case Shape.timed:
    case Shape.stream:
      rows.streamState(row, bytes);
      writer.streamState(bytes.b, bytes.s, bytes.n);
      rows.eachStreamRecord(
        row,
        emptyBytes,
        endOfRecords,
        false,
        Infinity,
        (kb, ks, kn, vb, vs, vn) => {
          writer.streamRecord(true, kb, ks, kn, vb, vs, vn);
        },
      );
  }
}
