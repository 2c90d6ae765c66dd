// CRC-32 (reflected polynomial 0xedb88320, as in zlib). Node's native one checks some 5 GB/s, but a call
// into native code costs as much as a short range takes in plain JS, eight bytes a step.

import { crc32 as native } from 'node:zlib';

const polynomial = 0xedb88320;
// Measured on Node 20: from here on the native one is the faster.
const nativeFromBytes = 384;

/** Table k holds a byte's contribution when k more bytes of the same step follow it. */
const tables = Array.from({ length: 8 }, () => new Int32Array(256));
for (let n = 0; n < 256; n++) {
  let c = n;
  for (let bit = 0; bit < 8; bit++) c = c & 1 ? (c >>> 1) ^ polynomial : c >>> 1;
  tables[0]![n] = c;
}
for (let k = 1; k < 8; k++) {
  for (let n = 0; n < 256; n++) {
    const c = tables[k - 1]![n]!;
    tables[k]![n] = (c >>> 8) ^ tables[0]![c & 0xff]!;
  }
}
const [t0, t1, t2, t3, t4, t5, t6, t7] = tables as [
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
];

/**
 * The checksum of `b[start, end)`, unsigned. With seed 0 it is the plain CRC-32; with the checksum of
 * earlier bytes it continues from them; with any other number it tells apart equal bytes of two places.
 */
export function crc32(seed: number, b: Uint8Array, start: number, end: number): number {
  if (end - start >= nativeFromBytes) return native(b.subarray(start, end), seed);
  let c = ~seed;
  let i = start;
  const whole = end - 7;
  for (; i < whole; i += 8) {
    const low = c ^ (b[i]! | (b[i + 1]! << 8) | (b[i + 2]! << 16) | (b[i + 3]! << 24));
    c =
      t7[low & 0xff]! ^
      t6[(low >>> 8) & 0xff]! ^
      t5[(low >>> 16) & 0xff]! ^
      t4[low >>> 24]! ^
      t3[b[i + 4]!]! ^
      t2[b[i + 5]!]! ^
      t1[b[i + 6]!]! ^
      t0[b[i + 7]!]!;
  }
  for (; i < end; i++) c = (c >>> 8) ^ t0[(c ^ b[i]!) & 0xff]!;
  return ~c >>> 0;
}
