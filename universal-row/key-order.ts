// Scalars as bytes that sort as the scalars do (unsigned, lexicographic, a prefix first), and that decode
// to exactly the same scalars. Keys on disk are made of these, so the encoding may never change.
//
//   null    02
//   false   03     true  04
//   number  05, ordered double (8 bytes, big-endian), rest
//   string  06, UTF-8 with 00 written as 00 ff, then 00
//   bytes   07, the bytes with 00 written as 00 ff, then 00
//
// The order is total: null < false < true < numbers < strings < bytes; shorter groups before longer ones
// that begin with them. Strings order by code point.
//
// Numbers and bigints are one sequence, by exact value. The ordered double is the greatest double not above
// the value, its bits flipped so that they sort as unsigned; NaN is all zeros and so precedes -Infinity,
// and -0 precedes 0. `rest` tells apart what shares that double: 00 a number, 01 an equal bigint, and
// 02 + high byte, low byte the distance of a bigint above it (below 1024, for integers of 64 bits).
//
// Byte 00 never begins a scalar, so it can end a group, and ff never does, so it can mark an escape.

import { isUtf8 } from 'node:buffer';
import { RowValueError, checkScalar, fitsInt64, type Scalar } from './scalar.ts';

const tagNull = 0x02;
const tagFalse = 0x03;
const tagTrue = 0x04;
const tagNumber = 0x05;
const tagString = 0x06;
const tagBytes = 0x07;

const escapedZero = 0xff;

const restNumber = 0x00;
const restBigint = 0x01;
const restDistance = 0x02;

/** The most bytes a scalar can take besides the text or bytes in it. */
const fixedBytes = 12;

/** The ordered encoding of a group of scalars. Throws `RowValueError` for a scalar no row may hold. */
export function encodeScalars(scalars: readonly Scalar[]): Buffer {
  let bound = 0;
  for (const scalar of scalars) bound += fixedBytes + 2 * payloadBytes(scalar);
  const buf = Buffer.allocUnsafe(bound);
  let at = 0;
  for (const scalar of scalars) at = encodeScalar(buf, at, scalar);
  return buf.subarray(0, at);
}

/** The scalars in `buf[start, end)`. Throws `RangeError` for bytes that cannot be a group. */
export function decodeScalars(buf: Uint8Array, start = 0, end = buf.length): Scalar[] {
  const scalars: Scalar[] = [];
  const cursor = { buf: asBuffer(buf), at: start, end };
  while (cursor.at < end) scalars.push(decodeScalar(cursor));
  return scalars;
}

/** Where the group that begins at `at` ends: the position of its closing 00, or `end` when it has none. */
export function endOfGroup(buf: Uint8Array, at: number, end: number): number {
  const cursor = { buf: asBuffer(buf), at, end };
  while (cursor.at < end && buf[cursor.at] !== 0) skipScalar(cursor);
  return cursor.at;
}

function payloadBytes(scalar: Scalar): number {
  if (typeof scalar === 'string') return Buffer.byteLength(scalar);
  return scalar instanceof Uint8Array ? scalar.length : 0;
}

function encodeScalar(buf: Buffer, at: number, scalar: Scalar): number {
  switch (typeof scalar) {
    case 'boolean':
      buf[at] = scalar ? tagTrue : tagFalse;
      return at + 1;
    case 'number':
      return encodeNumber(buf, at, scalar);
    case 'bigint':
      checkScalar(scalar);
      return encodeBigint(buf, at, scalar);
    case 'string':
      checkScalar(scalar);
      buf[at] = tagString;
      return encodeBytes(buf, at + 1, Buffer.from(scalar));
    case 'object':
      if (scalar === null) {
        buf[at] = tagNull;
        return at + 1;
      }
      buf[at] = tagBytes;
      return encodeBytes(buf, at + 1, scalar);
    default:
      throw new RowValueError(`a key cannot hold ${typeof scalar}`);
  }
}

function encodeBytes(buf: Buffer, at: number, bytes: Uint8Array): number {
  let to = at;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]!;
    buf[to++] = byte;
    if (byte === 0) buf[to++] = escapedZero;
  }
  buf[to] = 0;
  return to + 1;
}

function encodeNumber(buf: Buffer, at: number, value: number): number {
  writeOrderedDouble(buf, at, value);
  buf[at + 9] = restNumber;
  return at + 10;
}

function encodeBigint(buf: Buffer, at: number, value: bigint): number {
  let floor = Number(value);
  if (BigInt(floor) > value) floor = doubleBelow(floor);
  writeOrderedDouble(buf, at, floor);
  const distance = Number(value - BigInt(floor));
  if (distance === 0) {
    buf[at + 9] = restBigint;
    return at + 10;
  }
  buf[at + 9] = restDistance + (distance >> 8);
  buf[at + 10] = distance & 0xff;
  return at + 11;
}

const word = new DataView(new ArrayBuffer(8));

/** The next double towards -Infinity, of one beyond 2^53 either way. */
function doubleBelow(value: number): number {
  word.setFloat64(0, value);
  word.setBigInt64(0, word.getBigInt64(0) + (value > 0 ? -1n : 1n));
  return word.getFloat64(0);
}

function writeOrderedDouble(buf: Buffer, at: number, value: number): void {
  buf[at] = tagNumber;
  if (Number.isNaN(value)) {
    buf.fill(0, at + 1, at + 9);
    return;
  }
  buf.writeDoubleBE(value, at + 1);
  if (buf[at + 1]! < 0x80) buf[at + 1]! |= 0x80;
  else for (let i = at + 1; i < at + 9; i++) buf[i] = ~buf[i]!;
}

function readOrderedDouble(buf: Buffer, at: number): number {
  const negative = buf[at]! < 0x80;
  if (negative && buf.readUInt32BE(at) === 0 && buf.readUInt32BE(at + 4) === 0) return NaN;
  for (let i = 0; i < 8; i++) word.setUint8(i, negative ? ~buf[at + i]! : buf[at + i]!);
  if (!negative) word.setUint8(0, buf[at]! & 0x7f);
  return word.getFloat64(0);
}

interface Cursor {
  buf: Buffer;
  at: number;
  end: number;
}

function decodeScalar(cursor: Cursor): Scalar {
  const tag = cursor.buf[cursor.at];
  switch (tag) {
    case tagNull:
      cursor.at++;
      return null;
    case tagFalse:
    case tagTrue:
      cursor.at++;
      return tag === tagTrue;
    case tagNumber:
      return decodeNumber(cursor);
    case tagString:
      return decodeText(cursor);
    case tagBytes:
      return decodeBytes(cursor);
    default:
      throw new RangeError(`key: unknown tag ${tag} at ${cursor.at}`);
  }
}

function decodeNumber(cursor: Cursor): number | bigint {
  const { buf, at } = cursor;
  skipScalar(cursor);
  const floor = readOrderedDouble(buf, at + 1);
  const rest = buf[at + 9]!;
  if (rest === restNumber) return floor;
  if (!Number.isInteger(floor)) throw new RangeError(`key: not an integer at ${at}`);
  const distance = rest === restBigint ? 0 : ((rest - restDistance) << 8) | buf[at + 10]!;
  const value = BigInt(floor) + BigInt(distance);
  if (!fitsInt64(value)) throw new RangeError(`key: integer beyond 64 bits at ${at}`);
  return value;
}

function decodeText(cursor: Cursor): string {
  const { at } = cursor;
  const bytes = decodeBytes(cursor);
  if (!isUtf8(bytes)) throw new RangeError(`key: not UTF-8 at ${at}`);
  return bytes.toString();
}

function decodeBytes(cursor: Cursor): Buffer {
  const { buf } = cursor;
  const start = cursor.at + 1;
  skipScalar(cursor);
  const end = cursor.at - 1;
  const bytes = Buffer.allocUnsafe(end - start);
  let n = 0;
  for (let i = start; i < end; i++) {
    bytes[n++] = buf[i]!;
    if (buf[i] === 0) i++;
  }
  return bytes.subarray(0, n);
}

/** Moves past one scalar, wholly within the cursor's end, without making it. */
function skipScalar(cursor: Cursor): void {
  const { buf, end } = cursor;
  const tag = buf[cursor.at]!;
  let at = cursor.at + 1;
  if (tag === tagNumber) {
    at += 9;
    if (at <= end && buf[at - 1]! >= restDistance) at++;
  } else if (tag === tagString || tag === tagBytes) {
    while (at < end && (buf[at] !== 0 || (at + 1 < end && buf[at + 1] === escapedZero))) {
      at += buf[at] === 0 ? 2 : 1;
    }
    at++;
  } else if (tag < tagNull || tag > tagBytes) {
    throw new RangeError(`key: unknown tag ${tag} at ${cursor.at}`);
  }
  if (at > end) throw new RangeError('key: cut short');
  cursor.at = at;
}

function asBuffer(b: Uint8Array): Buffer {
  return b instanceof Buffer ? b : Buffer.from(b.buffer, b.byteOffset, b.byteLength);
}

/** The order that the encoding keeps, told on the scalars themselves. */
export function compareScalars(a: Scalar, b: Scalar): number {
  const kindA = orderOfKind(a);
  const kindB = orderOfKind(b);
  if (kindA !== kindB) return kindA - kindB;
  if (a === null || b === null) return 0;
  if (typeof a === 'boolean') return Number(a) - Number(b);
  if (typeof a === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b as string));
  if (a instanceof Uint8Array) return Buffer.compare(a, b as Uint8Array);
  return compareNumbers(a, b as number | bigint);
}

/** As `compareScalars`, of groups: the first difference decides, and a group's prefix precedes it. */
export function compareGroups(a: readonly Scalar[], b: readonly Scalar[]): number {
  const n = Math.min(a.length, b.length);
  for (let i = 0; i < n; i++) {
    const order = compareScalars(a[i]!, b[i]!);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

function orderOfKind(scalar: Scalar): number {
  if (scalar === null) return 0;
  switch (typeof scalar) {
    case 'boolean':
      return 1;
    case 'string':
      return 3;
    case 'object':
      return 4;
    default:
      return 2;
  }
}

function compareNumbers(a: number | bigint, b: number | bigint): number {
  if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(b)) - Number(Number.isNaN(a));
  if (a < b) return -1;
  if (a > b) return 1;
  return orderOfEqual(a) - orderOfEqual(b);
}

/** -0, then 0 and every other number, then the bigint of the same value. */
function orderOfEqual(value: number | bigint): number {
  if (typeof value === 'bigint') return 2;
  return Object.is(value, -0) ? 0 : 1;
}
