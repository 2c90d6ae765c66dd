// The other side of `ByteWriter`, for bytes that may be damaged: it never reads past the end.

import { corrupt } from './damage.ts';

export class ByteReader {
  bytes: Buffer;
  at: number;
  end: number;

  constructor(bytes: Buffer, start = 0, end: number = bytes.length) {
    this.bytes = bytes;
    this.at = start;
    this.end = end;
  }

  reset(bytes: Buffer, start: number, end: number): void {
    this.bytes = bytes;
    this.at = start;
    this.end = end;
  }

  get left(): number {
    return this.end - this.at;
  }

  /** Goes past `n` bytes and returns where they start. */
  skip(n: number): number {
    const start = this.at;
    if (n > this.end - start) corrupt('it ends too early');
    this.at = start + n;
    return start;
  }

  u8(): number {
    return this.bytes[this.skip(1)]!;
  }

  u32(): number {
    return this.bytes.readUInt32LE(this.skip(4));
  }

  f64(): number {
    return this.bytes.readDoubleLE(this.skip(8));
  }

  i64(): bigint {
    return this.bytes.readBigInt64LE(this.skip(8));
  }

  uvarint(): number {
    const first = this.u8();
    return first < 0x80 ? first : this.#more(first & 0x7f, 0x80);
  }

  svarint(): number {
    const first = this.u8();
    let magnitude = (first & 0x7f) >>> 1;
    if (first >= 0x80) magnitude = this.#more(magnitude, 64);
    return (first & 1) === 0 ? magnitude : -magnitude;
  }

  text(): string {
    const length = this.uvarint();
    const start = this.skip(length);
    return this.bytes.toString('utf8', start, start + length);
  }

  /** Nothing may follow. */
  finish(): void {
    if (this.at !== this.end) corrupt('it is longer than its contents');
  }

  #more(low: number, weight: number): number {
    let value = low;
    for (let scale = weight; scale < 2 ** 53; scale *= 128) {
      const byte = this.u8();
      value += (byte & 0x7f) * scale;
      if (byte >= 0x80) continue;
      if (value > Number.MAX_SAFE_INTEGER) break;
      return value;
    }
    return corrupt('a number is too large');
  }
}
