// Hash for in-memory tables with keys chosen by clients. It depends on random numbers of the
// process, so a client cannot choose keys that collide. It must not be stored or sent. A random
// basis alone would not suffice: with FNV, whether two keys collide depends on eight bits of it,
// and keys such as the Thue-Morse sequence collide under any polynomial hash, whatever its
// multiplier.

import { randomBytes } from 'node:crypto';

const drawn = randomBytes(16);
const seed = drawn.readInt32LE(0);
const first = drawn.readInt32LE(4) | 1;
const second = drawn.readInt32LE(8) | 1;
const third = drawn.readInt32LE(12) | 1;

/** Hash of `b[start, end)`, 32 bits unsigned; low and high bits are equally good. */
export function keyedHash(b: Uint8Array, start: number, end: number): number {
  let h = seed ^ (end - start);
  let i = start;
  for (const last = end - 4; i <= last; i += 4) {
    const word = b[i]! | (b[i + 1]! << 8) | (b[i + 2]! << 16) | (b[i + 3]! << 24);
    h = Math.imul(h ^ word, first);
    h = Math.imul(h ^ (h >>> 16), second);
  }
  for (; i < end; i++) {
    h = Math.imul(h ^ b[i]!, first);
    h ^= h >>> 15;
  }
  h = Math.imul(h ^ (h >>> 15), third);
  return (h ^ (h >>> 13)) >>> 0;
}
