// Answers of statements, in the shape of InfluxDB's JSON. Long ones come in pieces.

/** null, a number, a 64-bit integer beyond ±(2^53 - 1), a text, a boolean. */
export type Value = null | number | bigint | string | boolean;

/**
 * A piece of one series of an answer, as columns: `values[c][row]`. Pieces of one series follow each other;
 * the writer of the answer joins them, or cuts them anew for chunked answers.
 */
export interface ResultSeries {
  /** Absent for SHOW SERIES and its like. */
  readonly name?: string | undefined;
  /** In the order of GROUP BY; absent without one. */
  readonly tags?: readonly (readonly [key: string, value: string])[] | undefined;
  /** Names; with `time` the first is its name, 'time' as a rule. */
  readonly columns: readonly string[];
  /** The times of the rows; the other columns follow in `values`. */
  readonly time?: ResultTimes | undefined;
  readonly values: readonly ArrayLike<Value>[];
  readonly rows: number;
  /** The piece continues the series of the previous piece. */
  readonly continues: boolean;
  /** tz('...') of the statement. */
  readonly timeZone?: string | undefined;
  /** SHOW DATABASES with nothing has no "values"; others that are empty have []. */
  readonly omitEmptyValues?: boolean;
}

interface ResultTimes {
  /** Unix seconds. */
  readonly base: number;
  /** Whole nanoseconds after the base, within ±2^53. */
  readonly offsets: Float64Array;
}

export interface Message {
  readonly level: 'warning' | 'info';
  readonly text: string;
}

/** Result of a running statement: series after series. The statement may wait between two. */
export interface StatementResult {
  readonly messages: readonly Message[];
  /** Throws `SeriesError` or `QueryError` where the statement fails. */
  readonly series: AsyncIterable<ResultSeries>;
}

/** A failure of one statement; the text is InfluxDB's. */
export class QueryError extends Error {
  override readonly name = 'QueryError';
}

/** The request cannot be understood: HTTP 400. `error parsing query: ` is part of the text. */
export class ParseError extends Error {
  override readonly name = 'ParseError';
}
