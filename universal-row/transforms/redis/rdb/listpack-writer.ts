// Writes listpacks: short strings and integers one after another in one string.

import { parseBigInteger } from '../../../bytes.ts';
import { backLengthBytes } from './packed.ts';

const headerBytes = 6;
/** Bytes that an element takes beside its own, at most. */
const overheadBytes = 10;

export class ListpackWriter {
  buf = Buffer.allocUnsafe(1024);
  length = headerBytes;
  count = 0;

  clear(): void {
    this.length = headerBytes;
    this.count = 0;
  }

  integer(value: bigint): void {
    this.#reserve(overheadBytes);
    const start = this.length;
    this.#integer(value);
    this.#backLength(this.length - start);
    this.count++;
  }

  /** Adds an element; decimal integers of 64 bits are stored as integers. */
  add(b: Buffer, s: number, n: number): void {
    this.#reserve(n + overheadBytes);
    const start = this.length;
    const integer = n <= 20 ? parseBigInteger(b, s, n) : undefined;
    if (integer !== undefined) this.#integer(integer);
    else this.#string(b, s, n);
    this.#backLength(this.length - start);
    this.count++;
  }

  /** Writes the header and the end mark; `length` is then the total length. */
  finish(): void {
    this.#reserve(1);
    this.buf[this.length++] = 255;
    this.buf.writeUInt32LE(this.length, 0);
    this.buf.writeUInt16LE(Math.min(this.count, 65_535), 4);
  }

  #reserve(n: number): void {
    if (this.length + n <= this.buf.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.buf.length * 2, this.length + n));
    this.buf.copy(larger, 0, 0, this.length);
    this.buf = larger;
  }

  #string(b: Buffer, s: number, n: number): void {
    const { buf } = this;
    if (n < 64) buf[this.length++] = 0x80 | n;
    else if (n < 4096) {
      buf[this.length++] = 0xe0 | (n >> 8);
      buf[this.length++] = n & 255;
    } else {
      buf[this.length++] = 0xf0;
      this.length = buf.writeUInt32LE(n, this.length);
    }
    b.copy(buf, this.length, s, s + n);
    this.length += n;
  }

  #integer(integer: bigint): void {
    const { buf } = this;
    const value = Number(integer);
    if (value >= 0 && value < 128) buf[this.length++] = value;
    else if (value >= -4096 && value < 4096) {
      buf[this.length++] = 0xc0 | ((value >> 8) & 31);
      buf[this.length++] = value & 255;
    } else if (value >= -(2 ** 63) && value < -(2 ** 31)) this.#wide(integer);
    else if (value >= 2 ** 31) this.#wide(integer);
    else {
      const bytes =
        value >= -32_768 && value < 32_768 ? 2 : value >= -8_388_608 && value < 8_388_608 ? 3 : 4;
      buf[this.length++] = 0xef + bytes;
      this.length = buf.writeIntLE(value, this.length, bytes);
    }
  }

  #wide(integer: bigint): void {
    this.buf[this.length++] = 0xf4;
    this.length = this.buf.writeBigInt64LE(integer, this.length);
  }

  /** Seven bits a byte, the lowest last; all but the last written byte, which is the highest, have bit 7 set. */
  #backLength(n: number): void {
    const bytes = backLengthBytes(n);
    for (let i = 0; i < bytes; i++) {
      const bits = Math.floor(n / 128 ** (bytes - 1 - i)) & 127;
      this.buf[this.length++] = i === 0 ? bits : bits | 128;
    }
  }
}
