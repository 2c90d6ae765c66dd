// LZF, the compression of strings in RDB values (Marc Lehmann's format): runs of 1 to 32 bytes as
// they are, and references of 3 to 264 bytes to data up to 8192 bytes before.

import { badData } from './format.ts';

/** Bytes that are made between two pauses. */
const bytesPerStep = 256 * 1024;

/** Unpacks `n` bytes at `s`, which come to exactly `to.length`; throws `badData` otherwise. Yields now and then. */
export function* decompress(
  b: Buffer,
  s: number,
  n: number,
  to: Buffer,
): Generator<undefined, void, undefined> {
  const end = s + n;
  const most = to.length;
  let at = 0;
  let pause = bytesPerStep;
  for (let i = s; i < end; ) {
    const control = b[i++]!;
    if (control < 32) {
      const length = control + 1;
      if (i + length > end || at + length > most) throw badData;
      for (let k = 0; k < length; k++) to[at++] = b[i++]!;
    } else {
      let length = (control >> 5) + 2;
      if (length === 9) {
        if (i >= end) throw badData;
        length += b[i++]!;
      }
      if (i >= end) throw badData;
      let from = at - ((control & 31) << 8) - b[i++]! - 1;
      if (from < 0 || at + length > most) throw badData;
      // Byte by byte: a reference may overlap its own output.
      for (let k = 0; k < length; k++) to[at++] = to[from++]!;
    }
    if (at < pause) continue;
    pause = at + bytesPerStep;
    yield;
  }
  if (at !== most) throw badData;
}
