// A LevelDB record in memory: one that waits to be written, one kept because it was read, or the
// knowledge that there is none under a key.

import { emptyBytes } from '../../universal-row/bytes.ts';
import { Shape } from '../../universal-row/rows.ts';
import type { RecordSpace } from './record-space.ts';
import { LruItem } from './size-aware-lru.ts';

// What V8 takes for the object, its place in a map, and the `Buffer` object of its value.
const recordOverheadBytes = 240;

export class KvRecord extends LruItem {
  readonly space: RecordSpace;
  /** Within the space. */
  readonly key: string;
  #present = false;
  /** As on disk; for scores see `score`, for containers' meta records the fields of `RowRecord`. */
  value: Buffer = emptyBytes;
  score = 0;
  /** Number of the write batch it goes to disk with; 0 when the disk has it as it is. */
  batch = 0;
  /** Bytes counted as waiting to be written. */
  waitingBytes = 0;
  /** Whether it is in the space's order. */
  ordered = false;
  /** The command that has changed it already. */
  touchedBy = 0;
  /** The disk has never seen this key, so there is nothing to delete. */
  fresh = false;

  constructor(space: RecordSpace, key: string) {
    super();
    this.space = space;
    this.key = key;
  }

  /** False: there is no such record, or it is to be deleted. */
  get present(): boolean {
    return this.#present;
  }

  set present(present: boolean) {
    if (this.ordered && present !== this.#present) {
      const { order } = this.space;
      if (order !== undefined) order.absent += present ? -1 : 1;
    }
    this.#present = present;
  }

  footprint(): number {
    return recordOverheadBytes + this.key.length + this.value.length;
  }

  ghostKey(): number {
    const { key } = this;
    let h = this.space.id | 0;
    for (let i = 0; i < key.length; i++) h = Math.imul(h ^ key.charCodeAt(i), 0x01000193);
    return h;
  }
}

const expiryFlag = 1;

/** What a meta record says. */
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

/** A meta record: the row itself. */
export class RowRecord extends KvRecord implements RowForm {
  shape: Shape = Shape.none;
  expireAt = 0;
  /** Where a value row's bytes begin in `value`; a stream's state is all of it. */
  valueStart = 0;
  /** Of a value row that was appended to: its bytes' buffer, with room behind them. */
  spare: Buffer | undefined = undefined;
  /** Of a container: its number in sub-record keys, elements, and their payload bytes, about. */
  number = 0;
  count = 0;
  bytes = 0;
  /** Of an array: the position of its first element. */
  head = 0;
  /** Of a container once its sub-records were looked at. */
  sub: RecordSpace | undefined = undefined;
  /** The row handle, 0 while nobody holds one. */
  slot = 0;

  override footprint(): number {
    return 160 + super.footprint();
  }
}

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
//   or the state of a stream
const containerBytes = 18;

export function encodeRow(row: RowForm): Buffer {
  if (row.shape === Shape.value) return row.value;
  const at = valueHeaderBytes(row.expireAt);
  const isArray = row.shape === Shape.array;
  const state = row.shape === Shape.stream ? row.value : emptyBytes;
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
  const isKnown = shape !== undefined && shape >= Shape.value && shape <= Shape.stream;
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
  row.value = shape === Shape.stream ? from.subarray(at + containerBytes) : emptyBytes;
  row.number = from.readUIntBE(at, 6);
  row.count = from.readUIntBE(at + 6, 6);
  row.bytes = from.readUIntBE(at + 12, 6);
  row.head = shape === Shape.array ? from.readDoubleBE(at + containerBytes) : 0;
}
