// Scalars in few bytes, for values. Keys use the order-preserving encoding of key-order.ts. A
// scalar is a tag byte and its contents; v is a LEB128 varint.
//
//   00 null    01 false    02 true
//   03 number, an integer below 2^31 either way: zigzag v
//   04 number: 8 bytes, little-endian double
//   05 bigint: 8 bytes, little-endian two's complement
//   06 string: length v, UTF-8
//   07 bytes: length v, the bytes
//   08..ff bytes of 0..247: the bytes

import { isUtf8 } from 'node:buffer';
import { RowValueError, checkScalar, type Scalar } from './scalar.ts';

const tagNull = 0;
const tagFalse = 1;
const tagTrue = 2;
const tagInteger = 3;
const tagDouble = 4;
const tagBigint = 5;
const tagString = 6;
const tagBytes = 7;
const tagShortBytes = 8;
const shortBytesMax = 0xff - tagShortBytes;

/** Appends to a buffer that grows. */
export class PackedWriter {
  #buf: Buffer;
  #pos = 0;

  constructor(initialBytes = 256) {
    this.#buf = Buffer.allocUnsafe(initialBytes);
  }

  get length(): number {
    return this.#pos;
  }

  /** The written bytes, without a copy. The writer must not be used afterwards. */
  finish(): Buffer {
    return this.#buf.subarray(0, this.#pos);
  }

  byte(value: number): void {
    this.#reserve(1);
    this.#buf[this.#pos++] = value;
  }

  /** A whole number from 0 to 2^53 - 1. */
  varint(value: number): void {
    this.#reserve(8);
    let v = value;
    while (v >= 0x80) {
      this.#buf[this.#pos++] = (v % 128) | 0x80;
      v = Math.floor(v / 128);
    }
    this.#buf[this.#pos++] = v;
  }

  /** A whole number of up to 48 bits, little-endian. */
  uint48(value: number): void {
    this.#reserve(6);
    this.#pos = this.#buf.writeUIntLE(value, this.#pos, 6);
  }

  raw(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#buf.set(bytes, this.#pos);
    this.#pos += bytes.length;
  }

  double(value: number): void {
    this.#reserve(8);
    this.#pos = this.#buf.writeDoubleLE(value, this.#pos);
  }

  scalar(value: Scalar): void {
    checkScalar(value);
    switch (typeof value) {
      case 'boolean':
        return this.byte(value ? tagTrue : tagFalse);
      case 'number':
        return this.#number(value);
      case 'bigint':
        this.byte(tagBigint);
        this.#reserve(8);
        this.#pos = this.#buf.writeBigInt64LE(value, this.#pos);
        return;
      case 'string': {
        const n = Buffer.byteLength(value);
        this.byte(tagString);
        this.varint(n);
        this.#reserve(n);
        this.#pos += this.#buf.write(value, this.#pos);
        return;
      }
      case 'object':
        if (value === null) return this.byte(tagNull);
        return this.#bytes(value);
      default:
        throw new RowValueError(`a row cannot hold ${typeof value}`);
    }
  }

  /** A count and that many scalars. */
  scalars(values: readonly Scalar[]): void {
    this.varint(values.length);
    for (const value of values) this.scalar(value);
  }

  #number(value: number): void {
    if ((value | 0) === value && !Object.is(value, -0)) {
      this.byte(tagInteger);
      this.varint(((value << 1) ^ (value >> 31)) >>> 0);
    } else {
      this.byte(tagDouble);
      this.double(value);
    }
  }

  #bytes(value: Uint8Array): void {
    if (value.length <= shortBytesMax) {
      this.byte(tagShortBytes + value.length);
    } else {
      this.byte(tagBytes);
      this.varint(value.length);
    }
    this.raw(value);
  }

  #reserve(n: number): void {
    const need = this.#pos + n;
    if (need <= this.#buf.length) return;
    const larger = Buffer.allocUnsafe(Math.max(need, this.#buf.length * 2));
    this.#buf.copy(larger, 0, 0, this.#pos);
    this.#buf = larger;
  }
}

/**
 * Decodes the output of `PackedWriter`. Throws `RangeError` for any other bytes, before it
 * allocates memory for them. Bytes read are copies.
 */
export class PackedReader {
  readonly #buf: Buffer;
  readonly #end: number;
  #pos: number;

  constructor(bytes: Uint8Array, start = 0, end = bytes.length) {
    this.#buf = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#pos = start;
    this.#end = end;
  }

  get position(): number {
    return this.#pos;
  }

  get left(): number {
    return this.#end - this.#pos;
  }

  byte(): number {
    return this.#buf[this.#take(1)]!;
  }

  varint(): number {
    let value = 0;
    let scale = 1;
    for (let i = 0; i < 8; i++) {
      const byte = this.byte();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) {
        if (!Number.isSafeInteger(value)) break;
        return value;
      }
      scale *= 128;
    }
    throw new RangeError('packed: number too long');
  }

  /** How many items follow, each of at least `bytesEach`: more than there is room for is refused. */
  count(bytesEach: number): number {
    const count = this.varint();
    if (count * bytesEach > this.left) throw new RangeError('packed: more items than bytes');
    return count;
  }

  uint48(): number {
    return this.#buf.readUIntLE(this.#take(6), 6);
  }

  double(): number {
    return this.#buf.readDoubleLE(this.#take(8));
  }

  /** A view, not a copy. */
  view(n: number): Buffer {
    const at = this.#take(n);
    return this.#buf.subarray(at, at + n);
  }

  scalar(): Scalar {
    const tag = this.byte();
    switch (tag) {
      case tagNull:
        return null;
      case tagFalse:
      case tagTrue:
        return tag === tagTrue;
      case tagInteger:
        return this.#integer();
      case tagDouble:
        return this.double();
      case tagBigint:
        return this.#buf.readBigInt64LE(this.#take(8));
      case tagString: {
        const text = this.view(this.varint());
        if (!isUtf8(text)) throw new RangeError('packed: text is not UTF-8');
        return text.toString();
      }
      case tagBytes:
        return Buffer.from(this.view(this.varint()));
      default:
        return Buffer.from(this.view(tag - tagShortBytes));
    }
  }

  scalars(): Scalar[] {
    const values: Scalar[] = [];
    for (let left = this.count(1); left > 0; left--) values.push(this.scalar());
    return values;
  }

  /** Nothing may follow. */
  finish(): void {
    if (this.left !== 0) throw new RangeError(`packed: ${this.left} bytes too many`);
  }

  #integer(): number {
    const zigzag = this.varint();
    if (zigzag > 0xffffffff) throw new RangeError('packed: integer beyond 32 bits');
    return (zigzag >>> 1) ^ -(zigzag & 1);
  }

  #take(n: number): number {
    const at = this.#pos;
    if (n > this.#end - at) throw new RangeError('packed: cut short');
    this.#pos = at + n;
    return at;
  }
}
