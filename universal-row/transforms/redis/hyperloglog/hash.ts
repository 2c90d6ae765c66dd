// Register of an element, and the value for it: MurmurHash64A (Austin Appleby's MurmurHash2 for 64
// bits, public domain) with Redis's seed, on halves of 32 bits.

/** Registers of a HyperLogLog: the low 14 bits of the hash are the number of one. */
export const registerCount = 16384;

const seed = 0xadc83b19;
const factorHigh = 0xc6a4a793 | 0;
const factorLow = 0x5bd1e995;

/** Result of `hashElement`. */
export const hashed = {
  /** Register, 0 to 16383. */
  index: 0,
  /** Zeros at the end of the other 50 bits, and 1: 1 to 51. */
  count: 0,
};

// The two halves of the product that was made last.
let high = 0;
let low = 0;

/** Upper 32 bits of a product of two unsigned 32-bit numbers. No sum in here exceeds 32 bits. */
function upperProduct(a: number, b: number): number {
  const aLow = a & 0xffff;
  const aHigh = a >>> 16;
  const bLow = b & 0xffff;
  const bHigh = b >>> 16;
  const middle = (Math.imul(aHigh, bLow) + (Math.imul(aLow, bLow) >>> 16)) | 0;
  const cross = (Math.imul(aLow, bHigh) + (middle & 0xffff)) | 0;
  return (Math.imul(aHigh, bHigh) + (middle >>> 16) + (cross >>> 16)) | 0;
}

function multiply(h: number, l: number): void {
  high = (upperProduct(l, factorLow) + Math.imul(l, factorHigh) + Math.imul(h, factorLow)) | 0;
  low = Math.imul(l, factorLow);
}

/** Sets `hashed` from `n` bytes at `s`. */
export function hashElement(b: Buffer, s: number, n: number): void {
  multiply(0, n);
  let h = high;
  let l = low ^ seed;
  const whole = s + (n & ~7);
  let i = s;
  for (; i < whole; i += 8) {
    const blockLow = b[i]! | (b[i + 1]! << 8) | (b[i + 2]! << 16) | (b[i + 3]! << 24);
    const blockHigh = b[i + 4]! | (b[i + 5]! << 8) | (b[i + 6]! << 16) | (b[i + 7]! << 24);
    multiply(blockHigh, blockLow);
    multiply(high, low ^ (high >>> 15));
    multiply(h ^ high, l ^ low);
    h = high;
    l = low;
  }
  const rest = n & 7;
  if (rest > 0) {
    for (let k = rest - 1; k >= 0; k--) {
      if (k >= 4) h ^= b[i + k]! << (8 * (k - 4));
      else l ^= b[i + k]! << (8 * k);
    }
    multiply(h, l);
    h = high;
    l = low;
  }
  multiply(h, l ^ (h >>> 15));
  l = low ^ (high >>> 15);
  h = high;
  hashed.index = l & (registerCount - 1);
  const middle = (l >>> 14) | (h << 18);
  // The run ends at the 51st bit at the latest.
  const top = (h >>> 14) | (1 << 18);
  hashed.count = middle !== 0 ? lowestBit(middle) + 1 : lowestBit(top) + 33;
}

function lowestBit(word: number): number {
  return 31 - Math.clz32(word & -word);
}
