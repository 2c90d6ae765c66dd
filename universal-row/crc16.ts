// The cluster slot of a Redis key: CRC16/XMODEM (polynomial 0x1021, start 0, no reflection) mod 16384
// over the key's hash tag, or over the whole key when it has none.

export const slotCount = 16384;

const table = new Uint16Array(256);
for (let i = 0; i < 256; i++) {
  let crc = i << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  table[i] = crc;
}

export function crc16(b: Uint8Array, s: number, n: number): number {
  let crc = 0;
  const end = s + n;
  for (let i = s; i < end; i++) crc = ((crc << 8) & 0xffff) ^ table[(crc >>> 8) ^ b[i]!]!;
  return crc;
}

const open = 0x7b;
const close = 0x7d;

/**
 * The slot a key belongs to. Its hash tag is what stands between the first `{` and the first `}`
 * after it, unless that is nothing: keys with equal tags share a slot.
 */
export function hashSlot(b: Uint8Array, s: number, n: number): number {
  const end = s + n;
  let tag = s;
  while (tag < end && b[tag] !== open) tag++;
  if (++tag < end) {
    let tagEnd = tag;
    while (tagEnd < end && b[tagEnd] !== close) tagEnd++;
    if (tagEnd < end && tagEnd > tag) return crc16(b, tag, tagEnd - tag) % slotCount;
  }
  return crc16(b, s, n) % slotCount;
}
