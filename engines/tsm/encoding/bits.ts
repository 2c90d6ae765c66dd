// Bit streams over 32-bit words, the lowest bit of a word first. On disk they are the bytes of the words
// in little-endian order, cut off after the last byte that is used: hosts are taken to be little-endian.

import type { ByteReader } from './byte-reader.ts';
import type { ByteWriter } from './byte-writer.ts';
import { corrupt } from './damage.ts';

const twoTo32 = 0x1_0000_0000;

class BitWriter {
  #words = new Int32Array(4096);
  #bits = 0;

  get bits(): number {
    return this.#bits;
  }

  /** Starts anew, for at most `bits` bits. */
  begin(bits: number): void {
    const words = (bits >>> 5) + 3;
    if (words > this.#words.length) this.#words = new Int32Array(words * 2);
    else this.#words.fill(0, 0, words);
    this.#bits = 0;
  }

  /** The lowest `width` bits, up to 32; `value` has no others. */
  put(value: number, width: number): void {
    const p = this.#bits;
    const w = p >>> 5;
    const s = p & 31;
    this.#words[w]! |= value << s;
    // In two steps, as a shift by 32 is one by 0.
    this.#words[w + 1]! |= (value >>> 1) >>> (31 - s);
    this.#bits = p + width;
  }

  /** As `put`, up to 53 bits. */
  putLong(value: number, width: number): void {
    if (width <= 32) {
      this.put(value, width);
      return;
    }
    this.put(value | 0, 32);
    this.put(Math.floor(value / twoTo32), width - 32);
  }

  flush(out: ByteWriter): void {
    out.bytes(new Uint8Array(this.#words.buffer, 0, (this.#bits + 7) >>> 3));
  }
}

/** Shared: no two streams are written at a time. */
export const bitWriter = new BitWriter();

let words = new Int32Array(4096);
let wordBytes = new Uint8Array(words.buffer);

/**
 * The next bytes of the reader, at most `limit` of them, as aligned words with zeros behind. The array is
 * everyone's, valid until the next call. The reader stays where it is.
 */
export function loadWords(from: ByteReader, limit: number): Int32Array {
  const n = Math.min(from.left, limit);
  const needed = (n >>> 2) + 5;
  if (needed > words.length) {
    words = new Int32Array(needed * 2);
    wordBytes = new Uint8Array(words.buffer);
  }
  const { bytes, at } = from;
  if (n < 48) for (let i = 0; i < n; i++) wordBytes[i] = bytes[at + i]!;
  else bytes.copy(wordBytes, 0, at, at + n);
  const end = needed << 2;
  for (let i = n; i < end; i++) wordBytes[i] = 0;
  return words;
}

/** Moves the reader past the bytes of the bits read. */
export function pastBits(from: ByteReader, bits: number): void {
  const n = Math.ceil(bits / 8);
  if (n > from.left) corrupt('a bit stream ends too early');
  from.at += n;
}

/** Packs whole numbers below 2^width; `width` is at most 53 bits. */
export function packFlat(out: ByteWriter, values: Float64Array, n: number, width: number): void {
  bitWriter.begin(n * width);
  if (width <= 32) for (let i = 0; i < n; i++) bitWriter.put(values[i]!, width);
  else for (let i = 0; i < n; i++) bitWriter.putLong(values[i]!, width);
  bitWriter.flush(out);
}

/** Into `to[at, at + n)`. */
export function unpackFlat(
  from: ByteReader,
  to: Float64Array,
  at: number,
  n: number,
  width: number,
): void {
  if (n * width > from.left * 8) corrupt('a bit stream ends too early');
  const w = loadWords(from, Math.ceil((n * width) / 8));
  const end = at + n;
  let p = 0;
  if (width < 32) {
    const mask = (1 << width) - 1;
    for (let i = at; i < end; i++) {
      const k = p >>> 5;
      const s = p & 31;
      to[i] = ((w[k]! >>> s) | ((w[k + 1]! << 1) << (31 - s))) & mask;
      p += width;
    }
  } else {
    const high = width - 32;
    const mask = 2 ** high - 1;
    for (let i = at; i < end; i++) {
      const k = p >>> 5;
      const s = p & 31;
      const low = (w[k]! >>> s) | ((w[k + 1]! << 1) << (31 - s));
      const rest = ((w[k + 1]! >>> s) | ((w[k + 2]! << 1) << (31 - s))) & mask;
      to[i] = rest * twoTo32 + (low >>> 0);
      p += width;
    }
  }
  pastBits(from, p);
}
