// EXPLAIN and EXPLAIN ANALYZE: the plan of a SELECT, and its cost.

import type { SelectStatement } from '../ast.ts';
import { formatTime } from '../parser/time-literal.ts';
import type { ResultSeries, StatementResult } from '../result.ts';
import { Run, type SelectContext } from './context.ts';
import { planned, planOf } from './execute-select.ts';
import { openPlan } from './operators/open.ts';
import { chunksOf } from './output.ts';
import type { Plan } from './plan/plan.ts';

export function explainSelect(
  statement: SelectStatement,
  analyze: boolean,
  context: SelectContext,
): StatementResult {
  const run = analyze ? analyzed : explained;
  return planned(planOf(statement, context), (plan) => run(plan, context));
}

async function* explained(plan: Plan, context: SelectContext): AsyncIterable<ResultSeries> {
  const run = new Run(context);
  const { groups, close } = await run.finished(openPlan(plan, run));
  close();
  yield lines('QUERY PLAN', [...describe(plan), `GROUPS: ${groups.length}`]);
}

async function* analyzed(plan: Plan, context: SelectContext): AsyncIterable<ResultSeries> {
  const run = new Run(context);
  let rows = 0;
  const { groups, close } = await run.finished(openPlan(plan, run));
  const planned = performance.now();
  try {
    for (const group of groups) {
      for await (const chunk of chunksOf(group.rows(), run)) rows += chunk.count;
    }
  } finally {
    close();
  }
  const ended = performance.now();
  yield lines('EXPLAIN ANALYZE', [
    ...describe(plan),
    `GROUPS: ${groups.length}`,
    `SERIES: ${run.series}`,
    `BLOCKS: ${run.blocks}`,
    `POINTS: ${run.points}`,
    `ROWS: ${rows}`,
    `planning_time: ${(planned - run.startedAt).toFixed(3)}ms`,
    `execution_time: ${(ended - planned).toFixed(3)}ms`,
    `total_time: ${(ended - run.startedAt).toFixed(3)}ms`,
    ...costLines(context.cost?.()),
  ]);
}

/** Request units up to here: only the few bytes of these lines follow. */
function costLines(cost: Float64Array | undefined): string[] {
  if (cost === undefined) return [];
  const [cpu, memory, io, network, ru] = Array.from(cost, (units) => units.toFixed(3));
  return [`RU: ${ru}`, `PRU: cpu ${cpu}, memory ${memory}, io ${io}, network ${network}`];
}

function describe(plan: Plan, indent = ''): string[] {
  const found: string[] = [];
  const names = [
    ...plan.calls.map(({ text }) => text.replace(/ \S*$/, '')),
    ...plan.refs.map(({ name, type }) => `${name}::${type}`),
  ];
  found.push(`${indent}EXPRESSION: ${names.length > 0 ? names.join(', ') : '<nil>'}`);
  if (plan.dimensions.length > 0) found.push(`${indent}GROUP BY: ${plan.dimensions.join(', ')}`);
  if (plan.interval.width > 0n) found.push(`${indent}INTERVAL: ${plan.interval.width}ns`);
  found.push(`${indent}TIME: ${formatTime(plan.from)} - ${formatTime(plan.to)}`);
  for (const source of plan.sources) {
    if (source.kind === 'subquery') {
      found.push(`${indent}SUBQUERY`, ...describe(source.plan, `${indent}    `));
    } else {
      const { database, retentionPolicy, name } = source;
      found.push(`${indent}SOURCE: ${database}.${retentionPolicy}.${name}`);
    }
    if (source.rows !== undefined) {
      const fields = source.rows.refs.map((ref) => ref.name).join(', ');
      found.push(`${indent}FILTER ON: ${fields}`);
    }
  }
  return found;
}

function lines(column: string, texts: readonly string[]): ResultSeries {
  return { columns: [column], values: [texts], rows: texts.length, continues: false };
}
