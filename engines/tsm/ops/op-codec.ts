// Log entries of this engine, little-endian.
//
//   entry   = op*                                   all or nothing
//   op      = code u8, then by code
//     state   text              the whole catalog, as JSON; first in a snapshot
//     change  text              an EngineChange, as JSON
//     shard   text              a shard that is to be made, as JSON
//     drop    shard u32
//     rows    shard u32 | rows of one measurement         row-codec.ts
//     delete  shard u32 | from f64 | to f64 | count u32 | series u32*
//     remove  shard u32 | count u32 | series u32*         series that are to be listed no more
//     stored  text                                        a StoredBatch, as JSON; no part of the state
//     gone    shard u32 | measurement u32 | count u32     numbers of series removed before; in a snapshot
//
//   text    = length u32 | UTF-8
//
// Times are nanoseconds after the start of the shard, both ends of a range inclusive; series are
// numbers of the shard's index. The writer of an entry had the same state as its replicas, so the
// entry names the numbers of new series and fields. A replayed entry may find some of them there
// already.
//
// Data copied between the log and typed arrays has the byte order of the machine, which is assumed
// to be little-endian.

import { emptyBytes } from '../../../universal-row/bytes.ts';
import type { RecordBatchWriter } from '../../../universal-row/record-batch.ts';
import { type Form, formBytes, type Values } from '../head/packed-column.ts';
import { Scratch } from './scratch.ts';

/** Never change a number. */
export const Op = {
  state: 1,
  change: 2,
  shard: 3,
  drop: 4,
  rows: 5,
  delete: 6,
  remove: 7,
  stored: 8,
  gone: 9,
} as const;

export function putU8(into: RecordBatchWriter, value: number): void {
  into.reserve(1);
  into.buf[into.pos++] = value;
}

export function putU32(into: RecordBatchWriter, value: number): void {
  into.reserve(4);
  into.pos = into.buf.writeUInt32LE(value, into.pos);
}

export function putF64(into: RecordBatchWriter, value: number): void {
  into.reserve(8);
  into.pos = into.buf.writeDoubleLE(value, into.pos);
}

export function putText(into: RecordBatchWriter, text: string): void {
  const length = Buffer.byteLength(text);
  into.reserve(4 + length);
  into.pos = into.buf.writeUInt32LE(length, into.pos);
  into.pos += into.buf.write(text, into.pos, 'utf8');
}

/** The first `count` values as they are in memory. */
export function putArray(
  into: RecordBatchWriter,
  array: Values | Uint16Array | Uint32Array | Uint8Array,
  count: number,
): void {
  const bytes = count * array.BYTES_PER_ELEMENT;
  into.reserve(bytes);
  into.buf.set(new Uint8Array(array.buffer, array.byteOffset, bytes), into.pos);
  into.pos += bytes;
}

export function putSeries(into: RecordBatchWriter, series: Uint32Array): void {
  putU32(into, series.length);
  putArray(into, series, series.length);
}

/** Reads the parts of ops in order. Throws `RangeError` when they run past the end: the entry is damaged. */
export class OpReader {
  buf: Buffer = emptyBytes;
  pos = 0;
  end = 0;
  /** Holds values read as arrays, which must be aligned to their element size. */
  readonly scratch = new Scratch();

  begin(buf: Buffer, start: number, end: number): void {
    this.buf = buf;
    this.pos = start;
    this.end = end;
  }

  u8(): number {
    return this.buf[this.skip(1)]!;
  }

  u32(): number {
    return this.buf.readUInt32LE(this.skip(4));
  }

  f64(): number {
    return this.buf.readDoubleLE(this.skip(8));
  }

  text(): string {
    const length = this.u32();
    const start = this.skip(length);
    return this.buf.toString('utf8', start, start + length);
  }

  /** Where the skipped bytes begin. */
  skip(bytes: number): number {
    if (bytes > this.end - this.pos) this.damaged('cut short');
    const at = this.pos;
    this.pos += bytes;
    return at;
  }

  values(form: Form, count: number): Values {
    this.#expect(count * formBytes[form]);
    return this.#fill(this.scratch.values(form, count));
  }

  bytes(count: number): Uint8Array {
    this.#expect(count);
    return this.#fill(this.scratch.bytes(count));
  }

  u16Array(count: number): Uint16Array {
    this.#expect(count * 2);
    return this.#fill(this.scratch.u16(count));
  }

  u32Array(count: number): Uint32Array {
    this.#expect(count * 4);
    return this.#fill(this.scratch.u32(count));
  }

  f64Array(count: number): Float64Array {
    this.#expect(count * 8);
    return this.#fill(this.scratch.f64(count));
  }

  /** A copy that stays valid. */
  series(): Uint32Array {
    return this.u32Array(this.u32()).slice();
  }

  damaged(what: string): never {
    throw new RangeError(`entry of time series, byte ${this.pos}: ${what}`);
  }

  /** Checks a length before memory is allocated for it, as it may be damaged. */
  #expect(bytes: number): void {
    if (bytes > this.end - this.pos) this.damaged('cut short');
  }

  #fill<T extends Values | Uint8Array | Uint16Array | Uint32Array>(array: T): T {
    const start = this.skip(array.byteLength);
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    this.buf.copy(bytes, 0, start, start + bytes.length);
    return array;
  }
}
