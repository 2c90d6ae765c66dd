// Elements of Redis's compact encodings, each in one string: listpack, ziplist, zipmap, intset. Bytes come from
// outside: nothing they say is believed beyond the string's end.

import { Slice } from '../../../bytes.ts';
import { badData } from './format.ts';

export type PackedKind = 'listpack' | 'ziplist' | 'zipmap' | 'intset';

const text = Buffer.alloc(24);

/** Walks the elements; integers come as decimals. */
export class PackedElements {
  readonly #b: Buffer;
  readonly #end: number;
  readonly #kind: PackedKind;
  #at: number;
  /** In an intset, bytes of an integer. */
  #width = 0;
  /** In a zipmap, true if the element is a value, which may be followed by unused bytes. */
  #isValue = false;

  constructor(kind: PackedKind, { b, s, n }: Slice) {
    this.#b = b;
    this.#kind = kind;
    this.#at = s;
    this.#end = s + n;
    this.#header(s, n);
  }

  /**
   * Sets `out` to the next element; false when there is none. `out` is valid until the next call.
   */
  next(out: Slice): boolean {
    switch (this.#kind) {
      case 'listpack':
        return this.#listpack(out);
      case 'ziplist':
        return this.#ziplist(out);
      case 'zipmap':
        return this.#zipmap(out);
      case 'intset':
        return this.#intset(out);
    }
  }

  #header(s: number, n: number): void {
    const b = this.#b;
    switch (this.#kind) {
      case 'listpack':
        if (n < 7 || b.readUInt32LE(s) !== n) throw badData;
        this.#at = s + 6;
        break;
      case 'ziplist':
        if (n < 11 || b.readUInt32LE(s) !== n) throw badData;
        this.#at = s + 10;
        break;
      case 'zipmap':
        if (n < 2) throw badData;
        this.#at = s + 1;
        break;
      case 'intset': {
        if (n < 8) throw badData;
        this.#width = b.readUInt32LE(s);
        const isKnown = this.#width === 2 || this.#width === 4 || this.#width === 8;
        if (!isKnown || b.readUInt32LE(s + 4) * this.#width !== n - 8) throw badData;
        this.#at = s + 8;
      }
    }
  }

  /** Steps over `n` bytes, which must be there; where they begin. */
  #take(n: number): number {
    const at = this.#at;
    if (n > this.#end - at) throw badData;
    this.#at = at + n;
    return at;
  }

  /** Whether the end mark is next, which must be the last byte. */
  #isOver(): boolean {
    if (this.#b[this.#take(1)] !== 255) {
      this.#at--;
      return false;
    }
    if (this.#at !== this.#end) throw badData;
    this.#at--;
    return true;
  }

  #string(out: Slice, n: number): true {
    out.set(this.#b, this.#take(n), n);
    return true;
  }

  #integer(out: Slice, bytes: number): true {
    const at = this.#take(bytes);
    if (bytes < 8) return number(out, this.#b.readIntLE(at, bytes));
    const n = text.write(this.#b.readBigInt64LE(at).toString(), 'latin1');
    out.set(text, 0, n);
    return true;
  }

  #listpack(out: Slice): boolean {
    if (this.#isOver()) return false;
    const start = this.#at;
    const b = this.#b;
    const head = b[this.#take(1)]!;
    if (head < 0x80) number(out, head);
    else if (head < 0xc0) this.#string(out, head & 63);
    else if (head < 0xe0) number(out, ((((head & 31) << 8) | b[this.#take(1)]!) << 19) >> 19);
    else if (head < 0xf0) this.#string(out, ((head & 15) << 8) | b[this.#take(1)]!);
    else if (head === 0xf0) this.#string(out, b.readUInt32LE(this.#take(4)));
    else if (head === 0xf1) this.#integer(out, 2);
    else if (head === 0xf2) this.#integer(out, 3);
    else if (head === 0xf3) this.#integer(out, 4);
    else if (head === 0xf4) this.#integer(out, 8);
    else throw badData;
    this.#take(backLengthBytes(this.#at - start));
    return true;
  }

  #ziplist(out: Slice): boolean {
    if (this.#isOver()) return false;
    const b = this.#b;
    // The length of the element before, for walks from the end.
    if (b[this.#take(1)] === 254) this.#take(4);
    const head = b[this.#take(1)]!;
    if (head < 0x40) return this.#string(out, head);
    if (head < 0x80) return this.#string(out, ((head & 63) << 8) | b[this.#take(1)]!);
    if (head < 0xc0) return this.#string(out, b.readUInt32BE(this.#take(4)));
    if (head === 0xc0) return this.#integer(out, 2);
    if (head === 0xd0) return this.#integer(out, 4);
    if (head === 0xe0) return this.#integer(out, 8);
    if (head === 0xf0) return this.#integer(out, 3);
    if (head === 0xfe) return this.#integer(out, 1);
    if (head > 0xf0 && head < 0xfe) return number(out, (head & 15) - 1);
    throw badData;
  }

  #zipmap(out: Slice): boolean {
    if (!this.#isValue && this.#isOver()) return false;
    const short = this.#b[this.#take(1)]!;
    if (short === 255) throw badData;
    const n = short === 254 ? this.#b.readUInt32LE(this.#take(4)) : short;
    const spare = this.#isValue ? this.#b[this.#take(1)]! : 0;
    this.#string(out, n);
    this.#take(spare);
    this.#isValue = !this.#isValue;
    return true;
  }

  #intset(out: Slice): boolean {
    return this.#at < this.#end && this.#integer(out, this.#width);
  }
}

function number(out: Slice, value: number): true {
  out.set(text, 0, text.write(String(value), 'latin1'));
  return true;
}

/** Bytes that a listpack's element of so many bytes needs to say its length again, for walks from the end. */
export function backLengthBytes(n: number): number {
  if (n < 128) return 1;
  if (n < 16_383) return 2;
  if (n < 2_097_151) return 3;
  return n < 268_435_455 ? 4 : 5;
}
