// A log entry with all writes of an event-loop tick, which is applied whole or not at all:
//
//   time f64 little-endian        the leader's clock, Unix milliseconds; never below that of the entry before
//   ops                           a record batch: the commands of the tick, one after the other

import { RecordBatchWriter } from '../../universal-row/record-batch.ts';
import { spareBuffers } from '../../universal-row/spare-buffers.ts';
import { opsRoomBytes } from './partition-log.ts';

const headerBytes = 8;
/** A buffer larger than this is given back after its tick. */
const keptBufferBytes = 2 * 1024 * 1024;

/** Gathers the entry of a tick, with the verbs of `PartitionLog`. */
export class TickEntry {
  readonly writer = new RecordBatchWriter();
  /** Commands that wrote. */
  count = 0;
  #commandAt = 0;

  constructor() {
    this.writer.pos = headerBytes;
  }

  begin(): void {
    this.#commandAt = this.writer.pos;
  }

  end(): number {
    if (this.writer.pos === this.#commandAt) return 0;
    return ++this.count;
  }

  adopt(ops: RecordBatchWriter): void {
    this.writer.append(ops, opsRoomBytes);
  }

  abandon(): void {
    this.writer.pos = this.#commandAt;
  }

  /** The entry, in memory of its own; undefined when nothing was written. The next one begins. */
  take(time: number): Buffer | undefined {
    const { writer } = this;
    if (this.count === 0) return undefined;
    const entry = Buffer.allocUnsafe(writer.pos);
    writer.buf.copy(entry, 0, 0, writer.pos);
    entry.writeDoubleLE(time, 0);
    this.count = 0;
    if (writer.buf.length > keptBufferBytes) {
      spareBuffers.give(writer.buf);
      writer.renew();
    }
    writer.pos = headerBytes;
    return entry;
  }
}

/** Where the ops of an entry begin. */
export const entryOpsAt = headerBytes;

/**
 * The leader's clock when it made the entry, Unix milliseconds. Throws `RangeError` for an invalid
 * entry.
 */
export function entryTime(entry: Buffer): number {
  return entry.readDoubleLE(0);
}
