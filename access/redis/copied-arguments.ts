// Words of a command that outlive the buffer in which they came.

import type { Arguments } from '../../universal-row/arguments.ts';

// Memory overhead of a copied command besides its arguments.
const overheadBytes = 256;

/** Bytes between two arguments: `\r\n$`, up to ten digits, and `\r\n`. */
const maxHeaderBytes = 16;

/** Bytes that a copy of the words takes, at most. */
export function copiedBytes({ count, lens }: Arguments): number {
  let bytes = overheadBytes + (8 + maxHeaderBytes) * count;
  for (let i = 0; i < count; i++) bytes += lens[i]!;
  return bytes;
}
