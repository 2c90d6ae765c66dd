// Whole numbers from 0 to 2^53 - 1, most of them small. All other encodings are built on this one.
//
//   form u8 | …
//     form & 3 = same     value uvarint
//                patched  value uvarint | exceptions uvarint | (rows since the last one uvarint | value uvarint)*
//                flat     form >> 2 bits each
//                coded    code lengths (huffman.ts) | a bit stream of tokens and what they leave open
//
// Tokens 0 to 31 stand for the number itself. From 32 on, two tokens share the numbers of k bits
// above the first, the one with the next lower bit clear, the other with it set; the k - 1 bits
// below follow the token's code.
//
// The length of the list is not stored: the reader knows it, and an empty list takes no byte.

import { bitWriter, loadWords, packFlat, pastBits, unpackFlat } from './bits.ts';
import type { ByteReader } from './byte-reader.ts';
import { type ByteWriter, uvarintBytes } from './byte-writer.ts';
import { corrupt } from './damage.ts';
import {
  encoderCodes,
  fillDecodeTable,
  findCodeLengths,
  maxCodeBits,
  maxSymbols,
  readCodeLengths,
  writeCodeLengths,
} from './huffman.ts';

const same = 0;
const patched = 1;
const flat = 2;
const coded = 3;

const literals = 32;
const twoTo32 = 0x1_0000_0000;

/** The smallest number of each token, and how many bits it leaves open. */
const tokenBase = new Float64Array(maxSymbols);
const tokenBits = new Uint8Array(maxSymbols);
for (let t = 0; t < maxSymbols; t++) {
  const k = 5 + ((t - literals) >> 1);
  tokenBase[t] = t < literals ? t : 2 ** k + (t & 1) * 2 ** (k - 1);
  tokenBits[t] = t < literals ? 0 : k - 1;
}

function tokenOf(value: number): number {
  if (value < literals) return value;
  if (value < twoTo32) {
    const k = 31 - Math.clz32(value);
    return 22 + (k << 1) + ((value >>> (k - 1)) & 1);
  }
  const high = Math.floor(value / twoTo32);
  const k = 31 - Math.clz32(high);
  const next = k > 0 ? (high >>> (k - 1)) & 1 : (value | 0) >>> 31;
  return 86 + (k << 1) + next;
}

export function bitLength(value: number): number {
  return value < twoTo32 ? 32 - Math.clz32(value) : 64 - Math.clz32(Math.floor(value / twoTo32));
}

// Below this many numbers, a code's table takes more than the code saves.
const minCodedNumbers = 24;
// A code is slower to read than numbers of equal width: it has to save something.
const codedAdvantage = 0.96;

const lengths = new Uint8Array(maxSymbols);
const codes = new Uint16Array(maxSymbols);

/** Analyses numbers to predict their encoded size before writing them. */
export class WholeNumbers {
  #values: Float64Array = new Float64Array(0);
  #n = 0;
  #max = 0;
  #min = 0;
  #candidate = 0;
  #flatBytes = 0;
  /** Infinity when too many numbers are not the candidate. */
  #patchedBytes = 0;
  #codedBytes = 0;
  readonly #counts = new Uint32Array(maxSymbols);

  /** Analyses `values[0, n)`, which must not change until written. Returns the approximate size in bytes. */
  analyse(values: Float64Array, n: number): number {
    this.#values = values;
    this.#n = n;
    if (n === 0) return 0;
    const counts = this.#counts.fill(0);
    let min = values[0]!;
    let max = min;
    let candidate = min;
    // Majority vote (Boyer and Moore): a number that is more than half of all numbers remains as the candidate.
    let votes = 0;
    for (let i = 0; i < n; i++) {
      const v = values[i]!;
      if (v < min) min = v;
      else if (v > max) max = v;
      if (v === candidate) votes++;
      else if (votes > 0) votes--;
      else {
        candidate = v;
        votes = 1;
      }
      counts[tokenOf(v)]!++;
    }
    this.#min = min;
    this.#max = max;
    this.#candidate = candidate;
    if (min === max) return 1 + uvarintBytes(min);
    this.#flatBytes = 1 + Math.ceil((n * bitLength(max)) / 8);
    this.#patchedBytes = votes > n * 0.7 ? this.#patchBytes() : Infinity;
    this.#codedBytes = n < minCodedNumbers ? Infinity : this.#entropyBytes();
    return Math.min(this.#flatBytes, this.#patchedBytes, this.#codedBytes);
  }

  write(out: ByteWriter): void {
    const n = this.#n;
    if (n === 0) return;
    if (this.#min === this.#max) {
      out.u8(same);
      out.uvarint(this.#min);
      return;
    }
    const [flatBytes, patchedBytes] = [this.#flatBytes, this.#patchedBytes];
    const limit = Math.min(flatBytes * codedAdvantage, patchedBytes);
    if (this.#codedBytes < limit && this.#writeCoded(out, limit)) return;
    if (patchedBytes < flatBytes) {
      this.#writePatched(out);
      return;
    }
    const width = bitLength(this.#max);
    out.u8(flat | (width << 2));
    packFlat(out, this.#values, n, width);
  }

  #patchBytes(): number {
    const [values, n, candidate] = [this.#values, this.#n, this.#candidate];
    let bytes = 3 + uvarintBytes(candidate);
    let last = 0;
    for (let i = 0; i < n; i++) {
      if (values[i] === candidate) continue;
      bytes += (i - last < 128 ? 1 : 2) + uvarintBytes(values[i]!);
      last = i;
    }
    return bytes;
  }

  #writePatched(out: ByteWriter): void {
    const [values, n, candidate] = [this.#values, this.#n, this.#candidate];
    let exceptions = 0;
    for (let i = 0; i < n; i++) if (values[i] !== candidate) exceptions++;
    out.u8(patched);
    out.uvarint(candidate);
    out.uvarint(exceptions);
    let last = 0;
    for (let i = 0; i < n; i++) {
      if (values[i] === candidate) continue;
      out.uvarint(i - last);
      out.uvarint(values[i]!);
      last = i;
    }
  }

  #entropyBytes(): number {
    const [counts, n] = [this.#counts, this.#n];
    let bits = n * Math.log2(n);
    let tokens = 0;
    for (let t = 0; t < maxSymbols; t++) {
      const c = counts[t]!;
      if (c === 0) continue;
      bits += c * (tokenBits[t]! - Math.log2(c));
      tokens++;
    }
    return 2 + tokens / 2 + bits / 8;
  }

  /** Writes nothing and returns false when it would not be smaller than that. */
  #writeCoded(out: ByteWriter, limit: number): boolean {
    const [counts, n, values] = [this.#counts, this.#n, this.#values];
    if (!findCodeLengths(counts, lengths)) return false;
    let bits = 0;
    let tokens = 0;
    for (let t = 0; t < maxSymbols; t++) {
      bits += counts[t]! * (lengths[t]! + tokenBits[t]!);
      if (counts[t]! > 0) tokens++;
    }
    if (2 + (tokens + bits / 4) / 2 >= limit) return false;
    out.u8(coded);
    writeCodeLengths(out, lengths);
    encoderCodes(lengths, codes);
    if (tokens === 1) lengths.fill(0);
    bitWriter.begin(bits);
    for (let i = 0; i < n; i++) {
      const v = values[i]!;
      const t = tokenOf(v);
      bitWriter.put(codes[t]!, lengths[t]!);
      if (t >= literals) bitWriter.putLong(v - tokenBase[t]!, tokenBits[t]!);
    }
    bitWriter.flush(out);
    return true;
  }
}

const plain = new WholeNumbers();

export function encodeWholes(out: ByteWriter, values: Float64Array, n: number): void {
  plain.analyse(values, n);
  plain.write(out);
}

/** Into `to[at, at + n)`. */
export function decodeWholes(from: ByteReader, to: Float64Array, at: number, n: number): void {
  if (n === 0) return;
  const form = from.u8();
  switch (form & 3) {
    case same:
      to.fill(from.uvarint(), at, at + n);
      return;
    case patched:
      decodePatched(from, to, at, n);
      return;
    case flat:
      if (form >> 2 > 53) corrupt('numbers are too wide');
      unpackFlat(from, to, at, n, form >> 2);
      return;
    default:
      decodeCoded(from, to, at, n);
  }
}

function decodePatched(from: ByteReader, to: Float64Array, at: number, n: number): void {
  to.fill(from.uvarint(), at, at + n);
  const exceptions = from.uvarint();
  let row = 0;
  for (let i = 0; i < exceptions; i++) {
    const gap = from.uvarint();
    if (gap === 0 && i > 0) corrupt('an exception comes twice');
    row += gap;
    if (row >= n) corrupt('an exception is out of range');
    to[at + row] = from.uvarint();
  }
}

const table = new Uint16Array(1 << maxCodeBits);
const readLengths = new Uint8Array(maxSymbols);
/** A code and its open bits. */
const maxNumberBits = maxCodeBits + 51;

function decodeCoded(from: ByteReader, to: Float64Array, at: number, n: number): void {
  readCodeLengths(from, readLengths);
  const longest = fillDecodeTable(readLengths, table);
  const limit = Math.ceil((n * maxNumberBits) / 8);
  const total = Math.min(from.left, limit) * 8;
  const w = loadWords(from, limit);
  const mask = (1 << longest) - 1;
  const end = at + n;
  let i = at;
  let p = 0;
  // Four short codes are in any 32 bits.
  if (longest <= 8 && !hasOpenBits(readLengths)) {
    const last = end - 3;
    for (; i < last; i += 4) {
      const s = p & 31;
      const k = p >>> 5;
      let x = (w[k]! >>> s) | ((w[k + 1]! << 1) << (31 - s));
      const a = table[x & mask]!;
      x >>>= a & 15;
      const b = table[x & mask]!;
      x >>>= b & 15;
      const c = table[x & mask]!;
      x >>>= c & 15;
      const d = table[x & mask]!;
      to[i] = a >>> 4;
      to[i + 1] = b >>> 4;
      to[i + 2] = c >>> 4;
      to[i + 3] = d >>> 4;
      p += (a & 15) + (b & 15) + (c & 15) + (d & 15);
    }
  }
  for (; i < end; i++) {
    const s = p & 31;
    const k = p >>> 5;
    const x = (w[k]! >>> s) | ((w[k + 1]! << 1) << (31 - s));
    const entry = table[x & mask]!;
    const length = entry & 15;
    const token = entry >>> 4;
    p += length;
    if (token < literals) {
      to[i] = token;
      continue;
    }
    // Each number moves on by bits that may not be there.
    if (p > total) corrupt('a bit stream ends too early');
    const bits = tokenBits[token]!;
    const open = length + bits <= 32 ? (x >>> length) & ((1 << bits) - 1) : openBits(w, p, bits);
    to[i] = tokenBase[token]! + open;
    p += bits;
  }
  if (p > total) corrupt('a bit stream ends too early');
  pastBits(from, p);
}

/** Whether a code has tokens that are not the number itself. */
function hasOpenBits(codeLengths: Uint8Array): boolean {
  for (let t = literals; t < maxSymbols; t++) if (codeLengths[t] !== 0) return true;
  return false;
}

function openBits(w: Int32Array, p: number, bits: number): number {
  const k = p >>> 5;
  const s = p & 31;
  const low = (w[k]! >>> s) | ((w[k + 1]! << 1) << (31 - s));
  if (bits < 32) return low & ((1 << bits) - 1);
  const high = (w[k + 1]! >>> s) | ((w[k + 2]! << 1) << (31 - s));
  return (high & (2 ** (bits - 32) - 1)) * twoTo32 + (low >>> 0);
}
