// Numbers as line protocol writes them:
//
//   42i   42u   42   -4.2   .5   5.   6.02e23
//
// The value is exact: integers over all 64 bits, floats rounded as the language rounds them. No string
// is made but for floats with more than 20 digits or a large exponent.

import { dot, minus, zero } from './characters.ts';

export const notNumber = 0;
const floatNumber = 1;
/** An integer within ±(2^53 - 1), in `value`. */
const integerNumber = 2;
/** One beyond, in `high` and `low`. */
export const wideInteger = 3;
const unsignedNumber = 4;
export const wideUnsigned = 5;

const letterE = 0x65;
const letterI = 0x69;
const letterU = 0x75;
const plus = 0x2b;

/** Powers of ten; all of them are exact. */
export const powers = new Float64Array(23);
/** The same, modulo 2^32. */
const powerLow = new Int32Array(11);
for (let i = 0; i <= 22; i++) {
  // Not 10 ** i, which may be off by a bit.
  powers[i] = Number(`1e${i}`);
  if (i <= 10) powerLow[i] = Number(BigInt.asIntN(32, 10n ** BigInt(i)));
}

export class NumberReader {
  /** Where the number ends. */
  end = 0;
  high = 0;
  low = 0;
  /** One element: a double in a typed array is no object. */
  readonly value = new Float64Array(1);

  /**
   * Reads the number at `start`; bytes after it are not checked. A byte that ends it must precede
   * the end of the buffer. Returns its kind; `notNumber` also for one out of range.
   */
  read(buf: Buffer, start: number): number {
    let i = start;
    const negative = buf[i] === minus;
    if (negative) i++;
    const from = i;
    // The first nine significant digits, the next nine, two more, and how many there are.
    let a = 0;
    let b = 0;
    let rest = 0;
    let digits = 0;
    let point = -1;
    for (; ; i++) {
      const c = buf[i]!;
      const d = c - zero;
      if (d >= 0 && d <= 9) {
        if (digits < 9) {
          a = (Math.imul(a, 10) + d) | 0;
          // Zeros in front don't count.
          if (a === 0) continue;
        } else if (digits < 18) b = (Math.imul(b, 10) + d) | 0;
        else if (digits < 20) rest = rest * 10 + d;
        digits++;
      } else if (c === dot && point < 0) point = i;
      else break;
    }
    let shift = digits > 9 ? digits - 9 : 0;
    if (digits > 18) {
      // Ten and ten.
      shift = digits - 10;
      a = a * 10 + Math.floor(b / 100_000_000);
      b = (b % 100_000_000) * powers[digits > 20 ? 2 : digits - 18]! + rest;
    }
    if (i - from === (point < 0 ? 0 : 1)) return notNumber;
    const suffix = buf[i]!;
    if (suffix === letterI || suffix === letterU) {
      if (point >= 0) return notNumber;
      this.end = i + 1;
      return this.integer(a, b, shift, digits, negative, suffix === letterU);
    }
    let exponent = point < 0 ? 0 : point + 1 - i;
    if ((suffix | 0x20) === letterE) {
      i++;
      const negativeExponent = buf[i] === minus;
      if (negativeExponent || buf[i] === plus) i++;
      const exponentFrom = i;
      let e = 0;
      for (; ; i++) {
        const d = buf[i]! - zero;
        if (d < 0 || d > 9) break;
        if (e < 100_000) e = e * 10 + d;
      }
      if (i === exponentFrom) return notNumber;
      exponent += negativeExponent ? -e : e;
    }
    this.end = i;
    let value = digits > 20 ? NaN : exact(a, b, shift, exponent);
    if (value !== value) value = Number(buf.toString('latin1', from, i));
    if (value === Infinity) return notNumber;
    this.value[0] = negative ? -value : value;
    return floatNumber;
  }

  /** a * 10^shift + b, in so many digits. */
  private integer(
    a: number,
    b: number,
    shift: number,
    digits: number,
    negative: boolean,
    u: boolean,
  ): number {
    if (u) {
      if (negative || digits > 20) return notNumber;
      if (digits === 20 && (a > 1844674407 || (a === 1844674407 && b > 3709551615)))
        return notNumber;
    } else {
      if (digits > 19) return notNumber;
      const last = negative ? 854775808 : 854775807;
      if (digits === 19 && (a > 9223372036 || (a === 9223372036 && b > last))) return notNumber;
    }
    const rounded = a * powers[shift]! + b;
    if (rounded <= Number.MAX_SAFE_INTEGER) {
      this.value[0] = negative ? 0 - rounded : rounded;
      return u ? unsignedNumber : integerNumber;
    }
    // The low half modulo 2^32; the high half is then a whole number that rounding finds.
    const low = (Math.imul((a % 0x100000000) | 0, powerLow[shift]!) + ((b % 0x100000000) | 0)) | 0;
    const high = Math.round((rounded - (low >>> 0)) / 0x100000000);
    this.low = negative ? -low | 0 : low;
    this.high = negative ? (~high + (low === 0 ? 1 : 0)) | 0 : high | 0;
    return u ? wideUnsigned : wideInteger;
  }
}

/**
 * (a * 10^shift + b) * 10^exponent rounded to the nearest double, or NaN when that is not certain. `a` is
 * a whole number below 2^53, and b < 10^shift.
 */
export function exact(a: number, b: number, shift: number, exponent: number): number {
  if (exponent < -22 || exponent > 22) return a === 0 ? 0 : NaN;
  // The digits as the exact sum of two doubles.
  let high = a;
  let low = 0;
  if (shift > 0) {
    const power = powers[shift]!;
    const product = a * power;
    low = productError(a, power, product) + b;
    high = product + low;
    low -= high - product;
  }
  const power = powers[exponent < 0 ? -exponent : exponent]!;
  if (low === 0) return exponent < 0 ? high / power : high * power;
  if (exponent >= 0) return exponent === 0 ? high : NaN;
  const quotient = high / power;
  const product = quotient * power;
  const rest = high - product - productError(quotient, power, product) + low;
  // Error of `quotient`, known to some 50 bits. Where a slightly larger and a slightly smaller
  // error round to the same double, that double is correct.
  const lack = rest / power;
  const slack = Math.abs(lack) * tolerance;
  const value = quotient + (lack + slack);
  return value === quotient + (lack - slack) ? value : NaN;
}

const splitter = 2 ** 27 + 1;
const tolerance = 2 ** -40;

/** x * y - product, exactly (Dekker). */
function productError(x: number, y: number, product: number): number {
  let t = splitter * x;
  const xHigh = t - (t - x);
  const xLow = x - xHigh;
  t = splitter * y;
  const yHigh = t - (t - y);
  const yLow = y - yHigh;
  return xLow * yLow - (product - xHigh * yHigh - xLow * yHigh - xHigh * yLow);
}
