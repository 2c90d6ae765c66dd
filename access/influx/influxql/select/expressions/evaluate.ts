// Expressions over whole columns. An absent operand makes the result absent; comparisons with it
// are false. Integers wrap at 64 bits, and dividing by zero gives zero.

import type { Column } from '../../../../../universal-row/series/column.ts';
import type { FieldType } from '../../../../../universal-row/series/field-type.ts';
import { matchWork } from '../../parser/match-work.ts';
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

type MatchNode = Extract<Node, { kind: 'match' }>;

/**
 * The regular expressions of a condition over the rows of a chunk. They may take long, so that they are matched in
 * pieces, before the rest of the condition is evaluated.
 */
export class RowMatches {
  readonly #symbols: Symbols;
  readonly #count: number;
  readonly #pending: MatchNode[] = [];
  /** By node, 1 for each row that matches; nothing where there are no texts. */
  readonly #found = new Map<
    MatchNode,
    { readonly rows: Uint8Array; readonly isConstant: boolean }
  >();
  #row = 0;
  #lastText: string | undefined;
  #last = 0;

  constructor(node: Node, symbols: Symbols, count: number) {
    this.#symbols = symbols;
    this.#count = count;
    this.#collect(node);
  }

  /** Matches some rows more; true when all are. */
  advance(): boolean {
    for (let node = this.#pending.at(-1); node !== undefined; node = this.#pending.at(-1)) {
      const operand = operandOf(node.operand, this.#symbols, this.#count);
      if (operand?.column.texts !== undefined && !this.#match(node, operand)) return false;
      this.#pending.pop();
      this.#row = 0;
      this.#lastText = undefined;
    }
    return true;
  }

  /** Operand found by the last `advance`. */
  of(node: MatchNode): Operand | undefined {
    const found = this.#found.get(node);
    if (found === undefined) return undefined;
    const column = numberColumn('boolean', Float64Array.from(found.rows));
    return { column, isConstant: found.isConstant };
  }

  #collect(node: Node): void {
    if (node.kind === 'match') this.#pending.push(node);
    else if (node.kind === 'math') node.args.forEach((arg) => this.#collect(arg));
    else if (node.kind === 'binary') {
      this.#collect(node.left);
      this.#collect(node.right);
    }
  }

  /** False when it stops for others. */
  #match(node: MatchNode, { column, isConstant }: Operand): boolean {
    const rows = isConstant ? 1 : this.#count;
    if (this.#row === 0) this.#found.set(node, { rows: new Uint8Array(rows), isConstant });
    const found = this.#found.get(node)!.rows;
    for (let done = 0; this.#row < rows; this.#row++) {
      if (!has(column, this.#row)) continue;
      const text = column.texts![this.#row]!;
      // Tags are the same in row after row.
      if (text !== this.#lastText) {
        // At least one text is tried each time.
        if (done > pieceLength || (done > 0 && matchWork.isDue)) return false;
        done += text.length + 1;
        this.#last = node.regexp.test(text) === node.negate ? 0 : 1;
        this.#lastText = text;
      }
      found[this.#row] = this.#last;
    }
    return true;
  }
}

/** Characters that are matched between two looks at the clock. */
const pieceLength = 100_000;

/** Rows in which the condition is true, into `rows`; how many there are. `matches` is done. */
export function matching(
  node: Node,
  symbols: Symbols,
  count: number,
  rows: Int32Array,
  matches: RowMatches,
): number {
  const result = operandOf(node, symbols, count, matches);
  if (result === undefined || result.column.type !== 'boolean') return 0;
  const { numbers, present } = result.column;
  let found = 0;
  for (let i = 0; i < count; i++) {
    const at = result.isConstant ? 0 : i;
    if (numbers[at] === 1 && (present === undefined || present[at] === 1)) rows[found++] = i;
  }
  return found;
}

function operandOf(
  node: Node,
  symbols: Symbols,
  count: number,
  matches?: RowMatches,
): Operand | undefined {
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
      return matches?.of(node);
    case 'math':
      return math(
        node.name,
        node.args.map((arg) => operandOf(arg, symbols, count, matches)),
        count,
      );
    case 'binary': {
      const left = operandOf(node.left, symbols, count, matches);
      const right = operandOf(node.right, symbols, count, matches);
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
