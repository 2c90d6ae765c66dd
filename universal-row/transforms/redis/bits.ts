// Bits of byte strings, 32 of them at a time. Bit 0 is the most significant bit of the first byte.

/** Below this a view of words costs more than it saves. */
const bytesWorthWords = 64;

const bitsOfByte = new Uint8Array(256);
for (let i = 1; i < 256; i++) bitsOfByte[i] = (i & 1) + bitsOfByte[i >> 1]!;

/** How many bits are set in `n` bytes from `s`; n < 2^28. */
export function countBits(b: Buffer, s: number, n: number): number {
  if (n < bytesWorthWords) return countByBytes(b, s, s + n);
  const head = -(b.byteOffset + s) & 3;
  const words = (n - head) >>> 2;
  const tail = s + head + words * 4;
  return (
    countByBytes(b, s, s + head) +
    countInWords(new Int32Array(b.buffer, b.byteOffset + s + head, words)) +
    countByBytes(b, tail, s + n)
  );
}

function countByBytes(b: Buffer, from: number, to: number): number {
  let sum = 0;
  for (let i = from; i < to; i++) sum += bitsOfByte[b[i]!]!;
  return sum;
}

/**
 * Harley and Seal's method: carry-save adders sum up 8 words bit by bit, so that the slow count of a word's
 * bits is done for one word in 8 (Warren, Hacker's Delight, 2nd edition, 5-2).
 */
function countInWords(w: Int32Array): number {
  let ones = 0;
  let twos = 0;
  let fours = 0;
  let eights = 0;
  const whole = w.length & ~7;
  for (let i = 0; i < whole; i += 8) {
    let a = w[i]!;
    let c = w[i + 1]!;
    let u = ones ^ a;
    const twosA = (ones & a) | (u & c);
    ones = u ^ c;
    a = w[i + 2]!;
    c = w[i + 3]!;
    u = ones ^ a;
    const twosB = (ones & a) | (u & c);
    ones = u ^ c;
    u = twos ^ twosA;
    const foursA = (twos & twosA) | (u & twosB);
    twos = u ^ twosB;
    a = w[i + 4]!;
    c = w[i + 5]!;
    u = ones ^ a;
    const twosC = (ones & a) | (u & c);
    ones = u ^ c;
    a = w[i + 6]!;
    c = w[i + 7]!;
    u = ones ^ a;
    const twosD = (ones & a) | (u & c);
    ones = u ^ c;
    u = twos ^ twosC;
    const foursB = (twos & twosC) | (u & twosD);
    twos = u ^ twosD;
    u = fours ^ foursA;
    eights += bitsOfWord((fours & foursA) | (u & foursB));
    fours = u ^ foursB;
  }
  let sum = 8 * eights + 4 * bitsOfWord(fours) + 2 * bitsOfWord(twos) + bitsOfWord(ones);
  for (let i = whole; i < w.length; i++) sum += bitsOfWord(w[i]!);
  return sum;
}

function bitsOfWord(word: number): number {
  let v = word - ((word >>> 1) & 0x55555555);
  v = (v & 0x33333333) + ((v >>> 2) & 0x33333333);
  return Math.imul((v + (v >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
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
