// Undo log: for each write a record batch that restores the changed rows. They are applied from the
// last to the first.

import { RecordBatchWriter } from '../../universal-row/record-batch.ts';

/** The undo of some writes, in memory of its own. */
export interface UndoPart {
  readonly bytes: Buffer;
  /** Where the undo of each write begins, in the order of the writes. */
  readonly starts: readonly number[];
  /** Tables that hold rows which these writes took out of use. */
  readonly hidden: readonly number[];
}

export class UndoLog {
  readonly writer = new RecordBatchWriter();
  #starts: number[] = [];
  #hidden: number[] = [];

  get bytes(): number {
    return this.writer.pos;
  }

  get isEmpty(): boolean {
    return this.#starts.length === 0;
  }

  /** How many writes there are. */
  get mark(): number {
    return this.#starts.length;
  }

  /** Where to write how to undo the write that is about to be made. */
  begin(): RecordBatchWriter {
    this.#starts.push(this.writer.pos);
    return this.writer;
  }

  hide(table: number): void {
    this.#hidden.push(table);
  }

  /** The undo of the writes from the `mark`th on, which is forgotten here. */
  takeFrom(mark: number): UndoPart {
    const { writer } = this;
    const from = this.#starts[mark] ?? writer.pos;
    const bytes = Buffer.from(writer.buf.subarray(from, writer.pos));
    const starts = this.#starts.splice(mark).map((start) => start - from);
    writer.pos = from;
    const hidden = mark === 0 ? this.#hidden.splice(0) : [];
    return { bytes, starts, hidden };
  }

  /** Forgets all of it; returns the tables that hold rows which the writes took out of use. */
  clear(): readonly number[] {
    this.writer.pos = 0;
    this.#starts.length = 0;
    return this.#hidden.splice(0);
  }

  /** Appends the undo records of later writes. */
  append({ bytes, starts, hidden }: UndoPart): void {
    const { writer } = this;
    const at = writer.pos;
    writer.reserve(bytes.length);
    bytes.copy(writer.buf, at);
    writer.pos += bytes.length;
    for (const start of starts) this.#starts.push(at + start);
    for (const table of hidden) this.#hidden.push(table);
  }
}
