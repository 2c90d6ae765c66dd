// Reads entries back from segments while the log is being written: for backups. Requested entries
// have been written to the operating system before, and the caller makes the log retain them
// meanwhile.

import type { Disk } from '../../../universal-row/environment.ts';
import {
  EntryType,
  entryHeaderBytes,
  FrameKind,
  getU32,
  hardStateBytes,
  hardStateFlag,
} from './format.ts';
import { SegmentReader, Window } from './reader.ts';

/** An entry's record batch: `buf[start, end)`, valid until the next entry is asked for. */
export interface LogEntry {
  readonly index: number;
  readonly buf: Buffer;
  readonly start: number;
  readonly end: number;
}

export interface SegmentPlace {
  readonly number: number;
  readonly path: string;
}

/** Requests get their turn after so many bytes. */
const sliceBytes = 256 * 1024;
/** Small, so that a read does not hold up requests for long. */
const windowBytes = 512 * 1024;

/**
 * Entries of the group in (after, to], in order. `segments` tells those that have entries after `after`,
 * ascending, and is asked anew before each is opened, for they change their names. Throws when one is missing.
 */
export async function* readEntries(
  disk: Disk,
  segments: () => readonly SegmentPlace[],
  group: number,
  after: number,
  to: number,
): AsyncGenerator<LogEntry> {
  const window = new Window();
  window.buf = Buffer.allocUnsafeSlow(windowBytes);
  let next = after + 1;
  let number = segments()[0]?.number ?? 0;
  while (next <= to) {
    const place = segments().find((segment) => segment.number === number);
    if (place === undefined) throw new Error(`the log has no entry ${next} any more`);
    number++;
    const file = disk.open(place.path, 'read');
    try {
      const reader = new SegmentReader(file, place.number, window);
      let sliceEnds = sliceBytes;
      while (next <= to) {
        const step = reader.next();
        if (step === 'end') break;
        if (step === 'bad') {
          throw new Error(`${place.path} is damaged at byte ${reader.offset}: ${reader.reason}`);
        }
        if (reader.nextOffset > sliceEnds) {
          sliceEnds = reader.nextOffset + sliceBytes;
          await new Promise(setImmediate);
        }
        if (reader.kind !== FrameKind.append || reader.group !== group) continue;
        if (reader.index > next) throw new Error(`the log has no entry ${next} any more`);
        for (const entry of entriesOf(reader)) {
          if (entry.index < next || entry.index > to) continue;
          next = entry.index + 1;
          if (entry.end > entry.start) yield entry;
        }
      }
    } finally {
      file.close();
    }
  }
}

function* entriesOf(frame: SegmentReader): Generator<LogEntry> {
  const { buf, bodyEnd } = frame;
  let at = frame.bodyStart + (frame.flags & hardStateFlag ? hardStateBytes : 0);
  for (let index = frame.index; at < bodyEnd; index++) {
    const start = at + entryHeaderBytes;
    const end = start + getU32(buf, at);
    const isBatch = buf[at + 4] === EntryType.batch;
    at = end;
    yield { index, buf, start, end: isBatch ? end : start };
  }
}
