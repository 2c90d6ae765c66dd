// Hands the entries that recovery finds to an engine, those it has already left out.

import type { MaybePromise } from '../../../universal-row/maybe-promise.ts';
import {
  EntryType,
  entryHeaderBytes,
  getU32,
  hardStateBytes,
  hardStateFlag,
} from '../wal/format.ts';
import type { SegmentReader } from '../wal/reader.ts';

/** Applies the record batch in `buf[start, end)` as entry `index`. The bytes stay until the answer. */
export type Apply = (buf: Buffer, start: number, end: number, index: number) => MaybePromise<void>;

export class Replay {
  readonly #appliedIndex: number;
  readonly #apply: Apply;
  entries = 0;

  constructor(appliedIndex: number, apply: Apply) {
    this.#appliedIndex = appliedIndex;
    this.#apply = apply;
  }

  frame(frame: SegmentReader): MaybePromise<void> {
    if (frame.index + frame.count - 1 <= this.#appliedIndex) return;
    const start = frame.bodyStart + (frame.flags & hardStateFlag ? hardStateBytes : 0);
    return this.#entries(frame.buf, start, frame.bodyEnd, frame.index);
  }

  #entries(buf: Buffer, start: number, end: number, firstIndex: number): MaybePromise<void> {
    let index = firstIndex;
    for (let p = start; p < end; index++) {
      const payload = p + entryHeaderBytes;
      const next = payload + getU32(buf, p);
      const isNew = index > this.#appliedIndex && buf[p + 4] === EntryType.batch;
      p = next;
      if (!isNew) continue;
      this.entries++;
      const waiting = this.#apply(buf, payload, next, index);
      if (waiting instanceof Promise) {
        const rest = index + 1;
        return waiting.then(() => this.#entries(buf, next, end, rest));
      }
    }
  }
}
