// Words of a command that outlive the buffer in which they came.

import { Arguments } from '../../universal-row/arguments.ts';

// What a copy of a command takes beside its words.
const overheadBytes = 256;

/** Bytes that a copy of the words takes. */
export function copiedBytes({ count, lens }: Arguments): number {
  let bytes = overheadBytes + 8 * count;
  for (let i = 0; i < count; i++) bytes += lens[i]!;
  return bytes;
}

/** The words in memory of their own. */
export function copyOf(args: Arguments): Arguments {
  const copy = new Arguments(args.count);
  let total = 0;
  for (let i = 0; i < args.count; i++) total += args.lens[i]!;
  const buf = Buffer.allocUnsafe(total);
  let p = 0;
  for (let i = 0; i < args.count; i++) {
    const s = args.starts[i]!;
    const n = args.lens[i]!;
    args.buf.copy(buf, p, s, s + n);
    copy.starts[i] = p;
    copy.lens[i] = n;
    p += n;
  }
  copy.buf = buf;
  copy.count = args.count;
  return copy;
}
