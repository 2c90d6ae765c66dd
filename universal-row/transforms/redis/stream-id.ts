// Ids of stream entries: two unsigned 64-bit integers, milliseconds and a sequence number, as four halves, so
// that every id is exact and none is an object of its own.

import type { Arguments } from '../../arguments.ts';
import { writeInteger } from '../../bytes.ts';
import { CommandError } from '../../errors.ts';

export const invalidId = new CommandError(
  'ERR Invalid stream ID specified as stream command argument',
);

const half = 2 ** 32;
const maxHalf = half - 1;
/** Digits of which any number is exact in a double. */
const exactDigits = 15;
/** Longest id as text: two numbers of 20 digits. */
export const maxIdTextBytes = 41;
/** Longest id as bytes: two lengths and two numbers of eight bytes. */
export const maxIdBytes = 18;

/** High and low half of the number read last. */
let high = 0;
let low = 0;

export class StreamId {
  msHigh = 0;
  msLow = 0;
  seqHigh = 0;
  seqLow = 0;

  get isZero(): boolean {
    return (this.msHigh | this.msLow | this.seqHigh | this.seqLow) === 0;
  }

  get isMax(): boolean {
    return (
      this.msHigh === maxHalf &&
      this.msLow === maxHalf &&
      this.seqHigh === maxHalf &&
      this.seqLow === maxHalf
    );
  }

  set(id: StreamId): this {
    this.msHigh = id.msHigh;
    this.msLow = id.msLow;
    this.seqHigh = id.seqHigh;
    this.seqLow = id.seqLow;
    return this;
  }

  setZero(): this {
    this.msHigh = this.msLow = this.seqHigh = this.seqLow = 0;
    return this;
  }

  setMax(): this {
    this.msHigh = this.msLow = this.seqHigh = this.seqLow = maxHalf;
    return this;
  }

  /** `ms`-0. */
  setTime(ms: number): this {
    this.msHigh = Math.floor(ms / half);
    this.msLow = ms % half;
    this.seqHigh = this.seqLow = 0;
    return this;
  }

  compare(id: StreamId): number {
    return (
      this.msHigh - id.msHigh ||
      this.msLow - id.msLow ||
      this.seqHigh - id.seqHigh ||
      this.seqLow - id.seqLow
    );
  }

  hasTimeOf(id: StreamId): boolean {
    return this.msHigh === id.msHigh && this.msLow === id.msLow;
  }

  /** Goes to the next id; false, with nothing changed, when there is none. */
  increment(): boolean {
    if (this.isMax) return false;
    if (++this.seqLow <= maxHalf) return true;
    this.seqLow = 0;
    if (++this.seqHigh <= maxHalf) return true;
    this.seqHigh = 0;
    if (++this.msLow <= maxHalf) return true;
    this.msLow = 0;
    this.msHigh++;
    return true;
  }

  /** Goes to the next id of the same time; false, with nothing changed, when there is none. */
  incrementSequence(): boolean {
    if (this.seqHigh === maxHalf && this.seqLow === maxHalf) return false;
    return this.increment();
  }

  /** Goes to the id before; false, with nothing changed, when there is none. */
  decrement(): boolean {
    if (this.isZero) return false;
    if (--this.seqLow >= 0) return true;
    this.seqLow = maxHalf;
    if (--this.seqHigh >= 0) return true;
    this.seqHigh = maxHalf;
    if (--this.msLow >= 0) return true;
    this.msLow = maxHalf;
    this.msHigh--;
    return true;
  }

  /** Writes it so that bytes sort as ids do: each number as its length and its bytes. Returns where it ends. */
  write(to: Buffer, at: number): number {
    return writeSortable(
      to,
      writeSortable(to, at, this.msHigh, this.msLow),
      this.seqHigh,
      this.seqLow,
    );
  }

  /** Decodes the output of `write`; returns its end. */
  read(b: Buffer, at: number): number {
    let p = readSortable(b, at);
    this.msHigh = high;
    this.msLow = low;
    p = readSortable(b, p);
    this.seqHigh = high;
    this.seqLow = low;
    return p;
  }

  /** Writes `ms-seq` in decimal; returns how many bytes it took. */
  writeText(to: Buffer, at: number): number {
    let p = writeDecimal(to, at, this.msHigh, this.msLow);
    to[p++] = 45;
    p = writeDecimal(to, p, this.seqHigh, this.seqLow);
    return p - at;
  }
}

function writeSortable(to: Buffer, at: number, hi: number, lo: number): number {
  const bytes = hi === 0 ? bytesOf(lo) : 4 + bytesOf(hi);
  to[at] = bytes;
  for (let i = bytes, p = at + 1; i > 0; i--, p++) {
    to[p] = i > 4 ? hi >>> ((i - 5) * 8) : lo >>> ((i - 1) * 8);
  }
  return at + 1 + bytes;
}

function bytesOf(number: number): number {
  if (number === 0) return 0;
  return 4 - (Math.clz32(number) >>> 3);
}

function readSortable(b: Buffer, at: number): number {
  const bytes = b[at]!;
  high = 0;
  low = 0;
  for (let i = bytes, p = at + 1; i > 0; i--, p++) {
    if (i > 4) high = high * 256 + b[p]!;
    else low = low * 256 + b[p]!;
  }
  return at + 1 + bytes;
}

function writeDecimal(to: Buffer, at: number, hi: number, lo: number): number {
  if (hi < 2 ** 21) return at + writeInteger(to, at, hi * half + lo);
  const text = ((BigInt(hi) << 32n) | BigInt(lo)).toString();
  return at + to.write(text, at, 'latin1');
}

/** Reads a decimal number of 64 bits into `high` and `low`; false when the bytes are none. */
function readDecimal(b: Buffer, s: number, n: number): boolean {
  let at = s;
  const end = s + n;
  // As strtoull has it.
  while (at < end && (b[at] === 32 || (b[at]! >= 9 && b[at]! <= 13))) at++;
  if (end - at > 1 && b[at] === 43) at++;
  if (at === end) return false;
  let value = 0;
  if (end - at <= exactDigits) {
    for (; at < end; at++) {
      const digit = b[at]! - 48;
      if (digit < 0 || digit > 9) return false;
      value = value * 10 + digit;
    }
    high = Math.floor(value / half);
    low = value % half;
    return true;
  }
  const text = b.toString('latin1', at, end);
  if (!/^\d+$/.test(text)) return false;
  const exact = BigInt(text);
  if (exact >= 2n ** 64n) return false;
  high = Number(exact >> 32n);
  low = Number(exact & 0xffffffffn);
  return true;
}

const longestText = 127;

/**
 * Reads `ms` or `ms-seq` into `to`. Without a sequence number it is the first of that time, or the last if
 * `isEnd`. False when it is neither.
 */
export function parseId(b: Buffer, s: number, n: number, isEnd: boolean, to: StreamId): boolean {
  if (n > longestText) return false;
  if (n === 1 && (b[s] === 45 || b[s] === 43)) return false;
  let dash = s;
  while (dash < s + n && b[dash] !== 45) dash++;
  if (!readDecimal(b, s, dash - s)) return false;
  to.msHigh = high;
  to.msLow = low;
  if (dash === s + n) {
    to.seqHigh = to.seqLow = isEnd ? maxHalf : 0;
    return true;
  }
  if (!readDecimal(b, dash + 1, s + n - dash - 1)) return false;
  to.seqHigh = high;
  to.seqLow = low;
  return true;
}

/** Reads `ms-*` into `to`, with 0 as its sequence number; false when it is not that. */
export function parseTimeOnly(b: Buffer, s: number, n: number, to: StreamId): boolean {
  if (n < 2 || n > longestText || b[s + n - 1] !== 42 || b[s + n - 2] !== 45) return false;
  if (!readDecimal(b, s, n - 2)) return false;
  to.msHigh = high;
  to.msLow = low;
  to.seqHigh = to.seqLow = 0;
  return true;
}

/** A word as errors show it: up to its first NUL, as in redis-server. */
export function shownWord(args: Arguments, word: number): string {
  return args.latin1(word).split('\0', 1)[0]!;
}
