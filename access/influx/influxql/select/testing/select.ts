// Runs a SELECT over a naive store, and shows its answer as text.

import type { SelectStatement, Statement } from '../../ast.ts';
import { parseQuery } from '../../parser/parser.ts';
import type { ResultSeries, StatementResult, Value } from '../../result.ts';
import type { SelectContext } from '../context.ts';
import { executeSelect } from '../execute-select.ts';
import { explainSelect } from '../explain.ts';
import { bigTime } from '../vector.ts';
import type { NaiveStore } from './naive-store.ts';

export function contextOf(store: NaiveStore, over: Partial<SelectContext> = {}): SelectContext {
  return {
    store,
    database: 'db',
    retentionPolicy: '',
    now: 1_000_000_000_000n,
    task: { throwIfKilled: () => {} },
    limits: { maxMemoryBytes: 0, timeoutMs: 0 },
    yieldNow: () => Promise.resolve(),
    ...over,
  };
}

function parseSelect(text: string, now = 1_000_000_000_000n): Statement {
  return parseQuery(text, { now, params: {} })[0]!;
}

export function run(text: string, context: SelectContext): StatementResult {
  const statement = parseSelect(text, context.now);
  if (statement.kind === 'explain') {
    return explainSelect(statement.select, statement.analyze, context);
  }
  return executeSelect(statement as SelectStatement, context);
}

/** Series of the answer; times in seconds as a rule, else in nanoseconds with an n behind. */
interface Answer {
  name: string | undefined;
  tags: Record<string, string> | undefined;
  columns: readonly string[];
  rows: Value[][];
}

export async function answer(
  text: string,
  store: NaiveStore,
  over: Partial<SelectContext> = {},
): Promise<Answer[]> {
  const found: Answer[] = [];
  for await (const piece of run(text, contextOf(store, over)).series) add(found, piece);
  return found;
}

function add(found: Answer[], piece: ResultSeries): void {
  if (!piece.continues) {
    const { name, tags, columns } = piece;
    found.push({ name, tags: tags && Object.fromEntries(tags), columns, rows: [] });
  }
  const series = found[found.length - 1]!;
  for (let row = 0; row < piece.rows; row++) {
    const values = piece.values.map((column) => column[row]!);
    const { time } = piece;
    series.rows.push(
      time === undefined ? values : [shownTime(bigTime(time.base, time.offsets[row]!)), ...values],
    );
  }
}

function shownTime(time: bigint): Value {
  return time % 1_000_000n === 0n ? Number(time / 1_000_000n) / 1e3 : `${time}n`;
}

/** `name{tags} columns: row; row`, series by series, one a line. */
export async function shown(
  text: string,
  store: NaiveStore,
  over: Partial<SelectContext> = {},
): Promise<string> {
  try {
    return (await answer(text, store, over)).map(line).join('\n');
  } catch (error) {
    return `error: ${(error as Error).message}`;
  }
}

function line({ name, tags, columns, rows }: Answer): string {
  const head =
    tags === undefined
      ? ''
      : `{${Object.entries(tags)
          .map(([k, v]) => `${k}=${v}`)
          .join()}}`;
  return `${name}${head} ${columns.join(' ')}: ${rows.map((row) => row.join(' ')).join('; ')}`;
}
