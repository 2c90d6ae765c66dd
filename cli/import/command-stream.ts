// The commands that a master sends to its replicas, from the bytes of the connection.

import type { ByteSource } from './byte-source.ts';
import { SourceEnded } from './byte-source.ts';

export interface StreamedCommand {
  words: Buffer[];
  /** Bytes of the stream that it took. */
  bytes: number;
}

/** The next command; undefined when the bytes that are there end before it does. */
export function readCommand(source: ByteSource): StreamedCommand | undefined {
  const { b, at, end } = source;
  if (at === end) return undefined;
  // A line of its own is a sign of life.
  if (b[at] === 10) {
    source.take(1);
    return { words: [], bytes: 1 };
  }
  const head = lineAt(b, at, end);
  if (head === undefined) return undefined;
  if (b[at] !== 0x2a) throw new SourceEnded('the source sent something that is no command');
  const words: Buffer[] = [];
  let next = head.next;
  for (let left = head.number; left > 0; left--) {
    const length = next < end ? lineAt(b, next, end) : undefined;
    if (length === undefined || length.next + length.number + 2 > end) return undefined;
    words.push(Buffer.from(b.subarray(length.next, length.next + length.number)));
    next = length.next + length.number + 2;
  }
  source.take(next - at);
  return { words, bytes: next - at };
}

/** The number behind the type at `at`, and where the line after it begins. */
function lineAt(b: Buffer, at: number, end: number): { number: number; next: number } | undefined {
  const eol = b.indexOf(13, at);
  if (eol < 0 || eol + 2 > end) return undefined;
  return { number: Number(b.toString('latin1', at + 1, eol)), next: eol + 2 };
}

/** A line of the source, without its end. */
export async function readLine(source: ByteSource): Promise<string> {
  for (;;) {
    const eol = source.b.subarray(source.at, source.end).indexOf(10);
    if (eol >= 0) {
      const line = source.b.toString('latin1', source.at, source.at + eol);
      source.take(eol + 1);
      return line.replace(/\r$/, '');
    }
    if (!(await source.more())) throw new SourceEnded('the source ended the connection');
  }
}
