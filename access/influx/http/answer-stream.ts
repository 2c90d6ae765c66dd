// The answer of a query under way: rows are written as they come, and sent whenever there are enough.

import type { ResultSeries } from '../influxql/result.ts';
import type { AnswerWriter } from './answer-writer.ts';
import type { ReplyStream } from './reply-stream.ts';

/** So much is held back, so that a statement that fails soon can still be answered by its error alone. */
const heldBytes = 1024 * 1024;
const pieceBytes = 64 * 1024;
/** Values written between two looks at the clock. */
const sliceValues = 8192;
const sliceMs = 8;

export class AnswerStream {
  readonly #writer: AnswerWriter;
  readonly #reply: ReplyStream;
  #sliceStart = performance.now();
  #threshold = heldBytes;

  constructor(writer: AnswerWriter, reply: ReplyStream) {
    this.#writer = writer;
    this.#reply = reply;
  }

  /** Throws `ClientGone`. */
  async write(piece: ResultSeries): Promise<void> {
    const { rows } = piece;
    const step = Math.max(1, Math.floor(sliceValues / Math.max(1, piece.columns.length)));
    let from = 0;
    do {
      const to = Math.min(rows, from + step);
      this.#writer.rows(piece, from, to);
      from = to;
      if (this.#writer.out.length >= this.#threshold) await this.#send();
      else if (performance.now() - this.#sliceStart > sliceMs) await this.#yield();
    } while (from < rows);
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
