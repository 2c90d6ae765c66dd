// Doubles encoded as the XOR with the previous value (Pelkonen et al., "Gorilla", 2015):
//
//   the first value 64 bits, then for each value
//     0            equal to the previous value
//     1 0 | bits   the bits that differ lie within those of the last value that came with a window
//     1 1 | leading zeros 5 bits | length - 1 6 bits | bits
//
// Bits of the stream and of the numbers in it come lowest first.

import { bitWriter, loadWords, pastBits } from './bits.ts';
import type { ByteReader } from './byte-reader.ts';
import type { ByteWriter } from './byte-writer.ts';
import { corrupt } from './damage.ts';

/** A window that saves fewer bits than it takes to name another is kept. */
const windowBits = 11;
const trialNumbers = 64;
const trialSlack = 1.1;
const maxValueBits = 2 + windowBits + 64;

/** `bits` are the values' own, the low word of each first. Gives up, and returns false, beyond `limit` bytes. */
export function encodeXor(out: ByteWriter, bits: Int32Array, n: number, limit: number): boolean {
  bitWriter.begin(64 + n * maxValueBits);
  let low = bits[0]!;
  let high = bits[1]!;
  bitWriter.put(low, 32);
  bitWriter.put(high, 32);
  let lead = 0;
  let trail = 0;
  let length = 0;
  for (let i = 1; i < n; i++) {
    const xorLow = bits[2 * i]! ^ low;
    const xorHigh = bits[2 * i + 1]! ^ high;
    if ((xorLow | xorHigh) === 0) {
      bitWriter.put(0, 1);
      continue;
    }
    low ^= xorLow;
    high ^= xorHigh;
    const zeros = xorHigh === 0 ? 31 : Math.min(31, Math.clz32(xorHigh));
    const ends = xorLow === 0 ? 32 + trailingZeros(xorHigh) : trailingZeros(xorLow);
    const own = 64 - zeros - ends;
    if (length > 0 && zeros >= lead && ends >= trail && length - own < windowBits) {
      bitWriter.put(1, 2);
    } else {
      lead = zeros;
      trail = ends;
      length = own;
      bitWriter.put(3 | (lead << 2) | ((length - 1) << 7), 13);
    }
    putShifted(xorLow, xorHigh, trail, length);
    // After `trialNumbers` numbers the final size is estimated, so that a bad encoding stops early.
    const most = i === trialNumbers ? ((limit * 8) / n) * (i + 1) * trialSlack : limit * 8;
    if (bitWriter.bits > most) return false;
  }
  bitWriter.flush(out);
  return true;
}

function trailingZeros(word: number): number {
  return 31 - Math.clz32(word & -word);
}

function putShifted(low: number, high: number, shift: number, length: number): void {
  let first: number;
  let second = 0;
  if (shift >= 32) first = high >>> (shift - 32);
  else {
    first = shift === 0 ? low : (low >>> shift) | (high << (32 - shift));
    second = high >>> shift;
  }
  if (length <= 32) bitWriter.put(first, length);
  else {
    bitWriter.put(first, 32);
    bitWriter.put(second, length - 32);
  }
}

/** Sets the bits of `n` values, the low word of each first. */
export function decodeXor(from: ByteReader, bits: Int32Array, n: number): void {
  const limit = Math.ceil((64 + n * maxValueBits) / 8);
  const total = Math.min(from.left, limit) * 8;
  const w = loadWords(from, limit);
  let low = w[0]!;
  let high = w[1]!;
  bits[0] = low;
  bits[1] = high;
  let p = 64;
  let trail = 0;
  let length = 0;
  let i = 1;
  for (; i < n && p < total; i++) {
    let s = p & 31;
    let k = p >>> 5;
    const head = (w[k]! >>> s) | ((w[k + 1]! << 1) << (31 - s));
    if ((head & 1) === 0) p++;
    else {
      p += 2;
      if ((head & 2) !== 0) {
        length = ((head >>> 7) & 63) + 1;
        trail = 64 - ((head >>> 2) & 31) - length;
        if (trail < 0) corrupt('floats have an impossible window');
        p += windowBits;
      } else if (length === 0) corrupt('floats have no window');
      s = p & 31;
      k = p >>> 5;
      let first = (w[k]! >>> s) | ((w[k + 1]! << 1) << (31 - s));
      let second = 0;
      if (length > 32) {
        second = (w[k + 1]! >>> s) | ((w[k + 2]! << 1) << (31 - s));
        if (length < 64) second &= (1 << (length - 32)) - 1;
      } else if (length < 32) first &= (1 << length) - 1;
      p += length;
      if (trail >= 32) high ^= first << (trail - 32);
      else {
        low ^= first << trail;
        high ^= (second << trail) | ((first >>> 1) >>> (31 - trail));
      }
    }
    bits[2 * i] = low;
    bits[2 * i + 1] = high;
  }
  if (p > total || i < n) corrupt('a bit stream ends too early');
  pastBits(from, p);
}
