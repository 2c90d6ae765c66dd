// The cluster slot of a Redis key: CRC16/XMODEM (polynomial 0x1021, start 0, no reflection) mod 16384
// over the key's hash tag, or over the whole key when it has none.

export const slotCount = 16384;

const sliceBytes = 8;
/** `tables[k][i]`: the CRC of byte i with k zero bytes behind it. */
const tables = Array.from({ length: sliceBytes }, () => new Uint16Array(256));
const table = tables[0]!;
for (let i = 0; i < 256; i++) {
  let crc = i << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  table[i] = crc;
}
for (let k = 1; k < sliceBytes; k++) {
  for (let i = 0; i < 256; i++) {
    const crc = tables[k - 1]![i]!;
    tables[k]![i] = ((crc << 8) & 0xffff) ^ table[crc >>> 8]!;
  }
}
const [, t1, t2, t3, t4, t5, t6, t7] = tables as [Uint16Array, ...Uint16Array[]];

/** Shorter input is looked up byte by byte. */
const longBytes = 64;

export function crc16(b: Uint8Array, s: number, n: number): number {
  let crc = 0;
  const end = s + n;
  let i = s;
  if (n >= longBytes) {
    // Eight look-ups that do not wait for each other: a key of 16 MB must not take the thread for long.
    for (const last = end - sliceBytes; i <= last; i += sliceBytes) {
      crc =
        t7![b[i]! ^ (crc >>> 8)]! ^
        t6![b[i + 1]! ^ (crc & 0xff)]! ^
        t5![b[i + 2]!]! ^
        t4![b[i + 3]!]! ^
        t3![b[i + 4]!]! ^
        t2![b[i + 5]!]! ^
        t1![b[i + 6]!]! ^
        table[b[i + 7]!]!;
    }
  }
  for (; i < end; i++) crc = ((crc << 8) & 0xffff) ^ table[(crc >>> 8) ^ b[i]!]!;
  return crc;
}

const open = 0x7b;
const close = 0x7d;

/**
 * The slot a key belongs to. Its hash tag is the text between the first `{` and the first `}` after
 * it, unless that is empty: keys with equal tags share a slot.
 */
export function hashSlot(b: Uint8Array, s: number, n: number): number {
  const end = s + n;
  const tag = find(b, open, s, end) + 1;
  if (tag < end) {
    const tagEnd = find(b, close, tag, end);
    if (tagEnd < end && tagEnd > tag) return crc16(b, tag, tagEnd - tag) % slotCount;
  }
  return crc16(b, s, n) % slotCount;
}

/** The first place of a byte in `b[s, end)`; `end` when there is none. */
function find(b: Uint8Array, byte: number, s: number, end: number): number {
  if (end - s >= longBytes) {
    const at = b.subarray(s, end).indexOf(byte);
    return at < 0 ? end : s + at;
  }
  let at = s;
  while (at < end && b[at] !== byte) at++;
  return at;
}
