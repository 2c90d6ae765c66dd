// Undo log: for each write a record batch that restores the changed rows. They are applied from the
// last to the first.

import { copyBytes, type ViewedBuffer } from '../../universal-row/bytes.ts';
import { RecordBatchWriter } from '../../universal-row/record-batch.ts';

/** The undo of some writes, in memory of its own. */
export interface UndoPart {
  readonly bytes: Buffer;
  /** Where the undo of each write begins, in the order of the writes. */
  readonly starts: readonly number[];
  /** Tables that hold rows which these writes took out of use. */
  readonly hidden: readonly number[];
  /** Buffer that contains `bytes`, for `giveBack`. */
  readonly memory?: Buffer;
}

/** A longer `#starts` is shortened, which releases its memory. */
const keptStarts = 4096;

/** A part of fewer bytes is copied: then it takes no more memory than it has bytes. */
const smallBytes = 4096;
/** Buffers of the thread for further undo logs, so that their parts do not bring the next garbage collection nearer. */
const spares: ViewedBuffer[] = [];
const mostSpares = 16;
const largestSpareBytes = 256 * 1024;

/** Returns the buffer of a part that is no longer used. */
export function giveBack({ memory }: UndoPart): void {
  if (memory === undefined || memory.length > largestSpareBytes) return;
  if (spares.length < mostSpares) spares.push(memory as ViewedBuffer);
}

export class UndoLog {
  readonly writer = new RecordBatchWriter();
  /** The first `#count` are valid. An array of length 0 would lose its memory, so the length is kept. */
  readonly #starts: number[] = [];
  #count = 0;
  #hidden: number[] = [];

  get bytes(): number {
    return this.writer.pos;
  }

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /** How many writes there are. */
  get mark(): number {
    return this.#count;
  }

  /** Where to write how to undo the write that is about to be made. */
  begin(): RecordBatchWriter {
    this.#starts[this.#count++] = this.writer.pos;
    return this.writer;
  }

  hide(table: number): void {
    this.#hidden.push(table);
  }

  /** Moves the undo records of the writes from number `mark` on out of this log. */
  takeFrom(mark: number): UndoPart {
    const { writer } = this;
    const from = mark < this.#count ? this.#starts[mark]! : writer.pos;
    const bytes = Buffer.from(writer.buf.subarray(from, writer.pos));
    const starts = this.#starts.slice(mark, this.#count).map((start) => start - from);
    this.#empty(Math.min(mark, this.#count), from);
    const hidden = mark === 0 ? this.#hidden.splice(0) : [];
    return { bytes, starts, hidden };
  }

  /** All of it, which is forgotten here. */
  take(): UndoPart {
    const { writer } = this;
    const bytes = writer.pos;
    if (bytes < smallBytes) return this.takeFrom(0);
    const memory = writer.buf;
    writer.renew(spares.pop());
    const starts = this.#starts.slice(0, this.#count);
    this.#empty(0, 0);
    return { bytes: memory.subarray(0, bytes), starts, hidden: this.#hidden.splice(0), memory };
  }

  /** Forgets all of it; returns the tables that hold rows which the writes took out of use. */
  clear(): readonly number[] {
    this.#empty(0, 0);
    return this.#hidden.splice(0);
  }

  /** Leaves the first `count` writes, in so many bytes. */
  #empty(count: number, bytes: number): void {
    this.writer.pos = bytes;
    this.#count = count;
    if (this.#starts.length > keptStarts) this.#starts.length = count;
  }

  /** Appends all of `later`, which is empty then. Done for each command: so nothing is made for it. */
  takeAll(later: UndoLog): void {
    const { writer } = this;
    const bytes = later.writer.pos;
    const at = writer.pos;
    writer.reserve(bytes);
    copyBytes(writer.buf, at, later.writer.buf, 0, bytes);
    writer.pos = at + bytes;
    const starts = later.#starts;
    const count = later.#count;
    for (let i = 0; i < count; i++) this.#starts[this.#count++] = at + starts[i]!;
    later.#empty(0, 0);
    if (later.#hidden.length !== 0) this.#hidden.push(...later.#hidden.splice(0));
  }

  /** Appends the undo records of later writes. */
  append({ bytes, starts, hidden }: UndoPart): void {
    const { writer } = this;
    const at = writer.pos;
    writer.reserve(bytes.length);
    bytes.copy(writer.buf, at);
    writer.pos += bytes.length;
    for (const start of starts) this.#starts[this.#count++] = at + start;
    for (const table of hidden) this.#hidden.push(table);
  }
}
