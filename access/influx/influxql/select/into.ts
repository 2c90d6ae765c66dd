// SELECT ... INTO: the rows of an answer as points of another measurement.

import type { Column } from '../../../../universal-row/series/column.ts';
import { minTime } from '../../../../contracts/series-store.ts';
import type { MeasurementSource } from '../ast.ts';
import { QueryError, type ResultSeries } from '../result.ts';
import type { Run } from './context.ts';
import { openPlan } from './operators/open.ts';
import { chunksOf, orderedGroups } from './output.ts';
import type { Plan } from './plan/plan.ts';
import type { Group } from './sources/input.ts';
import { bigTime, type Chunk, has, scalarAt } from './vector.ts';

const linesAtOnce = 5000;

export async function* writeInto(
  plan: Plan,
  target: MeasurementSource,
  run: Run,
): AsyncIterable<ResultSeries> {
  const { context } = run;
  if (context.writePoints === undefined) throw new QueryError('SELECT INTO is not available');
  const database = target.database || run.context.database;
  if (database === '') throw new QueryError('database name required');
  if (run.context.store.database(database) === undefined) {
    throw new QueryError(`database not found: ${database}`);
  }
  let written = 0;
  let lines: string[] = [];
  const flush = async (): Promise<void> => {
    if (lines.length === 0) return;
    const outcome = await context.writePoints!(database, target.retentionPolicy, lines.join('\n'));
    lines = [];
    if (outcome.error !== undefined) {
      const { error, dropped } = outcome;
      throw new QueryError(`partial write: ${error} dropped=${dropped}`);
    }
  };
  const { groups, close } = await run.finished(openPlan(plan, run));
  try {
    for (const group of orderedGroups(plan, groups)) {
      for await (const chunk of chunksOf(group.rows(), run)) {
        for (const line of linesOf(plan, group, chunk, nameOf(target, group))) {
          lines.push(line);
          written++;
          if (lines.length >= linesAtOnce) await flush();
        }
      }
    }
    await flush();
  } finally {
    close();
  }
  yield {
    name: 'result',
    columns: ['time', 'written'],
    time: { base: 0, offsets: new Float64Array(1) },
    values: [[written]],
    rows: 1,
    continues: false,
  };
}

/** `:MEASUREMENT` is the one the rows come from. */
function nameOf(target: MeasurementSource, group: Group): string {
  return target.isBackReference || target.name === undefined ? group.name : target.name;
}

function* linesOf(plan: Plan, group: Group, chunk: Chunk, name: string): Iterable<string> {
  let key = name.replace(/[, ]/g, '\\$&');
  for (const [tag, value] of group.tags) {
    if (value !== '') key += `,${escaped(tag)}=${escaped(value)}`;
  }
  for (let row = 0; row < chunk.count; row++) {
    const fields: string[] = [];
    plan.columns.forEach((column, i) => {
      const values = chunk.columns[i];
      if (has(values, row)) {
        const text = fieldText(values, row);
        if (text !== undefined) fields.push(`${escaped(column)}=${text}`);
      } else if (plan.fill.kind === 'number' && plan.outputs[i]!.kind === 'symbol') {
        fields.push(`${escaped(column)}=${plan.fill.value}`);
      }
    });
    // A row of nothing is no point.
    if (fields.length === 0) continue;
    const time = bigTime(chunk.base, chunk.times[row]!);
    yield `${key} ${fields.join(',')} ${time < minTime ? 0n : time}`;
  }
}

function escaped(text: string): string {
  return text.replace(/[,= ]/g, '\\$&');
}

function fieldText(column: Column, row: number): string | undefined {
  const value = scalarAt(column, row);
  switch (column.type) {
    case 'string':
      return `"${String(value).replace(/["\\]/g, '\\$&')}"`;
    case 'boolean':
      return value === 0 ? 'false' : 'true';
    case 'integer':
      return `${value}i`;
    case 'unsigned':
      return `${value}u`;
    default:
      return Number.isFinite(value) ? String(value) : undefined;
  }
}
