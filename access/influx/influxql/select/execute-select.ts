// SELECT, from the tree of a statement to the series of its answer.

import type { MaybePromise } from '../../../../universal-row/maybe-promise.ts';
import type { SelectStatement } from '../ast.ts';
import type { ResultSeries, StatementResult } from '../result.ts';
import { Run, type SelectContext } from './context.ts';
import { writeInto } from './into.ts';
import { resultOf } from './output.ts';
import { compile } from './plan/compile.ts';
import type { Plan } from './plan/plan.ts';
import { resolve } from './plan/resolve.ts';
import { SchemaAnswers, SchemaWait } from './plan/schema.ts';

/** Throws `QueryError` or `SeriesError` for a statement that cannot be carried out. */
export function executeSelect(statement: SelectStatement, context: SelectContext): StatementResult {
  const run = new Run(context);
  const { into } = statement;
  return planned(planOf(statement, context), (plan) =>
    into === undefined ? resultOf(plan, run) : writeInto(plan, into, run),
  );
}

/** The answer of a plan, which may be on its way. */
export function planned(
  plan: MaybePromise<Plan>,
  answer: (plan: Plan) => AsyncIterable<ResultSeries>,
): StatementResult {
  if (!(plan instanceof Promise)) return { messages: [], series: answer(plan) };
  // The reader of the answer receives the failure.
  plan.catch(() => {});
  async function* later(): AsyncGenerator<ResultSeries> {
    yield* answer(await plan);
  }
  return { messages: [], series: later() };
}

export function planOf(
  statement: SelectStatement,
  context: SelectContext,
  answers = new SchemaAnswers(),
): MaybePromise<Plan> {
  const { store, database, retentionPolicy } = context;
  try {
    const names = { store, database, retentionPolicy, answers };
    return resolve(compile(statement, context.now), names);
  } catch (error) {
    if (!(error instanceof SchemaWait)) throw error;
    // Plans again with the answers received.
    return error.here.then(() => planOf(statement, context, answers));
  }
}
