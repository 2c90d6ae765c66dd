// Frames of a link between two processes of a cluster. One frame is one message, or many small ones of a tick of the
// event loop together. docs/pod-protocol.md has the layout and test vectors.
//
//   0  u32  bytes of the payload
//   4  u8   type
//   5  u8   0
//   6  u16  0
//   8  u32  stream
//   12 u32  CRC-32 of bytes 0 to 11 and the payload
//   16      payload

import { emptyBytes, viewed } from '../bytes.ts';
import { crc32 } from '../crc32.ts';
import { WireError, type WireWriter } from './wire.ts';

export const frameHeaderBytes = 16;
/** A frame with more is refused. Larger messages are sent in parts. */
export const maxFrameBytes = 16 * 1024 * 1024;
/** Memory for a frame that came in pieces stays for the next one, unless it is more. */
const keptBytes = 256 * 1024;

/**
 * Frame types. 1 to 15 are for the link itself, 16 to 31 about pods of rows, 32 to 47 about pods of
 * time series, 64 to 79 about replication, 80 to 95 about the cluster. Numbers are never reused.
 */
export const FrameType = {
  hello: 1,
  welcome: 2,
  proof: 3,
  ready: 4,
  refused: 5,
  ping: 6,
} as const;

/** Begins a frame at the end of the writer. Its payload is written next, then `endFrame`. */
export function beginFrame(writer: WireWriter, type: number, stream = 0): number {
  const start = writer.pos;
  writer.reserve(frameHeaderBytes);
  const { buf } = writer;
  buf[start + 4] = type;
  buf[start + 5] = 0;
  buf[start + 6] = 0;
  buf[start + 7] = 0;
  buf.writeUInt32LE(stream, start + 8);
  writer.pos = start + frameHeaderBytes;
  return start;
}

/** Ends the frame that began at `start`. */
export function endFrame(writer: WireWriter, start: number): void {
  const { buf, pos } = writer;
  const payload = pos - start - frameHeaderBytes;
  if (payload > maxFrameBytes) throw new RangeError(`a frame of ${payload} bytes`);
  buf.writeUInt32LE(payload, start);
  const checked = crc32(0, buf, start, start + 12);
  buf.writeUInt32LE(crc32(checked, buf, start + frameHeaderBytes, pos), start + 12);
}

/** Writes a whole frame. */
export function writeFrame(
  writer: WireWriter,
  type: number,
  stream: number,
  payload: Buffer,
): void {
  const start = beginFrame(writer, type, stream);
  writer.raw(payload, 0, payload.length);
  endFrame(writer, start);
}

/** Hears of a frame. The bytes from `start` to `end` may change when it returns. */
type FrameListener = (
  type: number,
  stream: number,
  buf: Buffer,
  start: number,
  end: number,
) => void;

/**
 * Finds the frames in the input of a socket. A frame that a chunk holds as a whole is not copied.
 * Throws a `WireError` for invalid input; then nothing more can be read.
 */
export class FrameReader {
  /** Payloads beyond this are refused: an unauthenticated peer has a small limit. */
  maxBytes: number;
  readonly #listener: FrameListener;
  /** The beginning of a frame whose rest has not come yet. */
  #kept: Buffer = emptyBytes;
  #length = 0;

  constructor(listener: FrameListener, maxBytes: number = maxFrameBytes) {
    this.#listener = listener;
    this.maxBytes = maxBytes;
  }

  /** Bytes of a frame that has not come as a whole. */
  get pending(): number {
    return this.#length;
  }

  /** Takes the first `length` bytes of a chunk, which are the caller's again when this returns. */
  push(chunk: Buffer, length: number = chunk.length): void {
    let at = 0;
    if (this.#length > 0) {
      at = this.#fill(chunk, length, frameHeaderBytes);
      if (this.#length < frameHeaderBytes) return;
      const total = this.#sizeAt(this.#kept, 0);
      at += this.#fill(chunk.subarray(at), length - at, total);
      if (this.#length < total) return;
      this.#length = 0;
      this.#emit(this.#kept, 0, total);
      if (this.#kept.length > keptBytes) this.#kept = emptyBytes;
    }
    while (length - at >= frameHeaderBytes) {
      const total = this.#sizeAt(chunk, at);
      if (length - at < total) break;
      this.#emit(chunk, at, total);
      at += total;
    }
    if (at < length) this.#keep(chunk, at, length);
  }

  #sizeAt(buf: Buffer, at: number): number {
    const payload = buf.readUInt32LE(at);
    if (payload > this.maxBytes) throw new WireError(`a frame of ${payload} bytes`);
    if ((buf[at + 5]! | buf[at + 6]! | buf[at + 7]!) !== 0) throw new WireError('no frame');
    return frameHeaderBytes + payload;
  }

  #emit(buf: Buffer, at: number, total: number): void {
    const checked = crc32(0, buf, at, at + 12);
    if (crc32(checked, buf, at + frameHeaderBytes, at + total) !== buf.readUInt32LE(at + 12)) {
      throw new WireError('a frame is damaged');
    }
    const stream = buf.readUInt32LE(at + 8);
    this.#listener(buf[at + 4]!, stream, buf, at + frameHeaderBytes, at + total);
  }

  #keep(chunk: Buffer, from: number, to: number): void {
    const left = to - from;
    // A frame announced by a peer takes memory as its bytes come, not before.
    if (this.#kept.length < left) this.#kept = viewed(Buffer.allocUnsafeSlow(Math.max(4096, left)));
    chunk.copy(this.#kept, 0, from, to);
    this.#length = left;
  }

  /** Adds bytes of the chunk until there are `total`; returns how many it took. */
  #fill(chunk: Buffer, length: number, total: number): number {
    const n = Math.min(length, total - this.#length);
    if (n <= 0) return 0;
    const need = this.#length + n;
    if (need > this.#kept.length) {
      const bytes = Math.max(need, Math.min(total, this.#kept.length * 2));
      const larger = viewed(Buffer.allocUnsafeSlow(bytes));
      this.#kept.copy(larger, 0, 0, this.#length);
      this.#kept = larger;
    }
    chunk.copy(this.#kept, this.#length, 0, n);
    this.#length = need;
    return n;
  }
}
