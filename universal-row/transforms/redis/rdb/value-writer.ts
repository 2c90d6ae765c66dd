// Writes values in the RDB format. Strings are not compressed.

import { parseInteger } from '../../../bytes.ts';
import { StringEncoding } from './format.ts';

export class ValueWriter {
  buf = Buffer.allocUnsafe(1024);
  length = 0;

  byte(value: number): void {
    this.reserve(1);
    this.buf[this.length++] = value;
  }

  count(n: number): void {
    this.reserve(5);
    if (n < 64) this.buf[this.length++] = n;
    else if (n < 16_384) this.length = this.buf.writeUInt16BE(0x4000 | n, this.length);
    else this.wideCount(n);
  }

  /** Always five bytes, so that the number can be set later. */
  wideCount(n: number): void {
    this.reserve(5);
    this.buf[this.length++] = 0x80;
    this.length = this.buf.writeUInt32BE(n, this.length);
  }

  setWideCount(at: number, n: number): void {
    this.buf.writeUInt32BE(n, at + 1);
  }

  /** A count of 64 bits, by its halves. */
  hugeCount(high: number, low: number): void {
    if (high === 0) return this.count(low);
    this.reserve(9);
    this.buf[this.length++] = 0x81;
    this.length = this.buf.writeUInt32BE(high, this.length);
    this.length = this.buf.writeUInt32BE(low, this.length);
  }

  /** As RDB files have times: eight bytes, the lowest first. */
  milliseconds(time: number): void {
    this.reserve(8);
    this.length = this.buf.writeBigInt64LE(BigInt(time), this.length);
  }

  string(b: Buffer, s: number, n: number): void {
    const integer = n <= 11 ? parseInteger(b, s, n) : NaN;
    if (integer >= -(2 ** 31) && integer < 2 ** 31) this.#integer(integer);
    else {
      this.count(n);
      this.bytes(b, s, n);
    }
  }

  double(value: number): void {
    this.reserve(8);
    this.length = this.buf.writeDoubleLE(value, this.length);
  }

  bytes(b: Buffer, s: number, n: number): void {
    this.reserve(n);
    b.copy(this.buf, this.length, s, s + n);
    this.length += n;
  }

  reserve(n: number): void {
    if (this.length + n <= this.buf.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.buf.length * 2, this.length + n));
    this.buf.copy(larger, 0, 0, this.length);
    this.buf = larger;
  }

  #integer(value: number): void {
    this.reserve(5);
    const { int8, int16, int32 } = StringEncoding;
    let encoding: number = int32;
    if (value >= -128 && value < 128) encoding = int8;
    else if (value >= -32_768 && value < 32_768) encoding = int16;
    this.buf[this.length++] = 0xc0 | encoding;
    this.length = this.buf.writeIntLE(value, this.length, 2 ** encoding);
  }
}
