// A HyperLogLog in the bytes that Redis keeps one in, as a string:
//
//   'HYLL', encoding (0 dense, 1 sparse), 3 bytes unused, cardinality (8 bytes, little endian; when its top
//   bit is set it is out of date), registers
//
// Dense, the 16384 registers have 6 bits each, from the lowest bit of the first byte on: 12304 bytes in all.
// Sparse, they are runs: 00xxxxxx x+1 zeros; 01xxxxxx yyyyyyyy as many as 256x+y+1; 1vvvvvxx x+1 times v+1.
// Which bytes stand for a set of registers depends on the order of the additions, and follows Redis.

import { equalBytes } from '../../../bytes.ts';
import { encodingLimits } from '../support/encoding-limits.ts';
import { registerCount } from './hash.ts';

export const headerBytes = 16;
export const denseBytes = headerBytes + (registerCount * 6) / 8;
/** Size with each register encoded by itself in the longest form. A longer string is damaged. */
const mostSparseBytes = headerBytes + registerCount * 2;
/** Bytes that one is never longer than, whole or damaged. */
export const mostBytes = mostSparseBytes;

const encodingAt = 4;
const staleAt = 15;
const maxSparseCount = 32;
const maxShortZeros = 64;
const magic = Buffer.from('HYLL');

export const Encoding = { dense: 0, sparse: 1 } as const;

/** Whether the bytes begin as a HyperLogLog does and have a length that one can have. */
export function isSketch(b: Buffer, s: number, n: number): boolean {
  if (n < headerBytes || !equalBytes(b, s, magic.length, magic, 0, magic.length)) return false;
  const encoding = b[s + encodingAt]!;
  return encoding === Encoding.sparse || (encoding === Encoding.dense && n === denseBytes);
}

export function encodingOf(b: Buffer, s: number): number {
  return b[s + encodingAt]!;
}

/** The number of elements that was counted last; `undefined` once something was added since. */
export function cachedCount(b: Buffer, s: number): bigint | undefined {
  if (b[s + staleAt]! >= 128) return undefined;
  return b.readBigUInt64LE(s + 8);
}

export const staleByte = { at: staleAt, bit: 128 } as const;

export function denseRegister(b: Buffer, registers: number, index: number): number {
  const bit = index * 6;
  const at = registers + (bit >> 3);
  return ((b[at]! | (b[at + 1]! << 8)) >> (bit & 7)) & 63;
}

/** Sets a dense register. */
function setDenseRegister(b: Buffer, registers: number, index: number, count: number): void {
  const bit = index * 6;
  setSixBits(b, registers + (bit >> 3), bit & 7, count);
}

/** Sets 6 bits from one of a byte on; the next byte is touched only if they reach into it. */
export function setSixBits(b: Buffer, at: number, shift: number, count: number): void {
  b[at] = (b[at]! & ~(63 << shift)) | (count << shift);
  if (shift > 2) b[at + 1] = (b[at + 1]! & ~(63 >> (8 - shift))) | (count >> (8 - shift));
}

/** Visits the runs of a sparse one until its registers or its bytes are over; false when they do not fit. */
export function eachRun(
  b: Buffer,
  s: number,
  n: number,
  visit: (first: number, length: number, count: number) => void,
): boolean {
  const end = s + n;
  let first = 0;
  for (let p = s + headerBytes; p < end; ) {
    const op = b[p]!;
    let length: number;
    let count = 0;
    if (op >= 128) {
      length = (op & 3) + 1;
      count = ((op >> 2) & 31) + 1;
      p++;
    } else if (op >= 64) {
      length = ((op & 63) << 8) + (p + 1 < end ? b[p + 1]! : 0) + 1;
      p += 2;
    } else {
      length = op + 1;
      p++;
    }
    if (first + length > registerCount) return false;
    visit(first, length, count);
    first += length;
  }
  return first === registerCount;
}

/** Raises `registers`, a byte each, to greater values here. False when the bytes are damaged. */
export function mergeInto(registers: Uint8Array, b: Buffer, s: number, n: number): boolean {
  if (encodingOf(b, s) === Encoding.dense) {
    const from = s + headerBytes;
    for (let i = 0, p = from; i < registerCount; i += 4, p += 3) {
      const word = b[p]! | (b[p + 1]! << 8) | (b[p + 2]! << 16);
      raise(registers, i, word & 63);
      raise(registers, i + 1, (word >> 6) & 63);
      raise(registers, i + 2, (word >> 12) & 63);
      raise(registers, i + 3, word >> 18);
    }
    return true;
  }
  return eachRun(b, s, n, (first, length, count) => {
    if (count > 0) for (let i = first; i < first + length; i++) raise(registers, i, count);
  });
}

function raise(registers: Uint8Array, i: number, count: number): void {
  if (count > registers[i]!) registers[i] = count;
}

/** A HyperLogLog that is being changed, in memory of its own. */
export class Sketch {
  readonly b = Buffer.alloc(mostSparseBytes + 8);
  length = 0;
  /** Where the run before the one that was changed last begins, and its first register. */
  #hintAt = headerBytes;
  #hintFirst = 0;

  /** Begins with one that is empty. */
  clear(): void {
    this.b.fill(0, 0, headerBytes);
    magic.copy(this.b);
    this.b[encodingAt] = Encoding.sparse;
    this.length = this.#putZeros(headerBytes, registerCount);
    this.#forget();
  }

  /** Begins with a copy; false when it is longer than one can be. */
  load(b: Buffer, s: number, n: number): boolean {
    if (n > mostSparseBytes) return false;
    b.copy(this.b, 0, s, s + n);
    this.b[n] = 0;
    this.length = n;
    this.#forget();
    return true;
  }

  get isDense(): boolean {
    return this.b[encodingAt] === Encoding.dense;
  }

  #forget(): void {
    this.#hintAt = headerBytes;
    this.#hintFirst = 0;
  }

  /** Says that the cardinality has to be counted anew. */
  invalidate(): void {
    this.b[staleAt]! |= 128;
  }

  /** 1 when the register was raised to `count`, 0 when it was as high, -1 when the bytes are damaged. */
  raise(index: number, count: number): number {
    if (!this.isDense) return this.#raiseSparse(index, count);
    if (count <= denseRegister(this.b, headerBytes, index)) return 0;
    setDenseRegister(this.b, headerBytes, index, count);
    return 1;
  }

  /** False when the bytes are damaged. */
  toDense(): boolean {
    if (this.isDense) return true;
    const registers = new Uint8Array(registerCount);
    if (!mergeInto(registers, this.b, 0, this.length)) return false;
    this.b[encodingAt] = Encoding.dense;
    this.b.fill(0, headerBytes, denseBytes + 1);
    for (let i = 0; i < registerCount; i++) {
      if (registers[i]! > 0) setDenseRegister(this.b, headerBytes, i, registers[i]!);
    }
    this.length = denseBytes;
    return true;
  }

  #promote(index: number, count: number): number {
    if (!this.toDense()) return -1;
    setDenseRegister(this.b, headerBytes, index, count);
    return 1;
  }

  #raiseSparse(index: number, count: number): number {
    if (count > maxSparseCount) return this.#promote(index, count);
    const { b } = this;
    const end = this.length;
    let before = -1;
    let beforeFirst = 0;
    let p = headerBytes;
    let first = 0;
    if (index >= this.#hintFirst + this.#runLength(this.#hintAt)) {
      p = this.#hintAt;
      first = this.#hintFirst;
    }
    let run = 0;
    for (; p < end; ) {
      run = this.#runLength(p);
      if (index < first + run) break;
      before = p;
      beforeFirst = first;
      p += this.#opLength(p);
      first += run;
    }
    if (p >= end) return -1;
    const op = b[p]!;
    const isValue = op >= 128;
    const old = isValue ? ((op >> 2) & 31) + 1 : 0;
    if (old >= count) return 0;
    const mergeFrom = before < 0 ? headerBytes : before;
    if (run === 1 && (isValue || op < 64)) b[p] = valueOp(count, 1);
    else if (!this.#split(p, first, run, old, index, count)) return this.#promote(index, count);
    this.#merge(mergeFrom);
    this.#hintAt = mergeFrom;
    this.#hintFirst = before < 0 ? 0 : beforeFirst;
    this.invalidate();
    return 1;
  }

  /** Splits the run at `p` around a register; false when that takes more room than there may be. */
  #split(
    p: number,
    first: number,
    run: number,
    old: number,
    index: number,
    count: number,
  ): boolean {
    const { b } = this;
    const end = this.length;
    const oldLength = this.#opLength(p);
    const left = index - first;
    const right = first + run - 1 - index;
    const added = opLengthFor(old, left) + 1 + opLengthFor(old, right) - oldLength;
    const most = Math.min(encodingLimits.hllSparseBytes, mostSparseBytes);
    if (added > 0 && end + added > most) return false;
    b.copyWithin(p + oldLength + added, p + oldLength, end);
    let at = this.#putRun(p, old, left);
    b[at++] = valueOp(count, 1);
    this.#putRun(at, old, right);
    this.length = end + added;
    return true;
  }

  /** Joins runs of the same value, looking at five from one on, as Redis does. */
  #merge(from: number): void {
    const { b } = this;
    let p = from;
    for (let scans = 5; p < this.length && scans > 0; scans--) {
      const op = b[p]!;
      if (op < 128) {
        p += this.#opLength(p);
        continue;
      }
      const next = p + 1 < this.length ? b[p + 1]! : 0;
      const length = (op & 3) + (next & 3) + 2;
      if (next >= 128 && (op & 124) === (next & 124) && length <= 4) {
        b[p] = (op & ~3) | (length - 1);
        b.copyWithin(p + 1, p + 2, this.length);
        this.length--;
      } else p++;
    }
    b[this.length] = 0;
  }

  #runLength(p: number): number {
    const op = this.b[p]!;
    if (op >= 128) return (op & 3) + 1;
    return op >= 64 ? ((op & 63) << 8) + this.b[p + 1]! + 1 : op + 1;
  }

  #opLength(p: number): number {
    const op = this.b[p]!;
    return op >= 64 && op < 128 ? 2 : 1;
  }

  #putRun(at: number, count: number, length: number): number {
    if (length === 0) return at;
    if (count === 0) return this.#putZeros(at, length);
    this.b[at] = valueOp(count, length);
    return at + 1;
  }

  #putZeros(at: number, length: number): number {
    if (length <= maxShortZeros) {
      this.b[at] = length - 1;
      return at + 1;
    }
    this.b[at] = ((length - 1) >> 8) | 64;
    this.b[at + 1] = (length - 1) & 255;
    return at + 2;
  }
}

function valueOp(count: number, length: number): number {
  return 128 | ((count - 1) << 2) | (length - 1);
}

function opLengthFor(count: number, length: number): number {
  if (length === 0) return 0;
  return count === 0 && length > maxShortZeros ? 2 : 1;
}
