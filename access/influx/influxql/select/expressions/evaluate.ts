// Expressions over whole columns. What has no value makes a result that has none; comparisons of it are
// false. Integers wrap at 64 bits, and dividing by zero gives zero.

import type { Column } from '../../../../../universal-row/series/column.ts';
import type { FieldType } from '../../../../../universal-row/series/field-type.ts';
import { applyMath, keepsType } from '../plan/math-functions.ts';
import type { Node } from '../plan/plan.ts';
import { ColumnBuilder, has, isNumber, numberAt, numberColumn } from '../vector.ts';
import { binary, type Operand, presence } from './binary.ts';

type Symbols = readonly (Column | undefined)[];

export function evaluate(node: Node, symbols: Symbols, count: number): Column | undefined {
  const operand = operandOf(node, symbols, count);
  if (operand === undefined) return undefined;
  return operand.isConstant ? spread(operand.column, count) : operand.column;
}

/** Rows in which the condition is true, into `rows`; how many there are. */
export function matching(node: Node, symbols: Symbols, count: number, rows: Int32Array): number {
  const result = operandOf(node, symbols, count);
  if (result === undefined || result.column.type !== 'boolean') return 0;
  const { numbers, present } = result.column;
  let found = 0;
  for (let i = 0; i < count; i++) {
    const at = result.isConstant ? 0 : i;
    if (numbers[at] === 1 && (present === undefined || present[at] === 1)) rows[found++] = i;
  }
  return found;
}

function operandOf(node: Node, symbols: Symbols, count: number): Operand | undefined {
  switch (node.kind) {
    case 'symbol': {
      const column = symbols[node.index];
      return column === undefined ? undefined : { column, isConstant: false };
    }
    case 'constant': {
      const column = constantColumn(node.type, node.value);
      return column === undefined ? undefined : { column, isConstant: true };
    }
    case 'match':
      return match(node, symbols, count);
    case 'math':
      return math(
        node.name,
        node.args.map((arg) => operandOf(arg, symbols, count)),
        count,
      );
    case 'binary': {
      const left = operandOf(node.left, symbols, count);
      const right = operandOf(node.right, symbols, count);
      return binary(node.op, left, right, count);
    }
  }
}

function constantColumn(
  type: FieldType,
  value: number | bigint | string | boolean | null,
): Column | undefined {
  if (value === null) return undefined;
  const builder = new ColumnBuilder(type);
  builder.push(typeof value === 'boolean' ? Number(value) : value);
  return builder.take();
}

function spread(column: Column, count: number): Column {
  const builder = new ColumnBuilder(column.type);
  for (let i = 0; i < count; i++) builder.pushFrom(column, 0);
  return builder.take()!;
}

function match(
  { operand, regexp, negate }: Extract<Node, { kind: 'match' }>,
  symbols: Symbols,
  count: number,
): Operand | undefined {
  const found = operandOf(operand, symbols, count);
  const texts = found?.column.texts;
  if (found === undefined || texts === undefined) return undefined;
  const rows = found.isConstant ? 1 : count;
  const numbers = new Float64Array(rows);
  let lastText: string | undefined;
  let last = 0;
  for (let i = 0; i < rows; i++) {
    if (!has(found.column, i)) continue;
    const text = texts[i]!;
    // Tags are the same in row after row.
    if (text !== lastText) {
      lastText = text;
      last = regexp.test(text) === negate ? 0 : 1;
    }
    numbers[i] = last;
  }
  return { column: numberColumn('boolean', numbers), isConstant: found.isConstant };
}

function math(
  name: string,
  args: readonly (Operand | undefined)[],
  count: number,
): Operand | undefined {
  const known = args.filter((arg) => arg !== undefined && isNumber(arg.column.type)) as Operand[];
  if (known.length < args.length) return undefined;
  const [x, y] = known;
  const { type } = x!.column;
  if (type !== 'float' && keepsType.has(name)) return x;
  const isConstant = known.every((arg) => arg.isConstant);
  const rows = isConstant ? 1 : count;
  const numbers = new Float64Array(rows);
  const present = presence(known, rows);
  for (let i = 0; i < rows; i++) {
    const first = numberAt(x!.column, x!.isConstant ? 0 : i);
    const second = y === undefined ? 0 : numberAt(y.column, y.isConstant ? 0 : i);
    numbers[i] = applyMath(name, first, second);
  }
  return { column: numberColumn('float', numbers, present), isConstant };
}
