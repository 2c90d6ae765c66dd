// Numbers and bytes of the pod protocol: a writer into a buffer that grows, and a reader that checks every length before
// it uses it. Fixed numbers are little-endian. A varint is LEB128: seven bits a byte, the lowest first.

import { copyBytes, emptyBytes, viewed } from '../bytes.ts';

/** The bytes violate the protocol. The link on which they came is unusable. */
export class WireError extends Error {
  override name = 'WireError';
}

/** Most bytes of a varint: 2^53 - 1 has eight groups of seven bits. */
const maxVarintBytes = 8;
/** A larger buffer is released when the next frame is begun. */
const keptBytes = 1024 * 1024;

export class WireWriter {
  buf: Buffer;
  pos = 0;
  readonly #initialBytes: number;

  constructor(initialBytes = 4096) {
    this.#initialBytes = initialBytes;
    this.buf = viewed(Buffer.allocUnsafeSlow(initialBytes));
  }

  /** Begins anew: in another buffer when the bytes were handed on, or were unusually many. */
  reset(renew: boolean): void {
    this.pos = 0;
    if (renew || this.buf.length > keptBytes) {
      this.buf = viewed(Buffer.allocUnsafeSlow(this.#initialBytes));
    }
  }

  reserve(n: number): void {
    const need = this.pos + n;
    if (need <= this.buf.length) return;
    const larger = viewed(Buffer.allocUnsafeSlow(Math.max(need, this.buf.length * 2)));
    this.buf.copy(larger, 0, 0, this.pos);
    this.buf = larger;
  }

  u8(value: number): void {
    this.reserve(1);
    this.buf[this.pos++] = value;
  }

  u16(value: number): void {
    this.reserve(2);
    this.buf[this.pos++] = value;
    this.buf[this.pos++] = value >>> 8;
  }

  u32(value: number): void {
    this.reserve(4);
    this.pos = this.buf.writeUInt32LE(value, this.pos);
  }

  f64(value: number): void {
    this.reserve(8);
    this.pos = this.buf.writeDoubleLE(value, this.pos);
  }

  /** A signed 64-bit number. */
  i64(value: bigint): void {
    this.reserve(8);
    this.pos = this.buf.writeBigInt64LE(value, this.pos);
  }

  /** A whole number from 0 to 2^53 - 1. */
  varint(value: number): void {
    this.reserve(maxVarintBytes);
    const { buf } = this;
    let v = value;
    while (v > 0x7fffffff) {
      buf[this.pos++] = (v % 128) | 0x80;
      v = Math.floor(v / 128);
    }
    while (v > 0x7f) {
      buf[this.pos++] = (v & 0x7f) | 0x80;
      v >>>= 7;
    }
    buf[this.pos++] = v;
  }

  /** A whole number from -2^52 to 2^52 - 1. */
  signed(value: number): void {
    this.varint(value < 0 ? -value * 2 - 1 : value * 2);
  }

  /** Bytes as they are. */
  raw(b: Buffer, s: number, n: number): void {
    this.reserve(n);
    copyBytes(this.buf, this.pos, b, s, n);
    this.pos += n;
  }

  /** Their number as a varint, then the bytes. */
  bytes(b: Buffer, s = 0, n = b.length): void {
    this.varint(n);
    this.raw(b, s, n);
  }

  /** As `bytes`, of so many ranges of a buffer, one behind the other. */
  words(b: Buffer, starts: Int32Array, lens: Int32Array, count: number): void {
    for (let i = 0; i < count; i++) {
      const n = lens[i]!;
      this.reserve(n + maxVarintBytes);
      const to = this.buf;
      let { pos } = this;
      let left = n;
      for (; left > 0x7f; left >>>= 7) to[pos++] = (left & 0x7f) | 0x80;
      to[pos++] = left;
      copyBytes(to, pos, b, starts[i]!, n);
      this.pos = pos + n;
    }
  }

  /** As `bytes`, in UTF-8. */
  string(value: string): void {
    const n = Buffer.byteLength(value);
    this.varint(n);
    this.reserve(n);
    this.pos += this.buf.write(value, this.pos, 'utf8');
  }

  /** View of the bytes written. */
  view(): Buffer {
    return this.buf.subarray(0, this.pos);
  }
}

/** Throws a `WireError` for reads past the end. */
export class WireReader {
  buf: Buffer;
  pos: number;
  end: number;

  constructor(buf: Buffer = emptyBytes, start = 0, end: number = buf.length) {
    this.buf = buf;
    this.pos = start;
    this.end = end;
  }

  set(buf: Buffer, start: number, end: number): void {
    this.buf = buf;
    this.pos = start;
    this.end = end;
  }

  get left(): number {
    return this.end - this.pos;
  }

  /** Goes past `n` bytes; returns where they begin. */
  skip(n: number): number {
    const at = this.pos;
    if (n > this.end - at) throw new WireError('a message ends too early');
    this.pos = at + n;
    return at;
  }

  u8(): number {
    if (this.pos >= this.end) throw new WireError('a message ends too early');
    return this.buf[this.pos++]!;
  }

  u16(): number {
    const at = this.skip(2);
    return this.buf[at]! | (this.buf[at + 1]! << 8);
  }

  u32(): number {
    return this.buf.readUInt32LE(this.skip(4));
  }

  f64(): number {
    return this.buf.readDoubleLE(this.skip(8));
  }

  i64(): bigint {
    return this.buf.readBigInt64LE(this.skip(8));
  }

  varint(): number {
    const first = this.u8();
    if (first < 0x80) return first;
    let value = first & 0x7f;
    let scale = 128;
    for (let i = 1; i < maxVarintBytes; i++) {
      const byte = this.u8();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) {
        if (value > Number.MAX_SAFE_INTEGER) break;
        return value;
      }
      scale *= 128;
    }
    throw new WireError('a number is too long');
  }

  signed(): number {
    const value = this.varint();
    return value % 2 === 1 ? -(value + 1) / 2 : value / 2;
  }

  /** The length of bytes that follow, all of which are there. */
  length(): number {
    const n = this.varint();
    if (n > this.end - this.pos) throw new WireError('a message ends too early');
    return n;
  }

  /** A view, for as long as the message stays. */
  bytes(): Buffer {
    const n = this.length();
    const at = this.skip(n);
    return this.buf.subarray(at, at + n);
  }

  string(): string {
    const n = this.length();
    const at = this.skip(n);
    return this.buf.toString('utf8', at, at + n);
  }

  /** Nothing may follow. */
  done(): void {
    if (this.pos !== this.end) throw new WireError('a message has bytes after its end');
  }
}
