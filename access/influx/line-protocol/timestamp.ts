// Times as clients write them, in the unit of the request's `precision`, and how they become seconds and
// nanoseconds: both exact as doubles, which nanoseconds since 1970 are not.

import { minus, newline, space, zero } from './characters.ts';

/** Units of the parameter `precision`; anything else is nanoseconds. */
export interface Precision {
  /** Decimal digits of a second; 0 for units of a second and more. */
  readonly digits: number;
  /** Seconds of one unit. */
  readonly seconds: number;
}

const nanoseconds: Precision = { digits: 9, seconds: 1 };

const precisions = new Map<string, Precision>([
  ['u', { digits: 6, seconds: 1 }],
  ['us', { digits: 6, seconds: 1 }],
  ['\u00b5', { digits: 6, seconds: 1 }],
  ['\u00b5s', { digits: 6, seconds: 1 }],
  // The Greek letter, which looks the same.
  ['\u03bc', { digits: 6, seconds: 1 }],
  ['\u03bcs', { digits: 6, seconds: 1 }],
  ['ms', { digits: 3, seconds: 1 }],
  ['s', { digits: 0, seconds: 1 }],
  ['m', { digits: 0, seconds: 60 }],
  ['h', { digits: 0, seconds: 3600 }],
]);

export function precisionOf(name: string | undefined): Precision {
  return precisions.get(name ?? '') ?? nanoseconds;
}

export const goodTime = 1;
export const badTime = 2;
export const timeOutsideRange = 3;

const maxSeconds = 9223372036;
const maxNanos = 854775806;

export class TimeReader {
  /** Where the number ends. */
  end = 0;
  // Seconds and nanoseconds since 1970, both negative or 0 before it.
  seconds = 0;
  nanos = 0;
  private digits = 9;
  private unit = 1;
  /** Nanoseconds of one unit, where that is less than a second. */
  private scale = 1;

  set precision(precision: Precision) {
    this.digits = precision.digits;
    this.unit = precision.seconds;
    this.scale = 10 ** (9 - precision.digits);
  }

  /** A moment in milliseconds since 1970, cut to the precision. */
  cut(ms: number): void {
    const whole = Math.floor(ms);
    const seconds = Math.floor(whole / 1000);
    this.seconds = Math.floor(seconds / this.unit) * this.unit;
    this.nanos = this.digits === 0 ? 0 : (whole - seconds * 1000) * 1_000_000;
  }

  /** Reads the time at `start`, which is neither blank nor a newline. Up to `end` there is a newline. */
  read(buf: Buffer, start: number, end: number): number {
    let i = start;
    const negative = buf[i] === minus;
    if (negative) i++;
    const from = i;
    // Leading zeros don't count towards the number of digits that fit.
    while (i < end && buf[i] === zero) i++;
    const first = i;
    while (i < end) {
      const d = buf[i]! - zero;
      if (d < 0 || d > 9) break;
      i++;
    }
    this.end = i;
    if (i === from || i === end || (buf[i] !== newline && buf[i] !== space)) return badTime;
    if (i - first > 19) return timeOutsideRange;
    // Digits of whole units or seconds, and of the fraction of a second.
    const split = Math.max(first, i - this.digits);
    let seconds = 0;
    for (let p = first; p < split; p++) seconds = seconds * 10 + (buf[p]! - zero);
    let nanos = 0;
    for (let p = split; p < i; p++) nanos = nanos * 10 + (buf[p]! - zero);
    seconds *= this.unit;
    nanos *= this.scale;
    if (seconds > maxSeconds || (seconds === maxSeconds && nanos > maxNanos)) {
      return timeOutsideRange;
    }
    this.seconds = negative ? 0 - seconds : seconds;
    this.nanos = negative ? 0 - nanos : nanos;
    return goodTime;
  }
}
