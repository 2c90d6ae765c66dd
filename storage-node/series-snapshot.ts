// The state of a pod of time series on its way to another replica: entries of any length as chunks of bounded length.
//
//   stream  = entry*        cut into chunks anywhere
//   entry   = length u32 little-endian | ops of the engine

import { emptyBytes } from '../universal-row/bytes.ts';

const chunkBytes = 512 * 1024;
const headerBytes = 4;
/** An entry is about half a megabyte, or one op of a few thousand rows. */
const maxEntryBytes = 1024 * 1024 * 1024;

export async function* chunksOf(entries: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let chunk = Buffer.allocUnsafe(chunkBytes);
  let used = 0;
  const header = Buffer.alloc(headerBytes);
  for await (const entry of entries) {
    header.writeUInt32LE(entry.length, 0);
    for (const part of [header, entry]) {
      for (let at = 0; at < part.length; ) {
        const count = Math.min(part.length - at, chunkBytes - used);
        part.copy(chunk, used, at, at + count);
        used += count;
        at += count;
        if (used < chunkBytes) continue;
        yield chunk;
        chunk = Buffer.allocUnsafe(chunkBytes);
        used = 0;
      }
    }
  }
  if (used > 0) yield chunk.subarray(0, used);
}

/** Throws `RangeError` for chunks that are not such a stream. An entry is valid until the next one is asked for. */
export async function* entriesOf(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const header = Buffer.alloc(headerBytes);
  let got = 0;
  let entry: Buffer = emptyBytes;
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; ) {
      if (got < headerBytes) {
        header[got++] = chunk[at++]!;
        if (got < headerBytes) continue;
        const length = header.readUInt32LE(0);
        if (length === 0 || length > maxEntryBytes) throw new RangeError('entry of a snapshot');
        entry = Buffer.allocUnsafe(length);
        continue;
      }
      const count = Math.min(chunk.length - at, entry.length + headerBytes - got);
      chunk.copy(entry, got - headerBytes, at, at + count);
      at += count;
      got += count;
      if (got < entry.length + headerBytes) continue;
      got = 0;
      yield entry;
    }
  }
  if (got > 0) throw new RangeError('snapshot of time series: cut short');
}
