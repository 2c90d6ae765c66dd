// SELECT, from the tree of a statement to the series of its answer.

import type { SelectStatement } from '../ast.ts';
import type { ResultSeries, StatementResult } from '../result.ts';
import { Run, type SelectContext } from './context.ts';
import { writeInto } from './into.ts';
import { resultOf } from './output.ts';
import { compile } from './plan/compile.ts';
import type { Plan } from './plan/plan.ts';
import { resolve } from './plan/resolve.ts';
import { checkBuckets } from './plan/check-buckets.ts';

/** Throws `QueryError` or `SeriesError` for a statement that cannot be carried out. */
export function executeSelect(statement: SelectStatement, context: SelectContext): StatementResult {
  const plan = planOf(statement, context);
  const run = new Run(context);
  const { into } = statement;
  const series: AsyncIterable<ResultSeries> =
    into === undefined ? resultOf(plan, run) : writeInto(plan, into, run);
  return { messages: [], series };
}

export function planOf(statement: SelectStatement, context: SelectContext): Plan {
  const plan = resolve(compile(statement, context.now), context);
  checkBuckets(plan, context.limits.maxBuckets);
  return plan;
}
