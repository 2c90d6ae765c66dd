// Small containers live in the value of their row's one block, one element after another:
//
//   count u8 | element*
//   map     length, field, length, value
//   set     length, member
//   ranked  score f64, length, member        ascending by (score, member)
//   array   length, element
//
// A length is one byte below 128, else two: 0x80 | high bits, low byte. Search is linear, which at
// this size costs less than an index would take. These functions know the bytes; byte-map.ts moves them.

import type { Slice } from '../../universal-row/bytes.ts';
import { compareBytes, copyBytes } from '../../universal-row/bytes.ts';
import type { ByteMap } from './byte-map.ts';

export const maxPackedElements = 128;
export const maxPackedBytes = 4096;

/** The value of an empty packed container. */
export const emptyPacked: Buffer = Buffer.from([0]);

const f64 = new Float64Array(1);
const f64Bytes = new Uint8Array(f64.buffer);

export function lengthBytes(length: number): number {
  return length < 0x80 ? 1 : 2;
}

export function readLength(b: Buffer, p: number): number {
  const first = b[p]!;
  return first < 0x80 ? first : ((first & 0x7f) << 8) | b[p + 1]!;
}

function writeLength(b: Buffer, p: number, length: number): number {
  if (length < 0x80) {
    b[p] = length;
    return p + 1;
  }
  b[p] = 0x80 | (length >>> 8);
  b[p + 1] = length;
  return p + 2;
}

/** Where the bytes behind the length at `p` end. */
export function skip(b: Buffer, p: number): number {
  const length = readLength(b, p);
  return p + lengthBytes(length) + length;
}

export function readScore(b: Buffer, p: number): number {
  for (let i = 0; i < 8; i++) f64Bytes[i] = b[p + i]!;
  return f64[0]!;
}

function writeScore(b: Buffer, p: number, score: number): void {
  f64[0] = score;
  for (let i = 0; i < 8; i++) b[p + i] = f64Bytes[i]!;
}

/**
 * Where the element of a located row begins whose field or member is `key`, or -1. `before` bytes
 * precede each field's length (a score), and `behind` is the number of length-prefixed parts after it.
 */
export function findPacked(
  m: ByteMap,
  before: number,
  behind: number,
  b: Buffer,
  s: number,
  n: number,
): number {
  const block = m.b;
  let p = m.valueAt + 1;
  for (let left = block[m.valueAt]!; left > 0; left--) {
    const at = p + before;
    const length = readLength(block, at);
    const start = at + lengthBytes(length);
    if (length === n) {
      let i = 0;
      while (i < n && block[start + i] === b[s + i]) i++;
      if (i === n) return p;
    }
    p = start + length;
    if (behind !== 0) p = skip(block, p);
  }
  return -1;
}

/** Where the `index`th element of a located row begins; its parts are `parts` lengths behind `before` bytes. */
export function seekPacked(m: ByteMap, before: number, parts: number, index: number): number {
  const block = m.b;
  let p = m.valueAt + 1;
  for (let i = 0; i < index; i++) {
    p = skip(block, p + before);
    if (parts === 2) p = skip(block, p);
  }
  return p;
}

// The edits. Bytes given may lie in the arena, and the edit may move them: they are set aside first.

let aside: Buffer = Buffer.allocUnsafeSlow(maxPackedBytes);

function setAside(b: Buffer, s: number, n: number): Buffer {
  if (n > aside.length) aside = Buffer.allocUnsafeSlow(n * 2);
  b.copy(aside, 0, s, s + n);
  return aside;
}

const asideToo: Buffer = Buffer.allocUnsafeSlow(maxPackedBytes);

/** Inserts a field with its value at `p`, a place in the located row. */
export function insertPackedPair(
  m: ByteMap,
  row: number,
  p: number,
  fb: Buffer,
  fs: number,
  fn: number,
  vb: Buffer,
  vs: number,
  vn: number,
): void {
  let field = fb;
  let value = vb;
  if (fb === m.b) {
    field = setAside(fb, fs, fn);
    fs = 0;
  }
  if (vb === m.b) {
    vb.copy(asideToo, 0, vs, vs + vn);
    value = asideToo;
    vs = 0;
  }
  const at = p - m.valueAt;
  m.splice(row, at, 0, lengthBytes(fn) + fn + lengthBytes(vn) + vn);
  m.b[m.valueAt]!++;
  let to = writeLength(m.b, m.valueAt + at, fn);
  copyBytes(m.b, to, field, fs, fn);
  to = writeLength(m.b, to + fn, vn);
  copyBytes(m.b, to, value, vs, vn);
}

/** Inserts a member or element at `p`, a place in the located row. */
export function insertPacked(
  m: ByteMap,
  row: number,
  p: number,
  b: Buffer,
  s: number,
  n: number,
): void {
  let from = b;
  if (b === m.b) {
    from = setAside(b, s, n);
    s = 0;
  }
  const at = p - m.valueAt;
  m.splice(row, at, 0, lengthBytes(n) + n);
  m.b[m.valueAt]!++;
  copyBytes(m.b, writeLength(m.b, m.valueAt + at, n), from, s, n);
}

/** Replaces the length-prefixed part at `p` in the located row. */
export function replacePacked(
  m: ByteMap,
  row: number,
  p: number,
  b: Buffer,
  s: number,
  n: number,
): void {
  let from = b;
  if (b === m.b) {
    from = setAside(b, s, n);
    s = 0;
  }
  const at = p - m.valueAt;
  m.splice(row, at, skip(m.b, p) - p, lengthBytes(n) + n);
  copyBytes(m.b, writeLength(m.b, m.valueAt + at, n), from, s, n);
}

/** Takes out the bytes [p, end) of the located row, which are `elements` elements. */
export function removePacked(
  m: ByteMap,
  row: number,
  p: number,
  end: number,
  elements: number,
): void {
  m.splice(row, p - m.valueAt, end - p, 0);
  m.b[m.valueAt]! -= elements;
}

/** Inserts a member where its score puts it. */
export function insertPackedRanked(
  m: ByteMap,
  row: number,
  b: Buffer,
  s: number,
  n: number,
  score: number,
): void {
  let from = b;
  if (b === m.b) {
    from = setAside(b, s, n);
    s = 0;
  }
  const block = m.b;
  let p = m.valueAt + 1;
  for (let left = block[m.valueAt]!; left > 0; left--) {
    if (comparePackedRanked(block, p, score, from, s, n) > 0) break;
    p = skip(block, p + 8);
  }
  const at = p - m.valueAt;
  m.splice(row, at, 0, 8 + lengthBytes(n) + n);
  m.b[m.valueAt]!++;
  writeScore(m.b, m.valueAt + at, score);
  copyBytes(m.b, writeLength(m.b, m.valueAt + at + 8, n), from, s, n);
}

/** Gives the ranked element at `p` of the located row another score, and the place it then has. */
export function movePackedRanked(m: ByteMap, row: number, p: number, score: number): void {
  if (m.watch !== undefined) m.watch.beforeChange(row);
  const block = m.b;
  const end = skip(block, p + 8);
  const size = end - p;
  const length = readLength(block, p + 8);
  const member = end - length;
  let to = m.valueAt + 1;
  for (let left = block[m.valueAt]!; left > 0; left--) {
    if (to !== p && comparePackedRanked(block, to, score, block, member, length) > 0) break;
    to = skip(block, to + 8);
  }
  if (to !== p && to !== end) {
    block.copy(aside, 0, p, end);
    if (to > p) {
      block.copyWithin(p, end, to);
      to -= size;
    } else {
      block.copyWithin(to + size, to, p);
    }
    copyBytes(block, to, aside, 0, size);
  } else {
    to = p;
  }
  writeScore(block, to, score);
}

/** Compares the ranked element at `p` with (score, member). */
function comparePackedRanked(
  block: Buffer,
  p: number,
  score: number,
  b: Buffer,
  s: number,
  n: number,
): number {
  const other = readScore(block, p);
  if (other !== score) return other < score ? -1 : 1;
  const length = readLength(block, p + 8);
  return compareBytes(block, p + 8 + lengthBytes(length), length, b, s, n);
}

/** How many members of a located ranked row lie below the score, or with `orAt` at or below it. */
export function packedRankOfScore(m: ByteMap, score: number, orAt: boolean): number {
  const block = m.b;
  const count = block[m.valueAt]!;
  let p = m.valueAt + 1;
  for (let rank = 0; rank < count; rank++) {
    const other = readScore(block, p);
    if (orAt ? other > score : other >= score) return rank;
    p = skip(block, p + 8);
  }
  return count;
}

/** As `packedRankOfScore`, by member. */
export function packedRankOfBytes(m: ByteMap, bytes: Uint8Array, orAt: boolean): number {
  const block = m.b;
  const count = block[m.valueAt]!;
  let p = m.valueAt + 1;
  for (let rank = 0; rank < count; rank++) {
    const length = readLength(block, p + 8);
    const d = compareBytes(block, p + 8 + lengthBytes(length), length, bytes, 0, bytes.length);
    if (orAt ? d > 0 : d >= 0) return rank;
    p = skip(block, p + 8);
  }
  return count;
}

/** Where the first `count` elements of a packed array or ranked row begin. */
export function packedPlaces(
  b: Buffer,
  valueAt: number,
  count: number,
  before: number,
): Int32Array {
  // A walk's own: a visitor may start another.
  const places = new Int32Array(count);
  for (let i = 0, p = valueAt + 1; i < count; i++) {
    places[i] = p;
    p = skip(b, p + before);
  }
  return places;
}

/** Shows the element that begins at `p`. */
export function setPart(out: Slice, b: Buffer, p: number): void {
  const length = readLength(b, p);
  out.set(b, p + lengthBytes(length), length);
}
