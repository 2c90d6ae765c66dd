// Rows of a plan as the series of an answer.

import type { Column } from '../../../../universal-row/series/column.ts';
import type { ResultSeries, Value } from '../result.ts';
import type { Run } from './context.ts';
import { openPlan } from './operators/open.ts';
import type { Plan } from './plan/plan.ts';
import type { Group } from './sources/input.ts';
import { arrayOf, type Chunk, pending, repeated, type Stream, valueAt } from './vector.ts';

/** Chunks of a stream, with pauses between them. */
export async function* chunksOf(stream: Stream, run: Run): AsyncIterable<Chunk> {
  for (;;) {
    if (run.waits !== undefined) await run.untilHere();
    if (run.isDue) await run.pause();
    const chunk = stream.next();
    if (chunk === undefined) return;
    if (chunk !== pending && chunk.count > 0) yield chunk;
  }
}

/** Group by group, in the order of the answer. */
export function orderedGroups(plan: Plan, groups: readonly Group[]): readonly Group[] {
  return plan.descending ? [...groups].reverse() : groups;
}

export async function* resultOf(plan: Plan, run: Run): AsyncIterable<ResultSeries> {
  run.check();
  const { groups, close } = await run.finished(openPlan(plan, run));
  const columns = [plan.timeName, ...plan.columns];
  try {
    for (const group of orderedGroups(plan, groups)) {
      let continues = false;
      for await (const chunk of chunksOf(group.rows(), run)) {
        yield piece(plan, columns, group, chunk, continues);
        continues = true;
      }
    }
  } finally {
    close();
  }
}

function piece(
  plan: Plan,
  columns: readonly string[],
  group: Group,
  chunk: Chunk,
  continues: boolean,
): ResultSeries {
  const { base, times, count } = chunk;
  return {
    name: group.name,
    tags: group.tags.length > 0 ? group.tags : undefined,
    columns,
    time: { base, offsets: times.slice(0, count) },
    values: plan.outputs.map((node, i) =>
      shown(chunk.columns[i], count, node.kind === 'symbol' ? fillNumber(plan) : null),
    ),
    rows: count,
    continues,
    timeZone: plan.timeZone,
  };
}

/** fill(0) shows a number even in columns of texts. */
function fillNumber({ fill }: Plan): number | null {
  return fill.kind === 'number' ? fill.value : null;
}

function shown(
  column: Column | undefined,
  count: number,
  missing: number | null,
): ArrayLike<Value> {
  if (column === undefined) return repeated<Value>(missing, count);
  const { type, numbers, texts, wide, present } = column;
  if (present === undefined && wide === undefined) {
    if (texts !== undefined) return texts.length === count ? texts : texts.slice(0, count);
    if (type === 'integer' || type === 'unsigned') return numbers.slice(0, count);
    if (type === 'float' && !hasNaN(numbers, count)) return numbers.slice(0, count);
  }
  const values = arrayOf<Value>(count);
  const isText = type === 'string' || type === 'boolean';
  for (let i = 0; i < count; i++) {
    const isMissing = isText && present !== undefined && present[i] === 0;
    values[i] = isMissing ? missing : valueAt(column, i);
  }
  return values;
}

function hasNaN(numbers: Float64Array, count: number): boolean {
  for (let i = 0; i < count; i++) if (Number.isNaN(numbers[i]!)) return true;
  return false;
}
