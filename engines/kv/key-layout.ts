// Encoding of rows as LevelDB keys. Numbers are big-endian, so that bytes sort as numbers do.
//
//   'a'                                    state: applied index, next row number, next generation, then group u32 and
//                                          index f64 of each group but `localGroup`
//   'T' | table u16, or u32 from 2^16 on   table: its generation, whether ordered, rows, expiring rows, bytes
//   'g' | generation u32                   a generation to be purged
//   't' | row number u48                   a row whose sub-records are to be purged
//   'm' | generation u32 | hash u48 | key  meta: shape, expiry, count ...; a value row's bytes too
//   'x' | generation u32 | expiry f64 | key     an expiring row; empty
//   's' | row number u48 | part            sub-record:
//          'f' | hash u32 | field             of a map or set: its value
//          'z' | hash u32 | member            of a ranked row: its score
//          'o' | score f64 | member           the same in order; empty
//          'e' | position u56                 of an array: its bytes
//          'r' | key                          of a stream: a record's value
//
// A table's rows lie under its generation, so that clearing or swapping tables touches no row. A row's
// sub-records lie under its number, which is never used again: dropping, renaming and expiring a row
// write its meta record only.
//
// What follows the fixed prefix is handled as a latin1 string: one character a byte, so `<` on strings
// is the order of LevelDB. `lastKey` sorts after every such key.

import { hashBytes } from '../../universal-row/bytes.ts';

export const formatVersion = 1;
/** The state continues with the applied indexes of other groups than `localGroup` (applied-indexes.ts). */
export const manyGroupsVersion = 2;
/** Size of one group's state. */
export const stateBytes = 19;

export const lastKey = '\u0100';

export const Part = { field: 'f', member: 'z', order: 'o', element: 'e', record: 'r' } as const;
/** The first key behind all of a part. */
export const partEnd = { f: 'g', z: '{', o: 'p', e: 'f', r: 's' } as const;

const rowNumberBytes = 6;

export const stateKey: Buffer = Buffer.from('a');

const wideTables = 0x10000;

export function tableKey(table: number): Buffer {
  const key = Buffer.alloc(table < wideTables ? 3 : 5, 'T');
  if (table < wideTables) key.writeUInt16BE(table, 1);
  else key.writeUInt32BE(table, 1);
  return key;
}

export function tableOfKey(key: Buffer): number {
  return key.length === 3 ? key.readUInt16BE(1) : key.readUInt32BE(1);
}

function generationPrefix(code: string, generation: number): Buffer {
  const key = Buffer.alloc(5, code);
  key.writeUInt32BE(generation, 1);
  return key;
}

function rowPrefix(code: string, row: number): Buffer {
  const key = Buffer.alloc(1 + rowNumberBytes, code);
  key.writeUIntBE(row, 1, rowNumberBytes);
  return key;
}

export const metaPrefix = (generation: number): Buffer => generationPrefix('m', generation);
export const expiryPrefix = (generation: number): Buffer => generationPrefix('x', generation);
export const purgeKey = (generation: number): Buffer => generationPrefix('g', generation);
export const subPrefix = (row: number): Buffer => rowPrefix('s', row);
export const trashKey = (row: number): Buffer => rowPrefix('t', row);

/** The first key behind all that begin with the prefix. */
export function prefixEnd(prefix: Buffer): Buffer {
  const end = Buffer.from(prefix);
  for (let i = end.length - 1; i >= 0; i--) {
    end[i] = (end[i]! + 1) & 255;
    if (end[i] !== 0) return end.subarray(0, i + 1);
  }
  throw new RangeError('a prefix of 255s has no end');
}

let scratch: Buffer = Buffer.allocUnsafeSlow(1024);

function reserve(n: number): void {
  if (scratch.length < n) scratch = Buffer.allocUnsafeSlow(n * 2);
}

export const hashKeyBytes = 6;

function secondHash(b: Uint8Array, s: number, n: number): number {
  let h = 0x9e3779b9 ^ n;
  for (let i = s; i < s + n; i++) h = Math.imul(h ^ b[i]!, 0x85ebca6b) ^ (h >>> 13);
  return (h ^ (h >>> 16)) & 0xffff;
}

/** Hash of a row key, below 2^48. Stored on disk, so it must not change between releases. */
export function rowHash(b: Uint8Array, s: number, n: number): number {
  return hashBytes(b, s, n) * 65536 + secondHash(b, s, n);
}

/** hash u48 | row key; the hash is 0 in ordered tables. */
export function metaKey(ordered: boolean, b: Buffer, s: number, n: number): string {
  reserve(n + hashKeyBytes);
  if (ordered) {
    scratch.fill(0, 0, hashKeyBytes);
  } else {
    const high = hashBytes(b, s, n);
    const low = secondHash(b, s, n);
    scratch[0] = high >>> 24;
    scratch[1] = high >>> 16;
    scratch[2] = high >>> 8;
    scratch[3] = high;
    scratch[4] = low >>> 8;
    scratch[5] = low;
  }
  copy(hashKeyBytes, b, s, n);
  return scratch.toString('latin1', 0, hashKeyBytes + n);
}

/** The first meta key of a hash. */
export function hashKey(hash: number): string {
  reserve(hashKeyBytes);
  scratch.writeUIntBE(hash, 0, hashKeyBytes);
  return scratch.toString('latin1', 0, hashKeyBytes);
}

/** The hash within a meta key. */
export function hashOfMetaKey(key: string): number {
  let hash = 0;
  for (let i = 0; i < hashKeyBytes; i++) hash = hash * 256 + key.charCodeAt(i);
  return hash;
}

export const fieldHeaderBytes = 5;

/** part | hash u32 | field. */
export function fieldKey(part: 'f' | 'z', b: Buffer, s: number, n: number): string {
  reserve(n + fieldHeaderBytes);
  const hash = hashBytes(b, s, n);
  scratch[0] = part.charCodeAt(0);
  scratch[1] = hash >>> 24;
  scratch[2] = hash >>> 16;
  scratch[3] = hash >>> 8;
  scratch[4] = hash;
  copy(fieldHeaderBytes, b, s, n);
  return scratch.toString('latin1', 0, fieldHeaderBytes + n);
}

/** The first field key of a hash. */
export function fieldHashKey(part: 'f' | 'z', hash: number): string {
  return (
    part + String.fromCharCode(hash >>> 24, (hash >>> 16) & 255, (hash >>> 8) & 255, hash & 255)
  );
}

export function hashOfFieldKey(key: string): number {
  return (
    key.charCodeAt(1) * 0x1000000 +
    ((key.charCodeAt(2) << 16) | (key.charCodeAt(3) << 8) | key.charCodeAt(4))
  );
}

export const orderHeaderBytes = 9;

const f64 = new DataView(new ArrayBuffer(8));

// Doubles sort as unsigned integers once negative ones are inverted and the others get the sign bit.
function sortableHigh(value: number): number {
  f64.setFloat64(0, value === 0 ? 0 : value);
  const high = f64.getUint32(0);
  return high >= 0x80000000 ? ~high >>> 0 : (high | 0x80000000) >>> 0;
}

function sortableLow(): number {
  const low = f64.getUint32(4);
  return f64.getUint32(0) >= 0x80000000 ? ~low >>> 0 : low;
}

function putSortable(at: number, value: number): void {
  scratch.writeUInt32BE(sortableHigh(value), at);
  scratch.writeUInt32BE(sortableLow(), at + 4);
}

/** 'o' | score | member. */
export function orderKey(score: number, b: Buffer, s: number, n: number): string {
  reserve(n + orderHeaderBytes);
  scratch[0] = 111;
  putSortable(1, score);
  copy(orderHeaderBytes, b, s, n);
  return scratch.toString('latin1', 0, orderHeaderBytes + n);
}

/** The first order key of a score, or with `after` the first behind all of them. */
export function orderScoreKey(score: number, after: boolean): string {
  reserve(orderHeaderBytes);
  scratch[0] = 111;
  putSortable(1, score);
  if (after) {
    // No double is all ones in this form, so the carry ends before it leaves the eight bytes.
    let i = 8;
    while ((scratch[i] = (scratch[i]! + 1) & 255) === 0) i--;
  }
  return scratch.toString('latin1', 0, orderHeaderBytes);
}

function readSortable(key: string, at: number): number {
  let high = 0;
  let low = 0;
  for (let i = 0; i < 4; i++) {
    high = high * 256 + key.charCodeAt(at + i);
    low = low * 256 + key.charCodeAt(at + 4 + i);
  }
  const negative = high < 0x80000000;
  f64.setUint32(0, negative ? ~high >>> 0 : high & 0x7fffffff);
  f64.setUint32(4, negative ? ~low >>> 0 : low);
  return f64.getFloat64(0);
}

export const scoreOfOrderKey = (key: string): number => readSortable(key, 1);

/** expiry | row key. */
export function expiryKey(expireAt: number, rowKey: string): string {
  reserve(8);
  putSortable(0, expireAt);
  return scratch.toString('latin1', 0, 8) + rowKey;
}

export const expiryHeaderBytes = 8;
export const timeOfExpiryKey = (key: string): number => readSortable(key, 0);

export const recordHeaderBytes = 1;

/** 'r' | key. */
export function recordKey(b: Uint8Array, s: number, n: number): string {
  reserve(n + recordHeaderBytes);
  scratch[0] = 114;
  copy(recordHeaderBytes, b, s, n);
  return scratch.toString('latin1', 0, recordHeaderBytes + n);
}

const positionBias = 2 ** 52;

/** 'e' | position, which may be negative. */
export function elementKey(position: number): string {
  reserve(8);
  const biased = position + positionBias;
  scratch[0] = 101;
  scratch.writeUIntBE(Math.floor(biased / 2 ** 32), 1, 3);
  scratch.writeUInt32BE(biased % 2 ** 32, 4);
  return scratch.toString('latin1', 0, 8);
}

function copy(at: number, b: Uint8Array, s: number, n: number): void {
  if (n <= 32) for (let i = 0; i < n; i++) scratch[at + i] = b[s + i]!;
  else scratch.set(b.subarray(s, s + n), at);
}
