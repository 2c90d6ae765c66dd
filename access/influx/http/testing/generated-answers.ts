// Generated answers, for tests of sending answers:
//
//   select * from generated limit n     n rows of a time, a number and a text of 50 characters
//   select * from broken limit n        fails behind n rows
//   select * from buggy                 throws an unexpected error
//   select * from waiting               returns nothing until it is killed

import type { Statement } from '../../influxql/ast.ts';
import { QueryError, type ResultSeries, type StatementResult } from '../../influxql/result.ts';
import type { SelectContext } from '../../influxql/select/context.ts';
import { type Execute, runStatement } from '../statement-runner.ts';

const rowsAPiece = 1000;

export const withGenerated: Execute = (statement, context, select) =>
  answerOf(statement, select) ?? runStatement(statement, context, select);

function answerOf(statement: Statement, select: SelectContext): StatementResult | undefined {
  if (statement.kind !== 'select') return undefined;
  const [source] = statement.sources;
  const name = source?.kind === 'measurement' ? source.name : undefined;
  switch (name) {
    case 'generated':
      return { messages: [], series: rows(statement.limit, select) };
    case 'broken':
      return { messages: [], series: broken(statement.limit, select) };
    case 'buggy':
      throw new TypeError('a bug');
    case 'waiting':
      return { messages: [], series: waiting(select) };
    default:
      return undefined;
  }
}

async function* rows(count: number, { task }: SelectContext): AsyncGenerator<ResultSeries> {
  for (let from = 0; from < count; from += rowsAPiece) {
    task.throwIfKilled();
    const length = Math.min(rowsAPiece, count - from);
    await Promise.resolve();
    yield {
      name: 'generated',
      columns: ['time', 'n', 'text'],
      time: { base: 0, offsets: Float64Array.from({ length }, (_, i) => from + i) },
      values: [
        Float64Array.from({ length }, (_, i) => from + i),
        Array.from({ length }, (_, i) => `${'x'.repeat(44)}${(from + i) % 1_000_000}`),
      ],
      rows: length,
      continues: from > 0,
    };
  }
}

async function* broken(count: number, select: SelectContext): AsyncGenerator<ResultSeries> {
  yield* rows(count, select);
  throw new QueryError('broken behind its rows');
}

// oxlint-disable-next-line require-yield
async function* waiting(select: SelectContext): AsyncGenerator<ResultSeries> {
  for (;;) {
    select.task.throwIfKilled();
    await select.yieldNow();
  }
}
