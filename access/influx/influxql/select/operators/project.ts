// Rows of symbols become rows of an answer: missing values are filled, and expressions are
// evaluated.

import type { Column } from '../../../../../universal-row/series/column.ts';
import type { FieldType } from '../../../../../universal-row/series/field-type.ts';
import type { Fill } from '../../ast.ts';
import type { Node } from '../plan/plan.ts';
import { type Chunk, ColumnBuilder, has, pending, scalarAt, type Stream } from '../vector.ts';
import { evaluate } from '../expressions/evaluate.ts';

interface Projection {
  readonly outputs: readonly Node[];
  readonly fill: Fill;
  /** Types of the symbols; undefined for those that no source has. */
  readonly types: readonly (FieldType | undefined)[];
}

export class Project implements Stream {
  readonly #input: Stream;
  readonly #projection: Projection;
  /** By symbol, the value of the last row that had one: for fill(previous). */
  readonly #last: (number | bigint | string | undefined)[] = [];

  constructor(input: Stream, projection: Projection) {
    this.#input = input;
    this.#projection = projection;
  }

  next(): Chunk | typeof pending | undefined {
    const chunk = this.#input.next();
    if (chunk === undefined || chunk === pending) return chunk;
    const { outputs } = this.#projection;
    const symbols = this.#filled(chunk);
    const columns = outputs.map((node) =>
      node.kind === 'symbol' ? symbols[node.index] : evaluate(node, symbols, chunk.count),
    );
    return { ...chunk, columns };
  }

  #filled({ columns, count }: Chunk): readonly (Column | undefined)[] {
    const { fill, types } = this.#projection;
    if (fill.kind === 'number') {
      return types.map((type, i) => withNumber(columns[i], type, fill.value, count));
    }
    if (fill.kind !== 'previous') return columns;
    return types.map((type, i) => this.#withPrevious(columns[i], type, i, count));
  }

  #withPrevious(
    column: Column | undefined,
    type: FieldType | undefined,
    symbol: number,
    count: number,
  ): Column | undefined {
    if (type === undefined) return column;
    const builder = new ColumnBuilder(type);
    for (let i = 0; i < count; i++) {
      if (has(column, i)) this.#last[symbol] = scalarAt(column, i);
      const value = this.#last[symbol];
      if (value === undefined) builder.pushNull();
      else builder.push(value);
    }
    return builder.take();
  }
}

/** Numeric columns only: the writer of the answer decides how to fill text. */
function withNumber(
  column: Column | undefined,
  type: FieldType | undefined,
  number: number,
  count: number,
): Column | undefined {
  if (type === undefined || type === 'string' || type === 'boolean') return column;
  if (column !== undefined && column.present === undefined) return column;
  const builder = new ColumnBuilder(type);
  const value = type === 'float' ? number : Math.trunc(number);
  for (let i = 0; i < count; i++) {
    if (has(column, i)) builder.push(scalarAt(column, i));
    else builder.push(value);
  }
  return builder.take();
}
