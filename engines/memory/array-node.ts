// The bytes of an array's nodes:
//
//   element   length | bytes | length, so that a node is read from both ends
//   length    one byte below 128, else four bytes, the outer one with bit 7 set and the highest bits

import { copyBytes } from '../../universal-row/bytes.ts';
import type { BytesVisitor } from '../../universal-row/rows.ts';

export function lengthBytes(length: number): number {
  return length < 0x80 ? 1 : 4;
}

export function elementBytes(length: number): number {
  return length < 0x80 ? length + 2 : length + 8;
}

export function readLength(b: Buffer, p: number): number {
  const first = b[p]!;
  if (first < 0x80) return first;
  return ((first & 0x7f) << 24) | (b[p + 1]! << 16) | (b[p + 2]! << 8) | b[p + 3]!;
}

/** The length of the element that ends at `p`. */
export function readLengthBefore(b: Buffer, p: number): number {
  const last = b[p - 1]!;
  if (last < 0x80) return last;
  return ((last & 0x7f) << 24) | (b[p - 2]! << 16) | (b[p - 3]! << 8) | b[p - 4]!;
}

export function writeElement(to: Buffer, p: number, b: Buffer, s: number, n: number): void {
  if (n < 0x80) {
    to[p] = n;
    copyBytes(to, p + 1, b, s, n);
    to[p + 1 + n] = n;
    return;
  }
  to[p] = 0x80 | (n >>> 24);
  to[p + 1] = n >>> 16;
  to[p + 2] = n >>> 8;
  to[p + 3] = n;
  copyBytes(to, p + 4, b, s, n);
  const end = p + n + 8;
  to[end - 1] = 0x80 | (n >>> 24);
  to[end - 2] = n >>> 16;
  to[end - 3] = n >>> 8;
  to[end - 4] = n;
}

/** Calls back for each element in the bytes [start, end) of a node. */
export function eachInNode(b: Buffer, start: number, end: number, visit: BytesVisitor): void {
  for (let p = start; p < end; ) {
    const length = readLength(b, p);
    visit(b, p + lengthBytes(length), length);
    p += elementBytes(length);
  }
}
