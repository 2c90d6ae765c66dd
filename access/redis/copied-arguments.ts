// Words of a command that outlive the buffer in which they came.

import type { Arguments } from '../../universal-row/arguments.ts';

// What a copy of a command takes beside its words.
const overheadBytes = 256;

/** What lies between two words: `\r\n$`, up to ten digits, and `\r\n`. */
const ampleHeaderBytes = 16;

/** Bytes that a copy of the words takes, at most. */
export function copiedBytes({ count, lens }: Arguments): number {
  let bytes = overheadBytes + (8 + ampleHeaderBytes) * count;
  for (let i = 0; i < count; i++) bytes += lens[i]!;
  return bytes;
}
