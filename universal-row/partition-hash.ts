// The hash that decides a row's partition: MurmurHash3 x86-128 (32-bit multiplications only, which
// JavaScript does well) of the partition group's ordered encoding, its first 64 bits. Where data lies
// depends on it, so neither the function nor the seed nor the encoding may ever change.

import { encodeScalars } from './key-order.ts';
import type { Scalar } from './scalar.ts';

const seed = 0x706f6c79;

/** Unsigned 64 bits. */
export function partitionHash(partition: readonly Scalar[]): bigint {
  const bytes = encodeScalars(partition);
  const [h1, h2] = murmur128(bytes, seed);
  return (BigInt(h1) << 32n) | BigInt(h2);
}

const c1 = 0x239b961b;
const c2 = 0xab0e9789;
const c3 = 0x38b34ae5;
const c4 = 0xa1e38b93;

/** MurmurHash3_x86_128 as four unsigned words. */
export function murmur128(b: Uint8Array, seed32: number): [number, number, number, number] {
  const n = b.length;
  const view = new DataView(b.buffer, b.byteOffset, n);
  let h1 = seed32 | 0;
  let h2 = h1;
  let h3 = h1;
  let h4 = h1;
  const blocksEnd = n & ~15;
  for (let i = 0; i < blocksEnd; i += 16) {
    h1 ^= scramble(view.getInt32(i, true), c1, 15, c2);
    h1 = (Math.imul((rotate(h1, 19) + h2) | 0, 5) + 0x561ccd1b) | 0;
    h2 ^= scramble(view.getInt32(i + 4, true), c2, 16, c3);
    h2 = (Math.imul((rotate(h2, 17) + h3) | 0, 5) + 0x0bcaa747) | 0;
    h3 ^= scramble(view.getInt32(i + 8, true), c3, 17, c4);
    h3 = (Math.imul((rotate(h3, 15) + h4) | 0, 5) + 0x96cd1c35) | 0;
    h4 ^= scramble(view.getInt32(i + 12, true), c4, 18, c1);
    h4 = (Math.imul((rotate(h4, 13) + h1) | 0, 5) + 0x32ac3b17) | 0;
  }
  // The last up to 15 bytes, as a block padded with zeros: a zero word scrambles to zero.
  h1 ^= scramble(tailWord(b, blocksEnd), c1, 15, c2);
  h2 ^= scramble(tailWord(b, blocksEnd + 4), c2, 16, c3);
  h3 ^= scramble(tailWord(b, blocksEnd + 8), c3, 17, c4);
  h4 ^= scramble(tailWord(b, blocksEnd + 12), c4, 18, c1);

  h1 ^= n;
  h2 ^= n;
  h3 ^= n;
  h4 ^= n;
  h1 = (h1 + h2 + h3 + h4) | 0;
  h2 = (h2 + h1) | 0;
  h3 = (h3 + h1) | 0;
  h4 = (h4 + h1) | 0;
  h1 = finish(h1);
  h2 = finish(h2);
  h3 = finish(h3);
  h4 = finish(h4);
  h1 = (h1 + h2 + h3 + h4) | 0;
  return [h1 >>> 0, (h2 + h1) >>> 0, (h3 + h1) >>> 0, (h4 + h1) >>> 0];
}

function tailWord(b: Uint8Array, at: number): number {
  let word = 0;
  for (let i = Math.min(at + 4, b.length) - 1; i >= at; i--) word = (word << 8) | b[i]!;
  return word;
}

function scramble(word: number, first: number, turn: number, second: number): number {
  return Math.imul(rotate(Math.imul(word, first), turn), second);
}

function rotate(x: number, by: number): number {
  return (x << by) | (x >>> (32 - by));
}

function finish(x: number): number {
  let h = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}
