// Strings as arrays of bits: SETBIT, GETBIT, BITCOUNT, BITPOS, BITOP.

import type { Arguments } from '../../arguments.ts';
import { emptyBytes, Slice } from '../../bytes.ts';
import { CommandError, syntaxError } from '../../errors.ts';
import type { Reply } from '../../reply.ts';
import { type Row, type Rows, Shape } from '../../rows.ts';
import { shortWork, step, stepBytes, type Steps, type StepTransform } from '../../steps.ts';
import { BitOperation, combineWords, countBits, firstBitOf, firstOtherByte } from './bits.ts';
import { stringLimit } from './support/string-limit.ts';
import { dropRow, sizeOf, typedRow } from './support/typed-row.ts';

export const bitOffsetError = new CommandError('ERR bit offset is not an integer or out of range');
const bitError = new CommandError('ERR bit is not an integer or out of range');
const soughtBitError = new CommandError('ERR The bit argument must be 1 or 0.');
const oneSourceError = new CommandError('ERR BITOP NOT must be called with a single source key.');

/** Keys that one step of BITOP looks up. */
const keysPerStep = 256;

const value = new Slice();
const oneByte = Buffer.alloc(1);

function bitOffset(args: Arguments, word: number): number {
  const offset = args.integerOrNaN(word);
  if (!(offset >= 0 && offset < stringLimit.bytes * 8)) throw bitOffsetError;
  return offset;
}

/**
 * The value under the key, created or extended by zeros to at least `length` bytes. Returns whether
 * that changed the value.
 */
export function growValue(rows: Rows, args: Arguments, row: Row, length: number): boolean {
  if (row !== 0 && rows.count(row) >= length) return false;
  const { buf, starts, lens } = args;
  const grown = row !== 0 ? row : rows.putValue(buf, starts[1]!, lens[1]!, emptyBytes, 0, 0, 0);
  oneByte[0] = 0;
  rows.patchValue(grown, length - 1, oneByte, 0, 1);
  return true;
}

export function setbit(rows: Rows, args: Arguments, reply: Reply): void {
  const offset = bitOffset(args, 2);
  const bit = args.integerOrNaN(3);
  if (bit !== 0 && bit !== 1) throw bitError;
  const { buf, starts, lens } = args;
  let row = typedRow(rows, args, 1, Shape.value);
  const at = Math.floor(offset / 8);
  const mask = 128 >> (offset % 8);
  let byte = 0;
  const isThere = at < sizeOf(rows, row);
  if (isThere) {
    rows.value(row, value);
    byte = value.b[value.s + at]!;
    value.b = emptyBytes;
  }
  const isSet = (byte & mask) !== 0;
  if (!isThere || isSet !== (bit === 1)) {
    if (row === 0) row = rows.putValue(buf, starts[1]!, lens[1]!, emptyBytes, 0, 0, 0);
    oneByte[0] = bit === 1 ? byte | mask : byte & ~mask;
    rows.patchValue(row, at, oneByte, 0, 1);
  }
  reply.integer(isSet ? 1 : 0);
}

export function getbit(rows: Rows, args: Arguments, reply: Reply): void {
  const offset = bitOffset(args, 2);
  const row = typedRow(rows, args, 1, Shape.value);
  const at = Math.floor(offset / 8);
  if (at >= sizeOf(rows, row)) {
    reply.integer(0);
    return;
  }
  rows.value(row, value);
  reply.integer((value.b[value.s + at]! >> (7 - (offset % 8))) & 1);
  value.b = emptyBytes;
}

/** Bits `first` to `last` of a value; none when `first` is the greater one. */
interface BitRange {
  first: number;
  last: number;
}

function isBitUnit(args: Arguments, word: number): boolean {
  if (word >= args.count || args.is(word, 'BYTE')) return false;
  if (args.is(word, 'BIT')) return true;
  throw syntaxError;
}

/** Range of bits from a client's `start` and `end`, which count bits or bytes. */
function bitRange(start: number, end: number, isBits: boolean, length: number): BitRange {
  const total = isBits ? length * 8 : length;
  const from = Math.max(0, start < 0 ? total + start : start);
  const to = Math.min(total - 1, Math.max(0, end < 0 ? total + end : end));
  return isBits ? { first: from, last: to } : { first: from * 8, last: to * 8 + 7 };
}

/** Calls `visit` with the bytes of the value under word 1 from `from` to before `to`, a step's worth each time. */
function* eachPiece(
  rows: Rows,
  args: Arguments,
  from: number,
  to: number,
  visit: (b: Buffer, s: number, n: number) => boolean | void,
): Steps {
  let isOver = false;
  for (let at = from; at < to && !isOver; at += stepBytes) {
    const start = at;
    isOver = yield* step(() => {
      rows.value(typedRow(rows, args, 1, Shape.value), value);
      const stop = visit(value.b, value.s + start, Math.min(stepBytes, to - start)) === true;
      value.b = emptyBytes;
      return stop;
    });
  }
}

/**
 * Masks of the bits of the range in its first and last byte. The last one applies where both are
 * the same byte.
 */
function edgeMasks(range: BitRange): [first: number, last: number] {
  return [255 >> (range.first % 8), 255 & (255 << (7 - (range.last % 8)))];
}

export function bitcount(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const row = typedRow(rows, args, 1, Shape.value);
  const range = countedRange(rows, args, row);
  if (range.first > range.last) {
    reply.integer(0);
    return;
  }
  const from = Math.floor(range.first / 8);
  const n = Math.floor(range.last / 8) + 1 - from;
  if (n > shortWork.bytes) return bitcountInSteps;
  rows.value(row, value);
  const { b, s } = value;
  value.b = emptyBytes;
  reply.integer(countBits(b, s + from, n) - bitsBeyond(range, b, s));
}

function countedRange(rows: Rows, args: Arguments, row: Row): BitRange {
  if (row === 0) return { first: 0, last: -1 };
  const length = rows.count(row);
  if (args.count === 2) return { first: 0, last: length * 8 - 1 };
  if (args.count !== 4 && args.count !== 5) throw syntaxError;
  const start = args.integer(2);
  const end = args.integer(3);
  // Decided before the unit is looked at, and before negative ones are counted from the end.
  if (start < 0 && end < 0 && start > end) return { first: 0, last: -1 };
  return bitRange(start, end, isBitUnit(args, 4), length);
}

/** Set bits of the range's first and last byte that are not in it. */
function bitsBeyond(range: BitRange, b: Buffer, s: number): number {
  const [first, last] = edgeMasks(range);
  if (first === 255 && last === 255) return 0;
  oneByte[0] = b[s + Math.floor(range.first / 8)]! & ~first;
  const before = countBits(oneByte, 0, 1);
  oneByte[0] = b[s + Math.floor(range.last / 8)]! & ~last;
  return before + countBits(oneByte, 0, 1);
}

function* bitcountInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const range = countedRange(rows, args, typedRow(rows, args, 1, Shape.value));
  let sum = 0;
  const from = Math.floor(range.first / 8);
  yield* eachPiece(rows, args, from, Math.floor(range.last / 8) + 1, (b, s, n) => {
    sum += countBits(b, s, n);
  });
  yield* step(() => {
    rows.value(typedRow(rows, args, 1, Shape.value), value);
    sum -= bitsBeyond(range, value.b, value.s);
    value.b = emptyBytes;
  });
  reply.integer(sum);
}

/** Target and range of BITPOS. */
interface BitSearch {
  range: BitRange;
  /** Reply if there is none. */
  none: number;
}

function soughtBit(args: Arguments): number {
  const bit = args.integer(2);
  if (bit !== 0 && bit !== 1) throw soughtBitError;
  return bit;
}

function bitSearch(rows: Rows, args: Arguments, row: Row, bit: number): BitSearch {
  if (row === 0) return { range: { first: 0, last: -1 }, none: bit === 1 ? -1 : 0 };
  const length = rows.count(row);
  if (args.count > 6) throw syntaxError;
  const start = args.count > 3 ? args.integer(3) : 0;
  const isBits = isBitUnit(args, 5);
  const hasEnd = args.count > 4;
  const range = bitRange(start, hasEnd ? args.integer(4) : length - 1, isBits, length);
  // A value ends in zeros without end, unless the client says where to stop.
  const isOpen = bit === 0 && !hasEnd && range.first <= range.last;
  return { range, none: isOpen ? length * 8 : -1 };
}

export function bitpos(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  // The error about the bit comes before the one about the type.
  const bit = soughtBit(args);
  const row = typedRow(rows, args, 1, Shape.value);
  const { range, none } = bitSearch(rows, args, row, bit);
  if (range.first > range.last) {
    reply.integer(none);
    return;
  }
  const from = Math.floor(range.first / 8);
  const n = Math.floor(range.last / 8) + 1 - from;
  if (n > shortWork.bytes) return bitposInSteps;
  rows.value(row, value);
  const found = findBit(value.b, value.s + from, n, from, bit, range);
  value.b = emptyBytes;
  reply.integer(found < 0 ? none : found);
}

/** The first such bit of `n` bytes from `s`, which begin at byte `at` of the value; -1 if there is none in range. */
function findBit(
  b: Buffer,
  s: number,
  n: number,
  at: number,
  bit: number,
  range: BitRange,
): number {
  const skip = bit === 1 ? 0 : 255;
  let seen = 0;
  if (at === Math.floor(range.first / 8) && range.first % 8 !== 0) {
    // Bits before the range must not be found.
    const before = 255 & ~(255 >> (range.first % 8));
    const byte = bit === 1 ? b[s]! & ~before : b[s]! | before;
    const found = at * 8 + firstBitOf(byte, bit);
    if (byte !== skip) return found > range.last ? -1 : found;
    seen = 1;
  }
  seen += firstOtherByte(b, s + seen, n - seen, skip);
  if (seen === n) return -1;
  const found = (at + seen) * 8 + firstBitOf(b[s + seen]!, bit);
  return found > range.last ? -1 : found;
}

function* bitposInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const bit = soughtBit(args);
  const { range, none } = bitSearch(rows, args, typedRow(rows, args, 1, Shape.value), bit);
  const from = Math.floor(range.first / 8);
  let at = from;
  let found = -1;
  yield* eachPiece(rows, args, from, Math.floor(range.last / 8) + 1, (b, s, n) => {
    found = findBit(b, s, n, at, bit, range);
    at += n;
    return found >= 0;
  });
  reply.integer(found < 0 ? none : found);
}

function bitOperation(args: Arguments): BitOperation {
  if (args.is(1, 'AND')) return BitOperation.and;
  if (args.is(1, 'OR')) return BitOperation.or;
  if (args.is(1, 'XOR')) return BitOperation.xor;
  if (!args.is(1, 'NOT')) throw syntaxError;
  if (args.count !== 4) throw oneSourceError;
  return BitOperation.not;
}

export function bitop(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const op = bitOperation(args);
  if (args.count > keysPerStep) return bitopInSteps;
  rows.expect(3, args.count - 1, 1);
  let length = 0;
  let bytes = 0;
  for (let word = 3; word < args.count; word++) {
    const size = sizeOf(rows, typedRow(rows, args, word, Shape.value));
    length = Math.max(length, size);
    bytes += size;
  }
  if (bytes > shortWork.bytes) return bitopInSteps;
  if (length === 0) dropRow(rows, args, 2);
  else {
    const words = new Int32Array((length + 3) >>> 2);
    combinePiece(rows, args, op, words, 0, 3, args.count);
    const { buf, starts, lens } = args;
    rows.putValue(buf, starts[2]!, lens[2]!, Buffer.from(words.buffer), 0, length, 0);
  }
  reply.integer(length);
}

/**
 * Combines `to` with the bytes from `at` of the values under arguments `from` to before `end`. The
 * contents of `to` do not count before the first source. Stops early after a step's work; returns
 * the argument to continue from.
 */
function combinePiece(
  rows: Rows,
  args: Arguments,
  op: BitOperation,
  to: Int32Array,
  at: number,
  from: number,
  end: number,
): number {
  const bytes = Buffer.from(to.buffer);
  const source = new Int32Array(to.length);
  const sourceBytes = Buffer.from(source.buffer);
  let work = 0;
  let word = from;
  for (; word < end && work < 2 * stepBytes; word++) {
    const row = typedRow(rows, args, word, Shape.value);
    const n = Math.max(0, Math.min(bytes.length, sizeOf(rows, row) - at));
    const into = word === 3 ? bytes : sourceBytes;
    if (n > 0) {
      rows.value(row, value);
      value.b.copy(into, 0, value.s + at, value.s + at + n);
      value.b = emptyBytes;
    }
    into.fill(0, n);
    if (word > 3) combineWords(op, to, source);
    else if (op === BitOperation.not) combineWords(op, to, to);
    work += bytes.length;
  }
  return word;
}

function* bitopInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const op = bitOperation(args);
  const { buf, starts, lens, count } = args;
  let length = 0;
  for (let word = 3; word < count; word += keysPerStep) {
    const from = word;
    const most = yield* step(() => {
      const end = Math.min(count, from + keysPerStep);
      rows.expect(from, end - 1, 1);
      let longest = 0;
      for (let i = from; i < end; i++) {
        longest = Math.max(longest, sizeOf(rows, typedRow(rows, args, i, Shape.value)));
      }
      return longest;
    });
    length = Math.max(length, most);
  }
  // Pieces of the result, each as long as one step copies.
  const pieces: Buffer[] = [];
  for (let at = 0; at < length; at += stepBytes) {
    const n = Math.min(stepBytes, length - at);
    let words: Int32Array<ArrayBuffer> = new Int32Array((n + 3) >>> 2);
    for (let word = 3; word < count; ) {
      const from = word;
      const offset = at;
      const before = words;
      // Into a copy, as a step that meets a `ReadFault` is done again.
      [word, words] = yield* step((): [number, Int32Array<ArrayBuffer>] => {
        const after = before.slice();
        const end = Math.min(count, from + keysPerStep);
        return [combinePiece(rows, args, op, after, offset, from, end), after];
      });
    }
    pieces.push(Buffer.from(words.buffer, 0, n));
  }
  // The sources have been read: from here on one of them may be overwritten.
  yield* step(() => {
    if (length === 0) dropRow(rows, args, 2);
    else rows.reserveValue(buf, starts[2]!, lens[2]!, length, 0);
  });
  for (const [i, piece] of pieces.entries()) {
    yield* step(() => rows.fillValue(i * stepBytes, piece, 0, piece.length));
  }
  reply.integer(length);
}
