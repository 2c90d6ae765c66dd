// Operators with two sides, over whole columns.

import type { Column } from '../../../../../universal-row/series/column.ts';
import type { FieldType } from '../../../../../universal-row/series/field-type.ts';
import type { BinaryOperator } from '../../ast.ts';
import { binaryType } from '../plan/types.ts';
import { ColumnBuilder, isNumber, numberColumn } from '../vector.ts';

/** A constant has one row, which stands for all. */
export interface Operand {
  readonly column: Column;
  readonly isConstant: boolean;
}

/** 1 where all operands have a value; undefined when they have everywhere. */
export function presence(operands: readonly Operand[], rows: number): Uint8Array | undefined {
  let present: Uint8Array | undefined;
  for (const { column, isConstant } of operands) {
    if (column.present === undefined) continue;
    if (isConstant) {
      if (column.present[0] === 0) return new Uint8Array(rows);
      continue;
    }
    if (present === undefined) present = column.present.slice(0, rows);
    else for (let i = 0; i < rows; i++) present[i]! &= column.present[i]!;
  }
  return present;
}

const comparisons: ReadonlySet<BinaryOperator> = new Set(['=', '!=', '<', '<=', '>', '>=']);

export function binary(
  op: BinaryOperator,
  a: Operand | undefined,
  b: Operand | undefined,
  count: number,
): Operand | undefined {
  let left = a;
  let right = b;
  // Beside a boolean, nothing is false.
  if (left === undefined && right?.column.type === 'boolean') left = never;
  if (right === undefined && left?.column.type === 'boolean') right = never;
  if (left === undefined || right === undefined) return comparisons.has(op) ? never : undefined;
  const isConstant = left.isConstant && right.isConstant;
  const rows = isConstant ? 1 : count;
  const column = combine(op, left, right, rows);
  return column === undefined ? undefined : { column, isConstant };
}

const never: Operand = {
  column: numberColumn('boolean', new Float64Array(1)),
  isConstant: true,
};

function combine(
  op: BinaryOperator,
  left: Operand,
  right: Operand,
  rows: number,
): Column | undefined {
  const a = left.column.type;
  const b = right.column.type;
  if (isNumber(a) && isNumber(b)) {
    if (comparisons.has(op)) return compareNumbers(op, left, right, rows);
    const type = binaryType(op, a, b);
    if (type === undefined) return undefined;
    if (type !== 'float' || op === '%') return integers(op, type, left, right, rows);
    return floats(op, left, right, rows);
  }
  if (a === 'string' && b === 'string') return compareTexts(op, left, right, rows);
  if (a === 'boolean' && b === 'boolean') return booleans(op, left, right, rows);
  return comparisons.has(op) ? numberColumn('boolean', new Float64Array(rows)) : undefined;
}

function doubles({ column }: Operand, rows: number): Float64Array {
  const { wide } = column;
  if (wide === undefined) return column.numbers;
  return Float64Array.from({ length: Math.min(rows, wide.length) }, (_, i) => Number(wide[i]!));
}

function compareNumbers(op: BinaryOperator, left: Operand, right: Operand, rows: number): Column {
  const result = new Float64Array(rows);
  const isWide = left.column.wide !== undefined || right.column.wide !== undefined;
  if (isWide && left.column.type !== 'float' && right.column.type !== 'float') {
    for (let i = 0; i < rows; i++) {
      const x = bigAt(left, i);
      const y = bigAt(right, i);
      result[i] = isOrdered(op, x < y ? -1 : x > y ? 1 : 0) ? 1 : 0;
    }
  } else {
    const x = doubles(left, rows);
    const y = doubles(right, rows);
    // 0 for a constant, so that its one row stands for all.
    const p = left.isConstant ? 0 : -1;
    const q = right.isConstant ? 0 : -1;
    switch (op) {
      case '=':
        for (let i = 0; i < rows; i++) result[i] = x[i & p]! === y[i & q]! ? 1 : 0;
        break;
      case '!=':
        for (let i = 0; i < rows; i++) result[i] = x[i & p]! !== y[i & q]! ? 1 : 0;
        break;
      case '<':
        for (let i = 0; i < rows; i++) result[i] = x[i & p]! < y[i & q]! ? 1 : 0;
        break;
      case '<=':
        for (let i = 0; i < rows; i++) result[i] = x[i & p]! <= y[i & q]! ? 1 : 0;
        break;
      case '>':
        for (let i = 0; i < rows; i++) result[i] = x[i & p]! > y[i & q]! ? 1 : 0;
        break;
      default:
        for (let i = 0; i < rows; i++) result[i] = x[i & p]! >= y[i & q]! ? 1 : 0;
    }
  }
  clearMissing(result, left, right, rows);
  return numberColumn('boolean', result);
}

function isOrdered(op: BinaryOperator, order: number): boolean {
  switch (op) {
    case '=':
      return order === 0;
    case '!=':
      return order !== 0;
    case '<':
      return order < 0;
    case '<=':
      return order <= 0;
    case '>':
      return order > 0;
    default:
      return order >= 0;
  }
}

/** A comparison with nothing is false. */
function clearMissing(result: Float64Array, left: Operand, right: Operand, rows: number): void {
  const present = presence([left, right], rows);
  if (present === undefined) return;
  for (let i = 0; i < rows; i++) if (present[i] === 0) result[i] = 0;
}

function bigAt({ column, isConstant }: Operand, row: number): bigint {
  const i = isConstant ? 0 : row;
  if (column.wide !== undefined) return column.wide[i]!;
  // Rows without a value may hold anything.
  const value = column.numbers[i]!;
  return Number.isInteger(value) ? BigInt(value) : 0n;
}

function floats(op: BinaryOperator, left: Operand, right: Operand, rows: number): Column {
  const x = doubles(left, rows);
  const y = doubles(right, rows);
  const p = left.isConstant ? 0 : -1;
  const q = right.isConstant ? 0 : -1;
  const result = new Float64Array(rows);
  switch (op) {
    case '+':
      for (let i = 0; i < rows; i++) result[i] = x[i & p]! + y[i & q]!;
      break;
    case '-':
      for (let i = 0; i < rows; i++) result[i] = x[i & p]! - y[i & q]!;
      break;
    case '*':
      for (let i = 0; i < rows; i++) result[i] = x[i & p]! * y[i & q]!;
      break;
    default:
      for (let i = 0; i < rows; i++) {
        const divisor = y[i & q]!;
        result[i] = divisor === 0 ? 0 : x[i & p]! / divisor;
      }
  }
  return numberColumn('float', result, presence([left, right], rows));
}

function integers(
  op: BinaryOperator,
  type: FieldType,
  left: Operand,
  right: Operand,
  rows: number,
): Column | undefined {
  const isWide = left.column.wide !== undefined || right.column.wide !== undefined;
  const present = presence([left, right], rows);
  const builder = new ColumnBuilder(type);
  const x = doubles(left, rows);
  const y = doubles(right, rows);
  for (let i = 0; i < rows; i++) {
    if (present !== undefined && present[i] === 0) {
      builder.pushNull();
      continue;
    }
    const u = x[left.isConstant ? 0 : i]!;
    const v = y[right.isConstant ? 0 : i]!;
    if (type === 'float') {
      builder.pushNumber(v === 0 ? 0 : u % v);
      continue;
    }
    if (!isWide) {
      const small = smallInteger(op, u, v);
      if (Number.isSafeInteger(small)) {
        builder.pushNumber(small);
        continue;
      }
    }
    const wide = wideInteger(op, bigAt(left, i), bigAt(right, i));
    builder.pushBig(type === 'unsigned' ? BigInt.asUintN(64, wide) : BigInt.asIntN(64, wide));
  }
  return builder.take();
}

/** NaN, or a number that is no safe integer, when doubles cannot tell. */
function smallInteger(op: BinaryOperator, a: number, b: number): number {
  switch (op) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    case '%':
      return b === 0 ? 0 : a % b;
    default: {
      if (a !== (a | 0) || b !== (b | 0)) return NaN;
      return op === '&' ? a & b : op === '|' ? a | b : a ^ b;
    }
  }
}

function wideInteger(op: BinaryOperator, a: bigint, b: bigint): bigint {
  switch (op) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    case '%':
      return b === 0n ? 0n : a % b;
    case '&':
      return a & b;
    case '|':
      return a | b;
    default:
      return a ^ b;
  }
}

/** Texts have no order, only sameness. */
function compareTexts(
  op: BinaryOperator,
  left: Operand,
  right: Operand,
  rows: number,
): Column | undefined {
  if (!comparisons.has(op)) return undefined;
  const result = new Float64Array(rows);
  if (op === '=' || op === '!=') {
    const x = left.column.texts!;
    const y = right.column.texts!;
    for (let i = 0; i < rows; i++) {
      const same = x[left.isConstant ? 0 : i] === y[right.isConstant ? 0 : i];
      result[i] = same === (op === '=') ? 1 : 0;
    }
    clearMissing(result, left, right, rows);
  }
  return numberColumn('boolean', result);
}

function booleans(
  op: BinaryOperator,
  left: Operand,
  right: Operand,
  rows: number,
): Column | undefined {
  const result = new Float64Array(rows);
  for (let i = 0; i < rows; i++) {
    const x = truthAt(left, i);
    const y = truthAt(right, i);
    switch (op) {
      case 'and':
      case '&':
        result[i] = x & y;
        break;
      case 'or':
      case '|':
        result[i] = x | y;
        break;
      case '!=':
      case '^':
        result[i] = x ^ y;
        break;
      case '=':
        result[i] = x === y ? 1 : 0;
        break;
      default:
        // No order between them, and no arithmetic.
        if (!comparisons.has(op)) return undefined;
    }
  }
  return numberColumn('boolean', result);
}

/** Beside a boolean, nothing is false. */
function truthAt({ column, isConstant }: Operand, row: number): number {
  const i = isConstant ? 0 : row;
  return column.present !== undefined && column.present[i] === 0 ? 0 : column.numbers[i]!;
}
