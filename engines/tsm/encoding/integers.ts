// Integers within ±(2^53 - 1), be they a field's or timestamps, and 64-bit ones.
//
//   code u8 | base svarint | scale uvarint if code & 4 | …        the base is the least or the first number
//     code & 3 = offsets  whole numbers: (value - base) / scale
//                rising   step uvarint | n - 1 whole numbers: (value - the one before) / scale - step
//                zigzag   n - 1 whole numbers: 2d, or -2d - 1 if d < 0, d = (value - the one before) / scale
//                raw      8 bytes of double each, no base
//   code 8 = 64 bits:     base 8 bytes | the numbers less the base, as above
//   code 9 = 64 bits raw: 8 bytes each
//
// Regular timestamps are `rising`, with their interval for a scale and nothing but `same` to tell.

import type { ByteReader } from './byte-reader.ts';
import type { ByteWriter } from './byte-writer.ts';
import { corrupt } from './damage.ts';
import { decodeWholes, WholeNumbers } from './whole-numbers.ts';

const offsets = 0;
const rising = 1;
const zigzag = 2;
const raw = 3;
const scaled = 4;
const wide = 8;
const wideRaw = 9;

export type WideArray = BigInt64Array | BigUint64Array;

// From this many numbers on, a sample from the middle decides which form is smaller.
const sampledFrom = 512;
const sampleNumbers = 160;

const offsetNumbers = new WholeNumbers();
const deltaNumbers = new WholeNumbers();
let offsetScratch = new Float64Array(4096);
let deltaScratch = new Float64Array(4096);
let wideScratch = new Float64Array(4096);

export function encodeIntegers(out: ByteWriter, values: Float64Array, n: number): void {
  if (n === 0) {
    out.u8(offsets);
    out.svarint(0);
    return;
  }
  let min = values[0]!;
  let max = min;
  let least = Infinity;
  let scale = 0;
  let last = min;
  let lastDelta = 0;
  for (let i = 1; i < n; i++) {
    const v = values[i]!;
    const d = v - last;
    last = v;
    if (v < min) min = v;
    else if (v > max) max = v;
    if (d < least) least = d;
    if (scale === 1 || d === lastDelta) continue;
    lastDelta = d;
    scale = commonDivisor(scale, Math.abs(d));
  }
  const range = max - min;
  if (range > Number.MAX_SAFE_INTEGER) {
    out.u8(raw);
    for (let i = 0; i < n; i++) out.f64(values[i]!);
    return;
  }
  if (scale === 0) scale = 1;
  if (n > offsetScratch.length) {
    offsetScratch = new Float64Array(n);
    deltaScratch = new Float64Array(n);
  }
  // A zigzag of more bits would not be exact.
  const form = least >= 0 ? rising : range < 2 ** 52 ? zigzag : offsets;
  const step = form === rising && n > 1 ? least / scale : 0;
  fillOffsets(values, n, min, scale);
  if (form !== offsets) {
    if (form === rising) fillSteps(values, n, scale, step);
    else fillZigzag(values, n, scale);
    if (deltasAreLess(n)) {
      writeHead(out, form, values[0]!, scale);
      if (form === rising) out.uvarint(step);
      deltaNumbers.write(out);
      return;
    }
  }
  if (form === offsets || n >= sampledFrom) offsetNumbers.analyse(offsetScratch, n);
  writeHead(out, offsets, min, scale);
  offsetNumbers.write(out);
}

/**
 * Whether deltas take fewer bytes than offsets. Both are analysed in full only when there are few numbers. After
 * true, the analysis of the deltas is complete.
 */
function deltasAreLess(n: number): boolean {
  if (n < sampledFrom) {
    const bytes = offsetNumbers.analyse(offsetScratch, n);
    return deltaNumbers.analyse(deltaScratch, n - 1) < bytes;
  }
  const middle = n >>> 1;
  const sample = offsetScratch.subarray(middle, middle + sampleNumbers);
  const bytes = offsetNumbers.analyse(sample, sampleNumbers);
  const deltaSample = deltaScratch.subarray(middle, middle + sampleNumbers);
  if (deltaNumbers.analyse(deltaSample, sampleNumbers) >= bytes) return false;
  deltaNumbers.analyse(deltaScratch, n - 1);
  return true;
}

function fillOffsets(values: Float64Array, n: number, min: number, scale: number): void {
  if (scale === 1) for (let i = 0; i < n; i++) offsetScratch[i] = values[i]! - min;
  else for (let i = 0; i < n; i++) offsetScratch[i] = (values[i]! - min) / scale;
}

function writeHead(out: ByteWriter, form: number, base: number, scale: number): void {
  out.u8(scale === 1 ? form : form | scaled);
  out.svarint(base);
  if (scale !== 1) out.uvarint(scale);
}

function fillSteps(values: Float64Array, n: number, scale: number, step: number): void {
  if (scale === 1) {
    for (let i = 1; i < n; i++) deltaScratch[i - 1] = values[i]! - values[i - 1]! - step;
    return;
  }
  for (let i = 1; i < n; i++) deltaScratch[i - 1] = (values[i]! - values[i - 1]!) / scale - step;
}

function fillZigzag(values: Float64Array, n: number, scale: number): void {
  for (let i = 1; i < n; i++) {
    const difference = values[i]! - values[i - 1]!;
    const d = scale === 1 ? difference : difference / scale;
    deltaScratch[i - 1] = d >= 0 ? 2 * d : -2 * d - 1;
  }
}

/** Greatest common divisor of whole numbers; 0 is divisible by all. */
function commonDivisor(a: number, b: number): number {
  // A quotient that is whole is exact; this is much faster than the remainder.
  const q = b / a;
  if (a > 0 && Math.floor(q) === q && q * a === b) return a;
  let x = a;
  let y = b;
  while (y > 0) [x, y] = [y, x % y];
  return x;
}

export function decodeIntegers(from: ByteReader, to: Float64Array, n: number): void {
  decodeCoded(from, from.u8(), to, n);
}

/** True when the next integers are 64-bit ones, which `decodeWideIntegers` reads. */
export function isWide(code: number): boolean {
  return code === wide || code === wideRaw;
}

/** After their code was read. */
export function decodeCoded(from: ByteReader, code: number, to: Float64Array, n: number): void {
  if (code === raw) {
    const start = from.skip(8 * n);
    for (let i = 0; i < n; i++) to[i] = from.bytes.readDoubleLE(start + 8 * i);
    return;
  }
  const form = code & ~scaled;
  if (form > zigzag) corrupt('integers have an unknown encoding');
  const base = from.svarint();
  const scale = (code & scaled) !== 0 ? from.uvarint() : 1;
  if (form === offsets) {
    decodeWholes(from, to, 0, n);
    if (scale !== 1) for (let i = 0; i < n; i++) to[i] = base + scale * to[i]!;
    else if (base !== 0) for (let i = 0; i < n; i++) to[i]! += base;
    return;
  }
  const step = form === rising ? from.uvarint() : 0;
  if (n > 0) decodeWholes(from, to, 1, n - 1);
  if (form === rising) sumSteps(to, n, base, scale, step);
  else sumZigzag(to, n, base, scale);
}

function sumSteps(to: Float64Array, n: number, base: number, scale: number, step: number): void {
  let value = base;
  to[0] = value;
  for (let i = 1; i < n; i++) {
    value += (to[i]! + step) * scale;
    to[i] = value;
  }
}

function sumZigzag(to: Float64Array, n: number, base: number, scale: number): void {
  let value = base;
  to[0] = value;
  for (let i = 1; i < n; i++) {
    const z = to[i]!;
    if (z <= 0x7fffffff) value += ((z >>> 1) ^ -(z & 1)) * scale;
    else value += (z % 2 === 0 ? z / 2 : -(z + 1) / 2) * scale;
    to[i] = value;
  }
}

export function encodeWideIntegers(out: ByteWriter, values: WideArray, n: number): void {
  let min = n > 0 ? values[0]! : 0n;
  let max = min;
  for (let i = 1; i < n; i++) {
    const v = values[i]!;
    if (v < min) min = v;
    else if (v > max) max = v;
  }
  const least = BigInt(Number.MIN_SAFE_INTEGER);
  const most = BigInt(Number.MAX_SAFE_INTEGER);
  if (max - min > most) {
    out.u8(wideRaw);
    for (let i = 0; i < n; i++) out.i64(values[i]!);
    return;
  }
  if (n > wideScratch.length) wideScratch = new Float64Array(n);
  // They may be small after all: one that is not was deleted, or is in another block.
  const small = min >= least && max <= most;
  const base = small ? 0n : min;
  for (let i = 0; i < n; i++) wideScratch[i] = Number(values[i]! - base);
  if (!small) {
    out.u8(wide);
    out.i64(base);
  }
  encodeIntegers(out, wideScratch, n);
}

/** After their code was read. */
export function decodeWideIntegers(from: ByteReader, code: number, to: WideArray, n: number): void {
  if (code === wideRaw) {
    const start = from.skip(8 * n);
    for (let i = 0; i < n; i++) to[i] = from.bytes.readBigInt64LE(start + 8 * i);
    return;
  }
  const base = from.i64();
  const inner = from.u8();
  if (inner === raw) corrupt('integers have an unknown encoding');
  if (n > wideScratch.length) wideScratch = new Float64Array(n);
  decodeCoded(from, inner, wideScratch, n);
  // Always whole, damaged or not.
  for (let i = 0; i < n; i++) to[i] = base + BigInt(wideScratch[i]!);
}
