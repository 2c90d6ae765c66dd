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
import { checkBuckets } from './plan/check-buckets.ts';

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
  // Whoever reads the answer learns of a failure.
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
    const plan = resolve(compile(statement, context.now), names);
    checkBuckets(plan, context.limits.maxBuckets);
    return plan;
  } catch (error) {
    if (!(error instanceof SchemaWait)) throw error;
    // Made again with what has come.
    return error.here.then(() => planOf(statement, context, answers));
  }
}
