// Splits WHERE into the time range, conditions on tags, and conditions on rows.

import type { SeriesFilter } from '../../../contracts/series-store.ts';
import { maxTime, minTime } from '../../../contracts/series-store.ts';
import type { BinaryOperator, Expression } from './ast.ts';
import { print } from './parser/print.ts';
import { type ReduceContext, reduce } from './parser/reduce.ts';
import { formatTime, looksLikeTime, parseTimeLiteral } from './parser/time-literal.ts';
import { QueryError } from './result.ts';

/** Both ends belong to it; undefined where the condition sets no bound. */
interface TimeRange {
  readonly from: bigint | undefined;
  readonly to: bigint | undefined;
}

interface TimeSplit extends TimeRange {
  /** The condition without its comparisons of time, constants worked out; undefined when none is left. */
  readonly rest: Expression | undefined;
}

interface TagSplit {
  /** Which series can have matching rows. Without terms, `and` is all of them and `or` is none. */
  readonly filter: SeriesFilter | undefined;
  /** Condition on the rows of those series, which may also compare tags; undefined if all rows match. */
  readonly residual: Expression | undefined;
}

const everything: TimeSplit = { from: undefined, to: undefined, rest: undefined };

/**
 * Extracts the time range from the whole condition. All comparisons of time apply together, even
 * under OR. Throws `QueryError` for values that cannot be compared with time.
 */
export function splitTime(where: Expression | undefined, context: ReduceContext): TimeSplit {
  if (where === undefined) return everything;
  const split = splitTimeOf(where, context);
  if (split.rest?.kind === 'boolean' && split.rest.value) return { ...split, rest: undefined };
  return split;
}

function splitTimeOf(condition: Expression, context: ReduceContext): TimeSplit {
  switch (condition.kind) {
    case 'binary':
      if (condition.op === 'and' || condition.op === 'or') {
        const left = splitTimeOf(condition.left, context);
        const right = splitTimeOf(condition.right, context);
        return {
          from: later(left.from, right.from),
          to: earlier(left.to, right.to),
          rest: join(condition.op, left.rest, right.rest),
        };
      }
      if (isTime(condition.left)) {
        return { ...timeRange(condition.op, condition.right, context), rest: undefined };
      }
      if (isTime(condition.right)) {
        const op = mirrored[condition.op] ?? condition.op;
        return { ...timeRange(op, condition.left, context), rest: undefined };
      }
      return { ...everything, rest: reduce(condition, context) };
    case 'parentheses': {
      const split = splitTimeOf(condition.inner, context);
      const inner = split.rest;
      if (inner?.kind !== 'binary') return split;
      return { ...split, rest: { kind: 'parentheses', inner } };
    }
    case 'boolean':
      return { ...everything, rest: condition };
    default:
      throw new QueryError(`invalid condition expression: ${print(condition)}`);
  }
}

const mirrored: { readonly [op in BinaryOperator]?: BinaryOperator } = {
  '<': '>',
  '<=': '>=',
  '>': '<',
  '>=': '<=',
};

function isTime(expression: Expression): boolean {
  return expression.kind === 'reference' && expression.name.toLowerCase() === 'time';
}

function later(a: bigint | undefined, b: bigint | undefined): bigint | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return a > b ? a : b;
}

function earlier(a: bigint | undefined, b: bigint | undefined): bigint | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return a < b ? a : b;
}

/** A side that was only time is dropped, regardless of the operator. */
function join(
  op: 'and' | 'or',
  left: Expression | undefined,
  right: Expression | undefined,
): Expression | undefined {
  if (left === undefined) return right;
  if (right === undefined) return left;
  // true AND x is x, true OR x is true; the other way round with false.
  if (left.kind === 'boolean') return left.value === (op === 'and') ? right : left;
  if (right.kind === 'boolean') return right.value === (op === 'and') ? left : right;
  return { kind: 'binary', op, left, right };
}

/** The range of `time op operand`. */
function timeRange(op: BinaryOperator, operand: Expression, context: ReduceContext): TimeRange {
  const value = timeOf(operand, context);
  switch (op) {
    case '>':
      return { from: atLeast(value + 1n), to: undefined };
    case '>=':
      return { from: atLeast(value), to: undefined };
    case '<':
      return { from: undefined, to: atMost(value - 1n) };
    case '<=':
      return { from: undefined, to: atMost(value) };
    case '=':
      return { from: atLeast(value), to: atMost(value) };
    default:
      throw new QueryError(`invalid time comparison operator: ${op.toUpperCase()}`);
  }
}

const atLeast = (value: bigint): bigint => (value < minTime ? minTime : value);
const atMost = (value: bigint): bigint => (value > maxTime ? maxTime : value);

function timeOf(operand: Expression, context: ReduceContext): bigint {
  if (operand.kind === 'string' && looksLikeTime(operand.value)) {
    const value = parseTimeLiteral(operand.value, context.timeZone);
    if (value === undefined) throw new QueryError('invalid timestamp string');
    return validTime(value);
  }
  const reduced = reduce(operand, context);
  switch (reduced.kind) {
    case 'time':
      return validTime(reduced.value);
    case 'number':
      return BigInt.asIntN(64, BigInt(Math.trunc(reduced.value)));
    case 'duration':
      return reduced.value;
    case 'integer':
      if (reduced.value === BigInt.asIntN(64, reduced.value)) return reduced.value;
  }
  throw new QueryError(
    `invalid operation: time and *influxql.${literalNames[reduced.kind]} are not compatible`,
  );
}

function validTime(value: bigint): bigint {
  if (value > maxTime) throw new QueryError(`time ${seconds(value)} overflows time literal`);
  if (value < minTime) throw new QueryError(`time ${seconds(value)} underflows time literal`);
  return value;
}

const seconds = (value: bigint): string => formatTime(value).replace(/\.\d+/, '');

/** InfluxDB's names for the kinds of expressions, as they appear in error texts. */
const literalNames: Readonly<Record<Expression['kind'], string>> = {
  reference: 'VarRef',
  wildcard: 'Wildcard',
  pattern: 'RegexLiteral',
  number: 'NumberLiteral',
  // Only one beyond 63 bits gets that far.
  integer: 'UnsignedLiteral',
  string: 'StringLiteral',
  boolean: 'BooleanLiteral',
  duration: 'DurationLiteral',
  time: 'TimeLiteral',
  parameter: 'BoundParameter',
  call: 'Call',
  distinct: 'Distinct',
  parentheses: 'ParenExpr',
  binary: 'BinaryExpr',
};

const all: SeriesFilter = { kind: 'and', terms: [] };
const none: SeriesFilter = { kind: 'or', terms: [] };

/**
 * Extracts the conditions on tags from a condition without time. `isTag` is called for names
 * without a cast.
 */
export function splitTags(
  condition: Expression | undefined,
  isTag: (name: string) => boolean,
): TagSplit {
  if (condition === undefined) return { filter: undefined, residual: undefined };
  const { filter, residual } = splitTagsOf(condition, isTag);
  return { filter: filter === all ? undefined : filter, residual };
}

/** A filter that is implied, `all` at the least, and no residual when it says everything. */
interface Implied {
  readonly filter: SeriesFilter;
  readonly residual: Expression | undefined;
}

function splitTagsOf(condition: Expression, isTag: (name: string) => boolean): Implied {
  if (condition.kind === 'parentheses') {
    const split = splitTagsOf(condition.inner, isTag);
    return split.residual === condition.inner ? { ...split, residual: condition } : split;
  }
  if (condition.kind === 'boolean') {
    return { filter: condition.value ? all : none, residual: undefined };
  }
  if (condition.kind !== 'binary') return { filter: all, residual: condition };
  if (condition.op === 'and' || condition.op === 'or') {
    const left = splitTagsOf(condition.left, isTag);
    const right = splitTagsOf(condition.right, isTag);
    if (condition.op === 'and') {
      return {
        filter: both(left.filter, right.filter),
        residual: joinResiduals(condition, left.residual, right.residual),
      };
    }
    const exact = left.residual === undefined && right.residual === undefined;
    return {
      filter: either(left.filter, right.filter),
      residual: exact ? undefined : condition,
    };
  }
  return compareTag(condition, isTag) ?? { filter: all, residual: condition };
}

function joinResiduals(
  condition: Extract<Expression, { kind: 'binary' }>,
  left: Expression | undefined,
  right: Expression | undefined,
): Expression | undefined {
  if (left === undefined || right === undefined) return left ?? right;
  if (left === condition.left && right === condition.right) return condition;
  return { kind: 'binary', op: 'and', left, right };
}

function both(a: SeriesFilter, b: SeriesFilter): SeriesFilter {
  if (a === none || b === none) return none;
  if (a === all) return b;
  if (b === all) return a;
  return { kind: 'and', terms: [...termsOf('and', a), ...termsOf('and', b)] };
}

function either(a: SeriesFilter, b: SeriesFilter): SeriesFilter {
  if (a === all || b === all) return all;
  if (a === none) return b;
  if (b === none) return a;
  return { kind: 'or', terms: [...termsOf('or', a), ...termsOf('or', b)] };
}

/** a AND (b AND c) as one list. Chains are balanced trees, so copying costs n log n. */
function termsOf(kind: 'and' | 'or', filter: SeriesFilter): readonly SeriesFilter[] {
  return filter.kind === kind ? filter.terms : [filter];
}

function compareTag(
  condition: Extract<Expression, { kind: 'binary' }>,
  isTag: (name: string) => boolean,
): Implied | undefined {
  const { op } = condition;
  const [reference, value] =
    condition.left.kind === 'reference'
      ? [condition.left, condition.right]
      : [condition.right, condition.left];
  if (reference.kind !== 'reference') return undefined;
  const { cast, name: tag } = reference;
  if (cast === undefined ? !isTag(tag) : cast !== 'tag') return undefined;
  return implied(tag, op, value);
}

function implied(tag: string, op: BinaryOperator, value: Expression): Implied | undefined {
  const exact = (filter: SeriesFilter): Implied => ({ filter, residual: undefined });
  switch (value.kind) {
    case 'string':
      if (op === '=') return exact({ kind: 'equal', tag, value: value.value });
      if (op === '!=') return exact({ kind: 'notEqual', tag, value: value.value });
      // Tags have no order.
      return exact(none);
    case 'pattern': {
      const { regexp, source } = value.pattern;
      const kind = op === '=~' ? 'match' : 'notMatch';
      return exact({ kind, tag, pattern: source, matches: (text) => regexp.test(text) });
    }
    case 'number':
    case 'integer':
    case 'boolean':
    case 'duration':
    case 'time':
      // A tag is a string, and no string is equal to these, nor unequal.
      return exact(none);
    default:
      return undefined;
  }
}
