// How many different elements were added, from how many registers hold each count: Otmar Ertl, "New
// cardinality estimation algorithms for HyperLogLog sketches", arXiv:1702.01284, algorithm 6.

import { registerCount } from './hash.ts';
import { encodingOf, Encoding, eachRun, headerBytes } from './sketch.ts';

/** Bits of the hash behind the register's number. */
const q = 50;
/** 1 / (2 ln 2). */
const alpha = 0.7213475204444817;
const int64Max = 2 ** 63;

/** Estimate for the bytes of a HyperLogLog; `undefined` when they are damaged. */
export function estimateOf(b: Buffer, s: number, n: number): bigint | undefined {
  const histogram = new Uint32Array(64);
  if (encodingOf(b, s) === Encoding.dense) {
    const end = s + n;
    for (let p = s + headerBytes; p < end; p += 3) {
      const word = b[p]! | (b[p + 1]! << 8) | (b[p + 2]! << 16);
      histogram[word & 63]!++;
      histogram[(word >> 6) & 63]!++;
      histogram[(word >> 12) & 63]!++;
      histogram[word >> 18]!++;
    }
    return estimate(histogram);
  }
  const isWhole = eachRun(b, s, n, (_, length, count) => {
    histogram[count]! += length;
  });
  return isWhole ? estimate(histogram) : undefined;
}

/** Estimate for registers, a byte each. */
export function estimateOfRegisters(registers: Uint8Array): bigint {
  const histogram = new Uint32Array(64);
  for (let i = 0; i < registerCount; i++) histogram[registers[i]!]!++;
  return estimate(histogram);
}

function estimate(histogram: Uint32Array): bigint {
  const m = registerCount;
  let z = m * tau((m - histogram[q + 1]!) / m);
  for (let count = q; count >= 1; count--) {
    z += histogram[count]!;
    z *= 0.5;
  }
  z += m * sigma(histogram[0]! / m);
  const elements = Math.round((alpha * m * m) / z);
  // Registers that no elements could have made: Redis's conversion to an integer overflows.
  return elements < int64Max ? BigInt(elements) : -(2n ** 63n);
}

function sigma(share: number): number {
  if (share === 1) return Infinity;
  let x = share;
  let y = 1;
  let z = x;
  for (let before = NaN; before !== z; ) {
    x *= x;
    before = z;
    z += x * y;
    y += y;
  }
  return z;
}

function tau(share: number): number {
  if (share === 0 || share === 1) return 0;
  let x = share;
  let y = 1;
  let z = 1 - x;
  for (let before = NaN; before !== z; ) {
    x = Math.sqrt(x);
    before = z;
    y *= 0.5;
    z -= (1 - x) ** 2 * y;
  }
  return z / 3;
}
