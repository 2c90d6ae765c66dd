// Reads the elements of the RDB format, lengths and strings, from bytes that come from outside: nothing they say is
// believed beyond the end.

import type { Slice } from '../../../bytes.ts';
import { stringLimit } from '../support/string-limit.ts';
import { badData, StringEncoding } from './format.ts';
import { decompress } from './lzf.ts';

/** All strings of one value, unpacked. */
const unpackableBytes = 512 * 1024 * 1024;

export type Pauses = Generator<undefined, void, undefined>;

export class RdbCursor {
  readonly b: Buffer;
  readonly end: number;
  at: number;
  /** Bytes of work since the reader last set this to 0. */
  work = 0;
  /** Bytes that strings may still be unpacked to. */
  #unpackable = unpackableBytes;

  constructor(b: Buffer, s: number, n: number) {
    this.b = b;
    this.at = s;
    this.end = s + n;
  }

  get left(): number {
    return this.end - this.at;
  }

  /** Steps over `n` bytes, which must be there; where they begin. */
  take(n: number): number {
    const at = this.at;
    if (n > this.end - at) throw badData;
    this.at = at + n;
    return at;
  }

  byte(): number {
    return this.b[this.take(1)]!;
  }

  length(): number {
    const head = this.byte();
    if (head < 0x40) return head;
    if (head < 0x80) return ((head & 63) << 8) | this.byte();
    if (head === 0x80) return this.b.readUInt32BE(this.take(4));
    if (head !== 0x81) throw badData;
    const length = this.b.readBigUInt64BE(this.take(8));
    // No value here has as many bytes or elements.
    if (length > 0xffffffffn) throw badData;
    return Number(length);
  }

  /** A length of all 64 bits. */
  wideLength(): bigint {
    if (this.left === 0 || this.b[this.at] !== 0x81) return BigInt(this.length());
    this.at++;
    return this.b.readBigUInt64BE(this.take(8));
  }

  /** A length that counts something, exact in a double. */
  counter(): number {
    const length = this.wideLength();
    if (length > BigInt(Number.MAX_SAFE_INTEGER)) throw badData;
    return Number(length);
  }

  double(): number {
    const value = this.b.readDoubleLE(this.take(8));
    if (Number.isNaN(value)) throw badData;
    return value;
  }

  /** Sets `out` to the next string. */
  *string(out: Slice): Pauses {
    const head = this.at < this.end ? this.b[this.at]! : 0;
    if (head < 0xc0) {
      const n = this.length();
      out.set(this.b, this.take(n), n);
      this.work += n;
      return;
    }
    this.at++;
    const encoding = head & 63;
    if (encoding === StringEncoding.compressed) {
      yield* this.#compressed(out);
      return;
    }
    if (encoding > StringEncoding.int32) throw badData;
    const bytes = 2 ** encoding;
    const digits = String(this.b.readIntLE(this.take(bytes), bytes));
    const buffer = Buffer.from(digits, 'latin1');
    out.set(buffer, 0, buffer.length);
  }

  *#compressed(out: Slice): Pauses {
    const packed = this.length();
    const n = this.length();
    if (n === 0 || n > stringLimit.bytes || n > this.#unpackable) throw badData;
    this.#unpackable -= n;
    const from = this.take(packed);
    // A byte expands to at most 88: larger claims are refused before memory is allocated.
    if (n > packed * 100) throw badData;
    const unpacked = Buffer.allocUnsafe(n);
    yield* decompress(this.b, from, packed, unpacked);
    out.set(unpacked, 0, n);
    this.work += n;
  }
}
