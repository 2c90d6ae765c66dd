// The serialized writes of a command: the payload of a log entry, which replicas apply.
//
//   batch  = op*                             all or nothing
//   op     = code u8, then by code (v = LEB128 varint, f = f64 little-endian, bytes = v length + bytes)
//     row      table v, key bytes            the row that the ops after it are about
//     value    table v, key bytes, expireAt f, value bytes
//     create   shape u8                      an empty container under the current row's key
//     drop
//     expire   expireAt f
//     rename   key bytes                     the current row is then the new one
//     patch    offset v, bytes
//     field    field bytes, value bytes
//     member   field bytes                   a field with an empty value
//     unfield  field bytes
//     score    score f, member bytes
//     head / tail        bytes               push
//     unhead / untail                        pop
//     element  index v, bytes
//     insert   index v, bytes
//     remove   index v, count v
//     clear    table v
//     swap     table v, table v
//     streamState   bytes                    a stream's own bytes
//     streamAdd / streamSet   key bytes, value bytes
//     streamRemove  key bytes
//     streamCut     key bytes, key bytes     records from the first key on, below the second
//
// A key is written once however many of its fields follow. Ops are deterministic given the state
// before them, and a batch is applied once, by its log index, so they need not be idempotent.

import { copyBytes, emptyBytes, viewed, type ViewedBuffer } from './bytes.ts';
import { spareBuffers } from './spare-buffers.ts';
import type { Shape } from './rows.ts';

export const Op = {
  row: 1,
  value: 2,
  create: 3,
  drop: 4,
  expire: 5,
  rename: 6,
  patch: 7,
  field: 8,
  member: 9,
  unfield: 10,
  score: 11,
  head: 12,
  tail: 13,
  unhead: 14,
  untail: 15,
  element: 16,
  insert: 17,
  remove: 18,
  clear: 19,
  swap: 20,
  /** As `value` with no expiry: the most frequent write of all saves eight bytes. */
  valueForever: 21,
  streamState: 22,
  streamAdd: 23,
  streamSet: 24,
  streamRemove: 25,
  streamCut: 26,
} as const;

const initialBytes = 64 * 1024;
/**
 * Spare room, so that a large op need not be moved to append the end of the entry, or of its frame.
 */
const spareBytes = 1024;

const f64 = new Float64Array(1);
const f64Bytes = new Uint8Array(f64.buffer);

/** Appends ops to one growing buffer. The log frames entries around them in place. */
export class RecordBatchWriter {
  buf: ViewedBuffer = viewed(Buffer.allocUnsafeSlow(initialBytes));
  pos = 0;

  /** Begins anew, in another buffer. */
  renew(buf: ViewedBuffer = viewed(Buffer.allocUnsafeSlow(initialBytes))): void {
    this.buf = buf;
    this.pos = 0;
  }

  /** Makes sure that `n` more bytes fit. */
  reserve(n: number): void {
    const need = this.pos + n;
    if (need <= this.buf.length) return;
    const larger = viewed(spareBuffers.take(Math.max(need + spareBytes, this.buf.length * 2)));
    this.buf.copy(larger, 0, 0, this.pos);
    this.buf = larger;
  }

  /** Ops that another writer has, from `start` on. */
  append(other: RecordBatchWriter, start: number): void {
    const bytes = other.pos - start;
    this.reserve(bytes);
    other.buf.copy(this.buf, this.pos, start, other.pos);
    this.pos += bytes;
  }

  row(table: number, b: Buffer, s: number, n: number): void {
    this.reserve(n + 16);
    this.buf[this.pos++] = Op.row;
    this.#varint(table);
    this.#bytes(b, s, n);
  }

  value(
    table: number,
    b: Buffer,
    s: number,
    n: number,
    vb: Buffer,
    vs: number,
    vn: number,
    expireAt: number,
  ): void {
    this.reserve(n + vn + 40);
    this.buf[this.pos++] = expireAt === 0 ? Op.valueForever : Op.value;
    this.#varint(table);
    this.#bytes(b, s, n);
    if (expireAt !== 0) this.#double(expireAt);
    this.#bytes(vb, vs, vn);
  }

  /** As `value`, whose bytes `fill` writes; returns where they begin. */
  reserveValue(table: number, b: Buffer, s: number, n: number, bytes: number, at: number): number {
    this.value(table, b, s, n, emptyBytes, 0, 0, at);
    // The length of none takes one byte.
    this.pos--;
    this.reserve(bytes + 12);
    this.#varint(bytes);
    const start = this.pos;
    this.pos += bytes;
    return start;
  }

  /** Writes bytes of a reserved value. */
  fill(at: number, b: Buffer, s: number, n: number): void {
    copyBytes(this.buf, at, b, s, n);
  }

  create(shape: Shape): void {
    this.reserve(2);
    this.buf[this.pos++] = Op.create;
    this.buf[this.pos++] = shape;
  }

  drop(): void {
    this.#code(Op.drop);
  }

  expire(expireAt: number): void {
    this.reserve(9);
    this.buf[this.pos++] = Op.expire;
    this.#double(expireAt);
  }

  rename(b: Buffer, s: number, n: number): void {
    this.#codeBytes(Op.rename, b, s, n);
  }

  patch(offset: number, b: Buffer, s: number, n: number): void {
    this.#codeNumberBytes(Op.patch, offset, b, s, n);
  }

  field(fb: Buffer, fs: number, fn: number, vb: Buffer, vs: number, vn: number): void {
    this.reserve(fn + vn + 24);
    this.buf[this.pos++] = vn === 0 ? Op.member : Op.field;
    this.#bytes(fb, fs, fn);
    if (vn !== 0) this.#bytes(vb, vs, vn);
  }

  unfield(b: Buffer, s: number, n: number): void {
    this.#codeBytes(Op.unfield, b, s, n);
  }

  score(score: number, b: Buffer, s: number, n: number): void {
    this.reserve(n + 24);
    this.buf[this.pos++] = Op.score;
    this.#double(score);
    this.#bytes(b, s, n);
  }

  push(atHead: boolean, b: Buffer, s: number, n: number): void {
    this.#codeBytes(atHead ? Op.head : Op.tail, b, s, n);
  }

  pop(atHead: boolean): void {
    this.#code(atHead ? Op.unhead : Op.untail);
  }

  element(index: number, b: Buffer, s: number, n: number): void {
    this.#codeNumberBytes(Op.element, index, b, s, n);
  }

  insert(index: number, b: Buffer, s: number, n: number): void {
    this.#codeNumberBytes(Op.insert, index, b, s, n);
  }

  remove(index: number, count: number): void {
    this.#codeNumbers(Op.remove, index, count);
  }

  streamState(b: Buffer, s: number, n: number): void {
    this.#codeBytes(Op.streamState, b, s, n);
  }

  /** A record that is new, or takes the place of one. */
  streamRecord(
    isNew: boolean,
    kb: Buffer,
    ks: number,
    kn: number,
    vb: Buffer,
    vs: number,
    vn: number,
  ): void {
    this.reserve(kn + vn + 24);
    this.buf[this.pos++] = isNew ? Op.streamAdd : Op.streamSet;
    this.#bytes(kb, ks, kn);
    this.#bytes(vb, vs, vn);
  }

  streamRemove(b: Buffer, s: number, n: number): void {
    this.#codeBytes(Op.streamRemove, b, s, n);
  }

  streamCut(from: Buffer, to: Buffer): void {
    this.#codeBytes(Op.streamCut, from, 0, from.length);
    this.reserve(to.length + 12);
    this.#bytes(to, 0, to.length);
  }

  clear(table: number): void {
    this.reserve(10);
    this.buf[this.pos++] = Op.clear;
    this.#varint(table);
  }

  swap(a: number, b: number): void {
    this.#codeNumbers(Op.swap, a, b);
  }

  #code(op: number): void {
    this.reserve(1);
    this.buf[this.pos++] = op;
  }

  #codeBytes(op: number, b: Buffer, s: number, n: number): void {
    this.reserve(n + 12);
    this.buf[this.pos++] = op;
    this.#bytes(b, s, n);
  }

  #codeNumberBytes(op: number, index: number, b: Buffer, s: number, n: number): void {
    this.reserve(n + 24);
    this.buf[this.pos++] = op;
    this.#varint(index);
    this.#bytes(b, s, n);
  }

  #codeNumbers(op: number, a: number, b: number): void {
    this.reserve(20);
    this.buf[this.pos++] = op;
    this.#varint(a);
    this.#varint(b);
  }

  #bytes(b: Buffer, s: number, n: number): void {
    this.#varint(n);
    copyBytes(this.buf, this.pos, b, s, n);
    this.pos += n;
  }

  #varint(value: number): void {
    let v = value;
    if (v < 0x80) {
      this.buf[this.pos++] = v;
      return;
    }
    while (v >= 0x80) {
      this.buf[this.pos++] = (v % 128) | 0x80;
      v = Math.floor(v / 128);
    }
    this.buf[this.pos++] = v;
  }

  #double(value: number): void {
    f64[0] = value;
    const p = this.pos;
    for (let i = 0; i < 8; i++) this.buf[p + i] = f64Bytes[i]!;
    this.pos = p + 8;
  }
}

/** Reads the parts of ops in order. Throws `RangeError` when they run past `end`: the batch is damaged. */
export class RecordBatchReader {
  buf: Buffer;
  pos: number;
  end: number;
  /** Where the bytes last read begin and how many they are. */
  start = 0;
  length = 0;

  constructor(buf: Buffer, start: number, end: number) {
    this.buf = buf;
    this.pos = start;
    this.end = end;
  }

  byte(): number {
    if (this.pos >= this.end) throw new RangeError('record batch: cut short');
    return this.buf[this.pos++]!;
  }

  varint(): number {
    let value = 0;
    let scale = 1;
    for (let i = 0; i < 8; i++) {
      const byte = this.byte();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 128;
    }
    throw new RangeError('record batch: number too long');
  }

  double(): number {
    if (this.pos + 8 > this.end) throw new RangeError('record batch: cut short');
    for (let i = 0; i < 8; i++) f64Bytes[i] = this.buf[this.pos + i]!;
    this.pos += 8;
    return f64[0]!;
  }

  bytes(): void {
    const n = this.varint();
    if (this.pos + n > this.end) throw new RangeError('record batch: cut short');
    this.start = this.pos;
    this.length = n;
    this.pos += n;
  }
}
