// Constant folding: `now() - 1h` becomes a time, `2 * 3` a number. Other expressions stay.

import type { BinaryOperator, Expression } from '../ast.ts';
import { looksLikeTime, parseTimeLiteral } from './time-literal.ts';

export interface ReduceContext {
  /** The request's time, nanoseconds since 1970. */
  readonly now: bigint;
  /** IANA name of the zone that times without an offset are in; UTC when undefined. */
  readonly timeZone?: string | undefined;
}

export function reduce(expression: Expression, context: ReduceContext): Expression {
  switch (expression.kind) {
    case 'binary': {
      const left = reduce(expression.left, context);
      const right = reduce(expression.right, context);
      const folded = fold(expression.op, left, right, context.timeZone);
      if (folded !== undefined) return folded;
      if (left === expression.left && right === expression.right) return expression;
      return { ...expression, left, right };
    }
    case 'parentheses': {
      const inner = reduce(expression.inner, context);
      if (inner.kind !== 'binary') return inner;
      return inner === expression.inner ? expression : { ...expression, inner };
    }
    case 'call':
      if (expression.name === 'now' && expression.args.length === 0) return time(context.now);
      return { ...expression, args: expression.args.map((arg) => reduce(arg, context)) };
    default:
      return expression;
  }
}

const time = (value: bigint): Expression => ({ kind: 'time', value: BigInt.asIntN(64, value) });
const duration = (value: bigint): Expression => ({
  kind: 'duration',
  value: BigInt.asIntN(64, value),
});
const integer = (value: bigint): Expression => ({
  kind: 'integer',
  value: BigInt.asIntN(64, value),
});
const number = (value: number): Expression => ({ kind: 'number', value });
const boolean = (value: boolean): Expression => ({ kind: 'boolean', value });

function fold(
  op: BinaryOperator,
  left: Expression,
  right: Expression,
  zone: string | undefined,
): Expression | undefined {
  if (left.kind === 'string' && right.kind === 'string') {
    if (op === '=') return boolean(left.value === right.value);
    if (op === '!=') return boolean(left.value !== right.value);
    if (op === '+') return { kind: 'string', value: left.value + right.value };
  }
  // A string next to a time, a duration or a whole number is a time if it can be.
  const a = asTime(left, right, zone);
  const b = asTime(right, left, zone);
  if (a === undefined || b === undefined) return undefined;

  if (a.kind === 'boolean' && b.kind === 'boolean') return foldBooleans(op, a.value, b.value);
  if (a.kind === 'number' || b.kind === 'number') return foldNumbers(op, a, b);
  if (!isWhole(a) || !isWhole(b)) return undefined;
  const compared = compare(op, a.value, b.value);
  if (compared !== undefined) return boolean(compared);
  if (a.kind === 'integer' && b.kind === 'integer') return foldIntegers(op, a.value, b.value);
  return foldTimes(op, a, b);
}

type Whole = Extract<Expression, { kind: 'integer' | 'duration' | 'time' }>;

function isWhole(expression: Expression): expression is Whole {
  return (
    expression.kind === 'integer' || expression.kind === 'duration' || expression.kind === 'time'
  );
}

/** `side` itself, or the time it stands for; undefined when it is a string that stands for none. */
function asTime(
  side: Expression,
  other: Expression,
  zone: string | undefined,
): Expression | undefined {
  if (side.kind !== 'string') return side;
  if (!isWhole(other) && other.kind !== 'string') return undefined;
  if (!looksLikeTime(side.value)) return undefined;
  const value = parseTimeLiteral(side.value, zone);
  return value === undefined ? undefined : { kind: 'time', value };
}

function compare<T extends bigint | number>(op: BinaryOperator, a: T, b: T): boolean | undefined {
  switch (op) {
    case '=':
      return a === b;
    case '!=':
      return a !== b;
    case '<':
      return a < b;
    case '<=':
      return a <= b;
    case '>':
      return a > b;
    case '>=':
      return a >= b;
    default:
      return undefined;
  }
}

function foldBooleans(op: BinaryOperator, a: boolean, b: boolean): Expression | undefined {
  switch (op) {
    case 'and':
      return boolean(a && b);
    case 'or':
      return boolean(a || b);
    case '=':
      return boolean(a === b);
    case '!=':
      return boolean(a !== b);
    default:
      return undefined;
  }
}

function foldNumbers(op: BinaryOperator, a: Expression, b: Expression): Expression | undefined {
  // 1.5 * 2m and 2m / 1.5 are durations.
  if (a.kind === 'duration' && b.kind === 'number') return scale(op, a.value, b.value);
  if (b.kind === 'duration' && a.kind === 'number' && op === '*') {
    return scale(op, b.value, a.value);
  }
  const x = a.kind === 'number' || a.kind === 'integer' ? Number(a.value) : undefined;
  const y = b.kind === 'number' || b.kind === 'integer' ? Number(b.value) : undefined;
  if (x === undefined || y === undefined) return undefined;
  const compared = compare(op, x, y);
  if (compared !== undefined) return boolean(compared);
  switch (op) {
    case '+':
      return number(x + y);
    case '-':
      return number(x - y);
    case '*':
      return number(x * y);
    case '/':
      return number(y === 0 ? 0 : x / y);
    case '%':
      return number(y === 0 ? 0 : x % y);
    default:
      return undefined;
  }
}

function scale(op: BinaryOperator, value: bigint, by: number): Expression | undefined {
  if (op === '/' && by === 0) return duration(0n);
  const scaled = op === '*' ? Number(value) * by : op === '/' ? Number(value) / by : Number.NaN;
  return Number.isFinite(scaled) ? duration(BigInt(Math.trunc(scaled))) : undefined;
}

function foldIntegers(op: BinaryOperator, a: bigint, b: bigint): Expression | undefined {
  switch (op) {
    case '+':
      return integer(a + b);
    case '-':
      return integer(a - b);
    case '*':
      return integer(a * b);
    case '/':
      return number(b === 0n ? 0 : Number(a) / Number(b));
    case '%':
      return integer(b === 0n ? 0n : a % b);
    case '&':
      return integer(a & b);
    case '|':
      return integer(a | b);
    case '^':
      return integer(a ^ b);
    default:
      return undefined;
  }
}

/** One side at least is a time or a duration. */
function foldTimes(op: BinaryOperator, a: Whole, b: Whole): Expression | undefined {
  const times = Number(a.kind === 'time') + Number(b.kind === 'time');
  if (op === '+' && times < 2) return (times === 1 ? time : duration)(a.value + b.value);
  if (op === '-') {
    if (times === 0 || times === 2) return duration(a.value - b.value);
    return a.kind === 'time' ? time(a.value - b.value) : undefined;
  }
  if (times > 0 || (a.kind === 'duration' && b.kind === 'duration')) return undefined;
  if (op === '*') return duration(a.value * b.value);
  if (op === '/' && a.kind === 'duration') return duration(b.value === 0n ? 0n : a.value / b.value);
  return undefined;
}
