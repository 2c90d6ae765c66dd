// A LevelDB record in memory: one that waits to be written, one kept because it was read, or the
// knowledge that there is none under a key.

import { emptyBytes } from '../../universal-row/bytes.ts';
import { Shape } from '../../universal-row/rows.ts';

const expiryFlag = 1;

/** Contents of a meta record. */
export interface RowForm {
  shape: Shape;
  expireAt: number;
  value: Buffer;
  valueStart: number;
  number: number;
  count: number;
  bytes: number;
  head: number;
}

export const emptyRow: Readonly<RowForm> = {
  shape: Shape.none,
  expireAt: 0,
  value: emptyBytes,
  valueStart: 0,
  number: 0,
  count: 0,
  bytes: 0,
  head: 0,
};

/** Bytes before the value in a value row's record. */
export function valueHeaderBytes(expireAt: number): number {
  return expireAt === 0 ? 2 : 10;
}

export function writeValueHeader(to: Buffer, expireAt: number): void {
  to[0] = Shape.value;
  to[1] = expireAt === 0 ? 0 : expiryFlag;
  if (expireAt !== 0) to.writeDoubleBE(expireAt, 2);
}

// A container's meta record:
//   shape u8 | flags u8 | expiry f64 if flagged | row number u48 | count u48 | bytes u48 | head i64 of an array,
//   or the state of a stream or a timed map
const containerBytes = 18;

/** Whether rows of the shape are a state and records. */
export function hasState(shape: Shape): boolean {
  return shape >= Shape.stream;
}

export function encodeRow(row: RowForm): Buffer {
  if (row.shape === Shape.value) return row.value;
  const at = valueHeaderBytes(row.expireAt);
  const isArray = row.shape === Shape.array;
  const state = hasState(row.shape) ? row.value : emptyBytes;
  const to = Buffer.allocUnsafe(at + containerBytes + (isArray ? 8 : 0) + state.length);
  writeValueHeader(to, row.expireAt);
  to[0] = row.shape;
  to.writeUIntBE(row.number, at, 6);
  to.writeUIntBE(row.count, at + 6, 6);
  to.writeUIntBE(row.bytes, at + 12, 6);
  if (isArray) to.writeDoubleBE(row.head, at + containerBytes);
  state.copy(to, at + containerBytes);
  return to;
}

/** Throws `RangeError` when the bytes are no meta record. */
export function decodeRow(row: RowForm, from: Buffer): void {
  const shape = from[0];
  const flags = from[1];
  const isKnown = shape !== undefined && shape >= Shape.value && shape <= Shape.timed;
  if (!isKnown || flags === undefined || flags > expiryFlag) {
    throw new RangeError('a meta record of no known form');
  }
  const at = flags === 0 ? 2 : 10;
  row.shape = shape as Shape;
  row.expireAt = flags === 0 ? 0 : from.readDoubleBE(2);
  if (shape === Shape.value) {
    row.value = from;
    row.valueStart = at;
    row.count = from.length - at;
    return;
  }
  row.value = hasState(shape as Shape) ? from.subarray(at + containerBytes) : emptyBytes;
  row.number = from.readUIntBE(at, 6);
  row.count = from.readUIntBE(at + 6, 6);
  row.bytes = from.readUIntBE(at + 12, 6);
  row.head = shape === Shape.array ? from.readDoubleBE(at + containerBytes) : 0;
}
