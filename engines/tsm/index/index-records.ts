// The words in which a series index is written down: records, one behind the other in frames. v is a
// LEB128 varint, bytes are a v length and so many bytes. Numbers of new things are not written: they are
// the next ones.
//
//   measurement  1 | name bytes, as in series keys
//   field        2 | measurement v | type u8 | name bytes
//   tag          3 | measurement v | key bytes, as in series keys
//   shape        4 | parent shape v | tag v               a measurement brings the shape without tags
//   series       5 | shape v | hash of the key u32 | for each tag of the shape its value:
//                      a number v from 1, or 0 | bytes, as in series keys, of one that is new
//   removed      6 | series v
//   gone         7 | measurement v | count v              numbers of series removed before compaction

import { crc32 } from 'node:zlib';
import { copyBytes, viewed } from '../../../universal-row/bytes.ts';

export const Op = {
  measurement: 1,
  field: 2,
  tag: 3,
  shape: 4,
  series: 5,
  removed: 6,
  gone: 7,
} as const;

/**
 * Length and checksum, both u32; the checksum covers the length and the bytes after the checksum.
 */
export const frameHeaderBytes = 8;
/** A frame is closed when it has this many bytes: it ends with the record that fills it. */
const fullFrameBytes = 256 * 1024;
const initialFrameBytes = 4096;

/** Collects records into frames. */
export class RecordWriter {
  readonly #frames: Buffer[] = [];
  #buf: Buffer = Buffer.alloc(0);
  #pos = 0;
  #bytes = 0;

  /** Bytes of memory held. */
  get bytes(): number {
    return this.#bytes + this.#buf.length;
  }

  get isEmpty(): boolean {
    return this.#frames.length === 0 && this.#pos === 0;
  }

  /** Begins a record of at most `bytes` bytes. */
  begin(op: number, bytes: number): void {
    if (this.#pos >= fullFrameBytes) this.#seal();
    if (this.#pos === 0) this.#pos = frameHeaderBytes;
    const need = this.#pos + bytes + 1;
    if (need > this.#buf.length) {
      const before = this.#buf;
      const size = Math.max(need, before.length * 2, initialFrameBytes);
      this.#buf = viewed(Buffer.allocUnsafeSlow(size));
      before.copy(this.#buf, 0, 0, this.#pos);
    }
    this.#buf[this.#pos++] = op;
  }

  u8(value: number): void {
    this.#buf[this.#pos++] = value;
  }

  u32(value: number): void {
    this.#buf.writeUInt32LE(value, this.#pos);
    this.#pos += 4;
  }

  varint(value: number): void {
    let rest = value;
    while (rest >= 0x80) {
      this.#buf[this.#pos++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.#buf[this.#pos++] = rest;
  }

  run(from: Buffer, start: number, end: number): void {
    this.varint(end - start);
    copyBytes(this.#buf, this.#pos, from, start, end - start);
    this.#pos += end - start;
  }

  /** Frames ready to be written; they stay until `drop`. Later ones come behind them. */
  frames(): readonly Buffer[] {
    if (this.#pos > 0) this.#seal();
    return this.#frames;
  }

  /** The first `count` frames are safe. */
  drop(count: number): void {
    for (const frame of this.#frames.splice(0, count)) this.#bytes -= frame.buffer.byteLength;
  }

  #seal(): void {
    const frame = this.#buf.subarray(0, this.#pos);
    frame.writeUInt32LE(this.#pos - frameHeaderBytes, 0);
    frame.writeUInt32LE(frameChecksum(frame, 0, this.#pos), 4);
    this.#frames.push(frame);
    this.#bytes += this.#buf.length;
    this.#buf = Buffer.alloc(0);
    this.#pos = 0;
  }
}

/** Checksum of the frame `buf[start, end)`, header included. */
export function frameChecksum(buf: Buffer, start: number, end: number): number {
  const length = crc32(buf.subarray(start, start + 4));
  return crc32(buf.subarray(start + frameHeaderBytes, end), length);
}

/** A record that the writer cannot have produced. */
export class BadRecordError extends Error {
  override readonly name = 'BadRecordError';
}

/** Reads records; throws `BadRecordError` for one that runs past the end of the frame. */
export class RecordReader {
  buf: Buffer = Buffer.alloc(0);
  pos = 0;
  /** Where the run found last begins; it ends at `pos`. */
  runStart = 0;
  #end = 0;

  reset(buf: Buffer, start: number, end: number): void {
    this.buf = buf;
    this.pos = start;
    this.#end = end;
  }

  get atEnd(): boolean {
    return this.pos >= this.#end;
  }

  u8(): number {
    this.#need(1);
    return this.buf[this.pos++]!;
  }

  u32(): number {
    this.#need(4);
    const { buf, pos } = this;
    this.pos += 4;
    return (buf[pos]! | (buf[pos + 1]! << 8) | (buf[pos + 2]! << 16) | (buf[pos + 3]! << 24)) >>> 0;
  }

  varint(): number {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.u8();
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    throw new BadRecordError('a number is too long');
  }

  run(): void {
    const length = this.varint();
    this.#need(length);
    this.runStart = this.pos;
    this.pos += length;
  }

  #need(bytes: number): void {
    if (this.pos + bytes > this.#end) throw new BadRecordError('a record is cut short');
  }
}
