// Doubles, exact to the bit.
//
//   code u8 | …
//     constant  8 bytes
//     decimal   exponent u8 | integers (integers.ts): value * 10^exponent
//     xor       a bit stream (xor-floats.ts)
//     split     integers: the upper halves | zeros u8 | the lower halves, without so many of their
//               lowest bits, which are all 0, flat in 32 - zeros bits each
//
// Measured values mostly have few decimals. Those that have not are noise below their leading bits, which
// then do well as integers, as they have no bits in common with their neighbours that xor would save.

import { packFlat, unpackFlat } from './bits.ts';
import type { ByteReader } from './byte-reader.ts';
import { ByteWriter } from './byte-writer.ts';
import { corrupt } from './damage.ts';
import { decodeIntegers, encodeIntegers } from './integers.ts';
import { decodeXor, encodeXor } from './xor-floats.ts';

const floatCodes = { constant: 16, decimal: 17, xor: 18, split: 19 } as const;

/** With more decimals than this the integers have about as many bits as the doubles. */
const maxExponent = 15;
/**
 * Powers exact as doubles; division by them rounds correctly, so one check holds for all values.
 */
const powersOfTen = Float64Array.from({ length: maxExponent + 1 }, (_, e) => 10 ** e);

let scratch = new Float64Array(4096);
let valueScratch = new Float64Array(4096);
let wordScratch = new Int32Array(valueScratch.buffer);
const decimalTrial = new ByteWriter();
const splitTrial = new ByteWriter();

function reserve(n: number): void {
  if (n <= scratch.length) return;
  scratch = new Float64Array(n);
  valueScratch = new Float64Array(n);
  wordScratch = new Int32Array(valueScratch.buffer);
}

export function encodeFloats(out: ByteWriter, values: Float64Array, n: number): void {
  reserve(n);
  for (let i = 0; i < n; i++) valueScratch[i] = values[i]!;
  if (allEqual(n)) {
    out.u8(floatCodes.constant);
    out.f64(n > 0 ? values[0]! : 0);
    return;
  }
  decimalTrial.clear();
  const exponent = toDecimals(values, n, scratch);
  if (exponent >= 0) {
    decimalTrial.u8(floatCodes.decimal);
    decimalTrial.u8(exponent);
    encodeIntegers(decimalTrial, scratch, n);
  }
  // No other form comes near such numbers.
  if (exponent >= 0 && decimalTrial.length < n * 4) {
    out.bytes(decimalTrial.view());
    return;
  }
  splitTrial.clear();
  encodeSplit(splitTrial, n);
  const best = exponent >= 0 && decimalTrial.length < splitTrial.length ? decimalTrial : splitTrial;
  const start = out.length;
  out.u8(floatCodes.xor);
  if (encodeXor(out, wordScratch, n, best.length - 1) && out.length - start <= best.length) return;
  out.length = start;
  out.bytes(best.view());
}

function allEqual(n: number): boolean {
  const [low, high] = [wordScratch[0], wordScratch[1]];
  for (let i = 1; i < n; i++) {
    if (wordScratch[2 * i] !== low || wordScratch[2 * i + 1] !== high) return false;
  }
  return true;
}

/**
 * Finds the least number of decimals with which all values are whole, and those numbers. -1 when there is
 * none, or when the numbers would not lead back to the very same bits.
 */
export function toDecimals(values: ArrayLike<number>, n: number, to: Float64Array): number {
  let exponent = 0;
  for (let i = 0; i < n; i++) {
    const v = values[i]!;
    const m = Math.round(v * powersOfTen[exponent]!);
    to[i] = m;
    if (m / powersOfTen[exponent]! === v && isSafe(m, v)) continue;
    do {
      if (++exponent > maxExponent) return -1;
    } while (!isDecimal(v, powersOfTen[exponent]!));
    // Those before have to be whole with it as well: from the start, at most once an exponent.
    i = -1;
  }
  return exponent;
}

function isDecimal(v: number, power: number): boolean {
  const m = Math.round(v * power);
  return m / power === v && isSafe(m, v);
}

function isSafe(m: number, v: number): boolean {
  if (m === 0) return !Object.is(v, -0);
  return m <= Number.MAX_SAFE_INTEGER && m >= Number.MIN_SAFE_INTEGER;
}

function encodeSplit(out: ByteWriter, n: number): void {
  let used = 0;
  for (let i = 0; i < n; i++) {
    scratch[i] = wordScratch[2 * i + 1]! >>> 0;
    used |= wordScratch[2 * i]!;
  }
  out.u8(floatCodes.split);
  encodeIntegers(out, scratch, n);
  const zeros = used === 0 ? 32 : 31 - Math.clz32(used & -used);
  out.u8(zeros);
  if (zeros === 32) return;
  for (let i = 0; i < n; i++) scratch[i] = wordScratch[2 * i]! >>> zeros;
  packFlat(out, scratch, n, 32 - zeros);
}

/** After their code was read. */
export function decodeFloats(from: ByteReader, code: number, to: Float64Array, n: number): void {
  switch (code) {
    case floatCodes.constant:
      to.fill(from.f64(), 0, n);
      return;
    case floatCodes.decimal:
      decodeDecimals(from, to, n);
      return;
    case floatCodes.xor:
      reserve(n);
      decodeXor(from, wordScratch, n);
      for (let i = 0; i < n; i++) to[i] = valueScratch[i]!;
      return;
    case floatCodes.split:
      decodeSplit(from, to, n);
      return;
    default:
      corrupt('floats have an unknown encoding');
  }
}

function decodeDecimals(from: ByteReader, to: Float64Array, n: number): void {
  const exponent = from.u8();
  if (exponent > maxExponent) corrupt('floats have too many decimals');
  decodeIntegers(from, to, n);
  if (exponent === 0) return;
  const power = powersOfTen[exponent]!;
  for (let i = 0; i < n; i++) to[i]! /= power;
}

function decodeSplit(from: ByteReader, to: Float64Array, n: number): void {
  reserve(n);
  decodeIntegers(from, to, n);
  const zeros = from.u8();
  if (zeros > 32) corrupt('floats have too many zeros');
  if (zeros < 32) unpackFlat(from, scratch, 0, n, 32 - zeros);
  else scratch.fill(0, 0, n);
  for (let i = 0; i < n; i++) {
    wordScratch[2 * i] = scratch[i]! << zeros;
    wordScratch[2 * i + 1] = to[i]!;
  }
  for (let i = 0; i < n; i++) to[i] = valueScratch[i]!;
}
