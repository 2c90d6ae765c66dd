// Walks the frames of one segment, checking each, through a window that moves along the file.

import type { DiskFile } from '../../../universal-row/environment.ts';
import {
  at,
  frameHeaderBytes,
  getSegmentHeader,
  getU32,
  getU64,
  isIntact,
  lastFrameKind,
  paddedLength,
  segmentHeaderBytes,
} from './format.ts';
import type { SegmentHeader } from './format.ts';

const windowBytes = 4 * 1024 * 1024;

/** A place to read through, shared by the segments of one recovery. */
export class Window {
  buf: Buffer = Buffer.allocUnsafeSlow(windowBytes);
}

export type Step = 'frame' | 'end' | 'bad';

/** After `next` has answered 'frame', the fields tell that frame's; its bytes stay until the next call. */
export class SegmentReader {
  readonly #file: DiskFile;
  readonly number: number;
  readonly #window: Window;
  readonly size: number;
  /** Where in the file the window begins, and how much of it is filled. */
  #windowAt = 0;
  #filled = 0;

  /** Offset in the segment of the frame, of a bad one too. */
  offset = segmentHeaderBytes;
  /** Where the next one begins. */
  nextOffset = segmentHeaderBytes;
  /** Reason why a frame is bad. */
  reason = '';

  buf: Buffer;
  kind = 0;
  flags = 0;
  count = 0;
  group = 0;
  term = 0;
  index = 0;
  durableLsn = 0;
  bodyStart = 0;
  bodyEnd = 0;

  constructor(file: DiskFile, number: number, window: Window) {
    this.#file = file;
    this.number = number;
    this.#window = window;
    this.size = file.size();
    this.buf = window.buf;
  }

  /** The segment's header, or a description of its damage. */
  header(): SegmentHeader | string {
    const n = Math.min(segmentHeaderBytes, this.size);
    const p = this.#load(0, n);
    const header = getSegmentHeader(this.buf.subarray(p, p + n));
    if (typeof header !== 'string' && header.number !== this.number) {
      return `the header says that this is segment ${header.number}`;
    }
    return header;
  }

  next(): Step {
    this.offset = this.nextOffset;
    if (this.offset === this.size) return 'end';
    const p = this.#frameAt(this.offset);
    if (p < 0) return 'bad';
    const b = this.buf;
    const length = getU32(b, p);
    this.nextOffset = this.offset + paddedLength(length);
    this.kind = b[p + at.kind]!;
    this.flags = b[p + at.flags]!;
    this.count = b[p + at.count]! | (b[p + at.count + 1]! << 8);
    this.group = getU64(b, p + at.group);
    this.term = getU64(b, p + at.term);
    this.index = getU64(b, p + at.index);
    this.durableLsn = getU64(b, p + at.durableLsn);
    this.bodyStart = p + frameHeaderBytes;
    this.bodyEnd = p + length;
    return 'frame';
  }

  /**
   * Looks beyond a bad frame for an intact one that says that the log was once on disk beyond `lsn`.
   * Frames begin on 8-byte boundaries. `baseLsn` is the segment's, undefined if its header is unreadable:
   * no frame can claim more than the log had when it was written. Returns its offset, or -1.
   */
  findProof(from: number, lsn: number, baseLsn: number | undefined): number {
    const start = Math.max(segmentHeaderBytes, paddedLength(from));
    for (let offset = start; offset + frameHeaderBytes <= this.size; offset += 8) {
      const p = this.#load(offset, frameHeaderBytes);
      const b = this.buf;
      const kind = b[p + at.kind]!;
      if (kind === 0 || kind > lastFrameKind || getU32(b, p + at.zero) !== 0) continue;
      const durableLsn = getU64(b, p + at.durableLsn);
      if (durableLsn <= lsn) continue;
      if (baseLsn !== undefined && durableLsn > baseLsn + offset) continue;
      if (this.#frameAt(offset) >= 0) return offset;
    }
    return -1;
  }

  /** Position in the buffer of the frame at an offset, or -1 if there is no intact one. */
  #frameAt(offset: number): number {
    const left = this.size - offset;
    if (left < frameHeaderBytes) return this.#bad('the frame is cut short');
    let p = this.#load(offset, frameHeaderBytes);
    const length = getU32(this.buf, p);
    if (length < frameHeaderBytes) return this.#bad('there is no frame');
    const padded = paddedLength(length);
    if (padded > left) return this.#bad('the frame is cut short');
    p = this.#load(offset, padded);
    if (!isIntact(this.buf, p, this.number)) {
      return this.#bad('the checksum of the frame does not match');
    }
    const kind = this.buf[p + at.kind]!;
    if (kind === 0 || kind > lastFrameKind) {
      return this.#bad(
        `the frame has the unknown kind ${kind}; a newer version may have written it`,
      );
    }
    return p;
  }

  #bad(reason: string): number {
    this.reason = reason;
    return -1;
  }

  /** Makes sure that the window holds `length` bytes of the file from `offset`; where in the buffer. */
  #load(offset: number, length: number): number {
    const p = offset - this.#windowAt;
    if (p >= 0 && p + length <= this.#filled) return p;
    if (length > this.#window.buf.length) this.#window.buf = Buffer.allocUnsafeSlow(length);
    this.buf = this.#window.buf;
    const n = Math.min(this.buf.length, this.size - offset);
    this.#windowAt = offset;
    this.#filled = this.#file.read(this.buf, 0, n, offset);
    // Only this process uses the file: if it shrank, the hardware is broken.
    if (this.#filled < length) throw new Error(`${this.#file.path}: cannot read at ${offset}`);
    return 0;
  }
}
