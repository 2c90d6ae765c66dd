// The bytes of a stream's state and records: see stream-layout.ts.

import { copyBytes, emptyBytes, type Slice, viewed } from '../../bytes.ts';
import { maxIdBytes, type StreamId } from './stream-id.ts';

const maxVarintBytes = 9;

/** Bytes being put together. Good until they are begun anew. */
export class Packed {
  b: Buffer = viewed(Buffer.allocUnsafeSlow(256));
  n = 0;

  begin(): this {
    this.n = 0;
    if (this.b.length > 1 << 20) this.b = viewed(Buffer.allocUnsafeSlow(256));
    return this;
  }

  reserve(more: number): void {
    if (this.n + more <= this.b.length) return;
    const larger = viewed(Buffer.allocUnsafeSlow(Math.max(this.n + more, this.b.length * 2)));
    this.b.copy(larger, 0, 0, this.n);
    this.b = larger;
  }

  byte(value: number): this {
    this.reserve(1);
    this.b[this.n++] = value;
    return this;
  }

  u32(value: number): this {
    this.reserve(4);
    this.n = this.b.writeUInt32BE(value, this.n);
    return this;
  }

  u48(value: number): this {
    this.reserve(6);
    this.n = this.b.writeUIntBE(value, this.n, 6);
    return this;
  }

  varint(value: number): this {
    this.reserve(maxVarintBytes);
    let v = value;
    while (v >= 0x80) {
      this.b[this.n++] = (v % 128) | 0x80;
      v = Math.floor(v / 128);
    }
    this.b[this.n++] = v;
    return this;
  }

  id(id: StreamId): this {
    this.reserve(maxIdBytes);
    this.n = id.write(this.b, this.n);
    return this;
  }

  raw(b: Buffer, s: number, n: number): this {
    this.reserve(n);
    copyBytes(this.b, this.n, b, s, n);
    this.n += n;
    return this;
  }

  /** With its length in front. */
  bytes(b: Buffer, s: number, n: number): this {
    return this.varint(n).raw(b, s, n);
  }

  copy(): Buffer {
    return Buffer.from(this.b.subarray(0, this.n));
  }
}

/** Decodes the output of `Packed`. */
export class Unpacked {
  b: Buffer = emptyBytes;
  at = 0;
  /** Where the bytes read last begin, and how many they are. */
  start = 0;
  length = 0;

  open(slice: Slice): this {
    this.b = slice.b;
    this.at = slice.s;
    return this;
  }

  u32(): number {
    this.at += 4;
    return this.b.readUInt32BE(this.at - 4);
  }

  u48(): number {
    this.at += 6;
    return this.b.readUIntBE(this.at - 6, 6);
  }

  varint(): number {
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = this.b[this.at++]!;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 128;
    }
  }

  id(to: StreamId): void {
    this.at = to.read(this.b, this.at);
  }

  bytes(): void {
    this.length = this.varint();
    this.start = this.at;
    this.at += this.length;
  }
}
