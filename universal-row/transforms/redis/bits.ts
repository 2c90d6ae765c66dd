// Bits of byte strings, 32 of them at a time. Bit 0 is the most significant bit of the first byte.

import { countedUnit, populationCount } from './population-count.ts';

/** Below this a view of words, or a call of the counter, costs more than it saves. */
const bytesWorthWords = 64;

const bitsOfByte = new Uint8Array(256);
for (let i = 1; i < 256; i++) bitsOfByte[i] = (i & 1) + bitsOfByte[i >> 1]!;

/** How many bits are set in `n` bytes from `s`; n < 2^28. */
export function countBits(b: Buffer, s: number, n: number): number {
  if (n < bytesWorthWords) return countByBytes(b, s, s + n);
  const whole = n - (n % countedUnit);
  return populationCount(b, s, whole) + countByBytes(b, s + whole, s + n);
}

function countByBytes(b: Buffer, from: number, to: number): number {
  let sum = 0;
  for (let i = from; i < to; i++) sum += bitsOfByte[b[i]!]!;
  return sum;
}

/** Where the first of `n` bytes from `s` is that is not `skip` (0 or 255): n if there is none. */
export function firstOtherByte(b: Buffer, s: number, n: number, skip: number): number {
  const end = s + n;
  let i = s;
  if (n >= bytesWorthWords) {
    const head = -(b.byteOffset + s) & 3;
    while (i < s + head && b[i] === skip) i++;
    if (i < s + head) return i - s;
    const words = new Int32Array(b.buffer, b.byteOffset + i, (end - i) >>> 2);
    const word = skip === 0 ? 0 : -1;
    let k = 0;
    while (k < words.length && words[k] === word) k++;
    i += 4 * k;
  }
  while (i < end && b[i] === skip) i++;
  return i - s;
}

/** The first bit of a byte that is `bit`, 0 to 7; 8 if there is none. */
export function firstBitOf(byte: number, bit: number): number {
  const seek = bit === 1 ? byte : byte ^ 255;
  return Math.clz32(seek) - 24;
}

export const BitOperation = { and: 0, or: 1, xor: 2, not: 3 } as const;
export type BitOperation = (typeof BitOperation)[keyof typeof BitOperation];

/** `to = to op from`, word by word over all of `to`; `not` has no `from`. */
export function combineWords(op: BitOperation, to: Int32Array, from: Int32Array): void {
  const n = to.length;
  if (op === BitOperation.and) for (let i = 0; i < n; i++) to[i]! &= from[i]!;
  else if (op === BitOperation.or) for (let i = 0; i < n; i++) to[i]! |= from[i]!;
  else if (op === BitOperation.xor) for (let i = 0; i < n; i++) to[i]! ^= from[i]!;
  else for (let i = 0; i < n; i++) to[i] = ~to[i]!;
}
