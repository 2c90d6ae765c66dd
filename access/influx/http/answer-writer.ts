// Writers of /query answers, one for each format. They write while results arrive, so that a long
// answer is never held whole.

import type { Message, ResultSeries } from '../influxql/result.ts';
import type { TextBuffer } from './text-buffer.ts';

export interface AnswerWriter {
  readonly contentType: string;
  /** Where it writes; the caller may take the bytes away between two calls. */
  readonly out: TextBuffer;
  beginStatement(id: number): void;
  /** Rows [from, to) of a piece. Rows of one piece come in order, and `from` 0 first, even if it has none. */
  rows(piece: ResultSeries, from: number, to: number): void;
  endStatement(messages: readonly Message[]): void;
  /**
   * Called in place of `endStatement`. Replaces everything written of the statement, unless bytes of it were already
   * sent. The `skipped` statements after it are not executed, and are answered with `notExecuted`.
   */
  failStatement(error: string, skipped: number): void;
  /** After the last statement. */
  finish(): void;
}

/** Rows of a series beyond which InfluxDB's answers come in parts. */
export const defaultChunkSize = 10_000;

/**
 * InfluxDB's answer for a statement after a failed one. It carries the number of the failed statement, whose own
 * error is lost where answers are merged.
 */
export const notExecuted = 'not executed';
