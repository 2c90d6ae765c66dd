// The answer of a query under way: rows are written as they come, and sent whenever there are enough.

import { QueryError, type ResultSeries } from '../influxql/result.ts';
import type { AnswerWriter } from './answer-writer.ts';
import type { ReplyStream } from './reply-stream.ts';

/** So many bytes are buffered, so that a statement that fails soon can still be answered by its error alone. */
const heldBytes = 1024 * 1024;
const pieceBytes = 64 * 1024;
/** Values written between two looks at the clock, and how much they should come to: long texts are written fewer at once. */
const mostValues = 8192;
const firstValues = 1024;
const sliceBytes = 128 * 1024;
const sliceMs = 8;

export class AnswerStream {
  readonly #writer: AnswerWriter;
  readonly #reply: ReplyStream;
  #sliceStart = performance.now();
  #threshold = heldBytes;
  #values = firstValues;

  constructor(writer: AnswerWriter, reply: ReplyStream) {
    this.#writer = writer;
    this.#reply = reply;
  }

  /** Throws `ClientGone`. */
  async write(piece: ResultSeries): Promise<void> {
    const { rows, columns } = piece;
    const { out } = this.#writer;
    let from = 0;
    do {
      const step = Math.max(1, Math.floor(this.#values / Math.max(1, columns.length)));
      const to = Math.min(rows, from + step);
      const before = out.length;
      this.#writer.rows(piece, from, to);
      from = to;
      this.#adapt(out.length - before);
      if (!this.#reply.holds(out.buf.length)) {
        throw new QueryError('timeout: the server has no memory for this answer at the moment');
      }
      if (this.#writer.out.length >= this.#threshold) await this.#send();
      else if (performance.now() - this.#sliceStart > sliceMs) await this.#yield();
    } while (from < rows);
  }

  /** Adapts to the size of the last write. */
  #adapt(bytes: number): void {
    if (bytes < sliceBytes) this.#values = Math.min(mostValues, this.#values * 2);
    else this.#values = Math.max(1, Math.floor((this.#values * sliceBytes) / bytes));
  }

  async end(): Promise<void> {
    this.#writer.finish();
    await this.#reply.end(this.#writer.out);
  }

  async #send(): Promise<void> {
    this.#threshold = pieceBytes;
    await this.#reply.send(this.#writer.out);
    await this.#yield();
  }

  async #yield(): Promise<void> {
    await new Promise(setImmediate);
    this.#sliceStart = performance.now();
  }
}
