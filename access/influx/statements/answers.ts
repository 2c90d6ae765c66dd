// Answers as tables.

import type { Slices } from '../../../universal-row/slices.ts';
import type { Message, ResultSeries, StatementResult, Value } from '../influxql/result.ts';

/** Rows that go out in one piece. */
const rowsPerPiece = 5000;

export function answer(
  series: readonly ResultSeries[],
  messages: readonly Message[] = [],
): StatementResult {
  return { messages, series: inPieces(series) };
}

/** Lets others run between slices. */
export interface Pause {
  /** True once its time is used up. */
  readonly isDue: boolean;
  /** Throws when the client is gone. */
  pause(): Promise<void>;
}

/** An answer that takes long work. Errors of the statement itself are thrown at once. */
export function answerInSlices(
  slices: Slices<readonly ResultSeries[]>,
  pause: Pause | undefined,
  messages: readonly Message[] = [],
): StatementResult {
  const first = slices.next();
  if (first.done === true) return answer(first.value, messages);
  return { messages, series: piecesOf(slices, first.value, pause) };
}

async function* piecesOf(
  slices: Slices<readonly ResultSeries[]>,
  begun: Promise<unknown> | undefined,
  pause: Pause | undefined,
): AsyncGenerator<ResultSeries> {
  try {
    if (begun !== undefined) await begun;
    let step = slices.next();
    while (step.done !== true) {
      if (step.value !== undefined) await step.value;
      if (pause?.isDue !== false) await (pause?.pause() ?? new Promise(setImmediate));
      step = slices.next();
    }
    yield* inPieces(step.value);
  } finally {
    slices.return([]);
  }
}

/** A result without rows. The work begins when the answer is read. */
export function answerAfter(
  work: () => Promise<void>,
  messages: readonly Message[] = [],
): StatementResult {
  return { messages, series: nothingAfter(work) };
}

async function* nothingAfter(work: () => Promise<void>): AsyncGenerator<ResultSeries> {
  await work();
  yield* [];
}

/** Long series are cut, so that others have their turn while they are written out. */
async function* inPieces(series: readonly ResultSeries[]): AsyncGenerator<ResultSeries> {
  for (const whole of series) {
    if (whole.rows <= rowsPerPiece) {
      yield whole;
      continue;
    }
    for (let from = 0; from < whole.rows; from += rowsPerPiece) {
      const to = Math.min(from + rowsPerPiece, whole.rows);
      const values = whole.values.map((column) => Array.from(column).slice(from, to));
      yield { ...whole, values, rows: to - from, continues: from > 0 };
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

/** A series out of columns of equal length. */
export function columnar(
  name: string | undefined,
  columns: readonly string[],
  values: readonly (readonly Value[])[],
): ResultSeries {
  const series = { columns, values, rows: values[0]?.length ?? 0, continues: false };
  return name === undefined ? series : { name, ...series };
}

/** A series out of rows. */
export function table(
  name: string | undefined,
  columns: readonly string[],
  rows: readonly (readonly Value[])[],
): ResultSeries {
  return columnar(
    name,
    columns,
    columns.map((_, column) => rows.map((row) => row[column] ?? null)),
  );
}

/** `LIMIT` and `OFFSET`; a limit of 0 is none. */
export function page<T>(rows: readonly T[], limit: number, offset: number): readonly T[] {
  if (limit === 0 && offset === 0) return rows;
  return rows.slice(offset, limit === 0 ? undefined : offset + limit);
}
