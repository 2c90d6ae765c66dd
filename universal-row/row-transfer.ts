// Conversion between the structured row and the engines' form: a row as the ops of a record batch,
// and a row of an engine as a Universal Row. Engines keep bytes under a key of bytes, so only such
// rows pass.

import { emptyBytes, Slice } from './bytes.ts';
import type { RecordBatchWriter } from './record-batch.ts';
import { rowKey, type RowAttributes, type RowValue, type URow } from './row.ts';
import { endOfRecords, Shape, type Row, type RowReads } from './rows.ts';
import { isStateOfTimedMap } from './timed-map.ts';
import { RowValueError, type Scalar } from './scalar.ts';

/**
 * Appends the ops that replace the row under its key. A container without elements is no row to an engine: the ops drop
 * the existing one. Throws `RowValueError`, with nothing appended, for
 * a row that an engine of bytes cannot hold exactly.
 */
export function toBatch(row: URow, table: number, writer: RecordBatchWriter): void {
  const start = writer.pos;
  try {
    appendRow(row, table, writer);
  } catch (error) {
    writer.pos = start;
    throw error;
  }
}

function appendRow(row: URow, table: number, writer: RecordBatchWriter): void {
  const key = onlyKey(row);
  const expireAt = row.attrs.expireAt ?? 0;
  const { value } = row;
  if (value.kind === 'primitive') {
    const bytes = bytesOf(value.value);
    writer.value(table, key, 0, key.length, bytes, 0, bytes.length, expireAt);
    return;
  }
  writer.row(table, key, 0, key.length);
  if (value.kind !== 'stream' && countOf(value) === 0) return writer.drop();
  writer.create(value.kind === 'stream' ? shapeOfRecords(value.state) : shapeOf[value.kind]);
  switch (value.kind) {
    case 'map':
      for (const [field, item] of value.entries) {
        const f = bytesOf(field);
        const v = bytesOf(item);
        writer.field(f, 0, f.length, v, 0, v.length);
      }
      break;
    case 'set':
      for (const member of value.members) {
        const m = bytesOf(member);
        writer.field(m, 0, m.length, m, 0, 0);
      }
      break;
    case 'ranked':
      for (const [member, score] of value.members) {
        if (Number.isNaN(score) || Object.is(score, -0)) {
          throw new RowValueError(`an engine cannot hold the score ${score}`);
        }
        const m = bytesOf(member);
        writer.score(score, m, 0, m.length);
      }
      break;
    case 'array':
      for (const element of value.elements) {
        const e = bytesOf(element);
        writer.push(false, e, 0, e.length);
      }
      break;
    case 'stream': {
      const state = bytesOf(value.state);
      writer.streamState(state, 0, state.length);
      for (const [key, item] of value.records) {
        const k = bytesOf(key);
        if (k[0]! >= endOfRecords[0]!)
          throw new RowValueError('an engine cannot hold the record key');
        const v = bytesOf(item);
        writer.streamRecord(true, k, 0, k.length, v, 0, v.length);
      }
      break;
    }
    default:
      throw foreign(value);
  }
  if (expireAt !== 0) writer.expire(expireAt);
}

const shapeOf = {
  map: Shape.map,
  set: Shape.set,
  ranked: Shape.ranked,
  array: Shape.array,
  stream: Shape.stream,
  columns: Shape.none,
  document: Shape.none,
} as const;

function shapeOfRecords(state: Scalar): Shape {
  return isStateOfTimedMap(bytesOf(state)) ? Shape.timed : Shape.stream;
}

function countOf(value: RowValue): number {
  switch (value.kind) {
    case 'map':
      return value.entries.length;
    case 'set':
    case 'ranked':
      return value.members.length;
    case 'array':
      return value.elements.length;
    case 'stream':
      return value.records.length;
    default:
      throw foreign(value);
  }
}

function foreign(value: RowValue): RowValueError {
  return new RowValueError(`an engine of bytes cannot hold a ${value.kind} row`);
}

function onlyKey(row: URow): Buffer {
  const [key, ...more] = row.key.partition;
  if (key === undefined || more.length > 0 || row.key.range.length > 0) {
    throw new RowValueError('an engine of bytes wants one partition key and no range key');
  }
  return bytesOf(key);
}

function bytesOf(scalar: Scalar): Buffer {
  if (!(scalar instanceof Uint8Array)) {
    throw new RowValueError('an engine of bytes holds bytes only');
  }
  return Buffer.from(scalar.buffer, scalar.byteOffset, scalar.byteLength);
}

/**
 * A copy of an engine's row, or undefined for no row. Engines keep no version or time of a write, so the
 * caller says them; the expiry is the engine's.
 */
export function fromRows(
  rows: RowReads,
  row: Row,
  written: { readonly version: number; readonly ts: number },
): URow | undefined {
  const value = readValue(rows, row);
  if (value === undefined) return undefined;
  const key = new Slice();
  rows.key(row, key);
  const expireAt = rows.expireAt(row);
  const { version, ts } = written;
  const attrs: RowAttributes = expireAt === 0 ? { version, ts } : { version, ts, expireAt };
  return { key: rowKey([key.copy()]), value, attrs };
}

function readValue(rows: RowReads, row: Row): RowValue | undefined {
  switch (rows.shape(row)) {
    case Shape.none:
      return undefined;
    case Shape.value: {
      const out = new Slice();
      rows.value(row, out);
      return { kind: 'primitive', value: out.copy() };
    }
    case Shape.map: {
      const entries: [Scalar, Scalar][] = [];
      rows.eachField(row, (fb, fs, fn, vb, vs, vn) => {
        entries.push([copyOf(fb, fs, fn), copyOf(vb, vs, vn)]);
      });
      return { kind: 'map', entries };
    }
    case Shape.set: {
      const members: Scalar[] = [];
      rows.eachField(row, (b, s, n) => {
        members.push(copyOf(b, s, n));
      });
      return { kind: 'set', members };
    }
    case Shape.ranked: {
      const members: [Scalar, number][] = [];
      rows.eachByRank(row, 0, rows.count(row), false, (b, s, n, score) => {
        members.push([copyOf(b, s, n), score]);
      });
      return { kind: 'ranked', members };
    }
    case Shape.array: {
      const elements: Scalar[] = [];
      rows.eachElement(row, 0, rows.count(row), false, (b, s, n) => {
        elements.push(copyOf(b, s, n));
      });
      return { kind: 'array', elements };
    }
    case Shape.timed:
    case Shape.stream: {
      const state = new Slice();
      rows.streamState(row, state);
      const records: [Scalar, Scalar][] = [];
      rows.eachStreamRecord(
        row,
        emptyBytes,
        endOfRecords,
        false,
        Infinity,
        (kb, ks, kn, vb, vs, vn) => {
          records.push([copyOf(kb, ks, kn), copyOf(vb, vs, vn)]);
        },
      );
      return { kind: 'stream', state: state.copy(), records };
    }
  }
}

function copyOf(b: Buffer, s: number, n: number): Buffer {
  return Buffer.from(b.subarray(s, s + n));
}
