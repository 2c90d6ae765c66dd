// SELECT.

import type {
  Dimension,
  Expression,
  Fill,
  MeasurementSource,
  SelectField,
  SelectStatement,
  Source,
} from '../ast.ts';
import { measurement, parseCount, parseMeasurement, parseOrderBy, parseWhere } from './clauses.ts';
import { parseExpression, parseSegments } from './expressions.ts';
import { type ReduceContext, reduce } from './reduce.ts';
import { looksLikeTime, parseTimeLiteral } from './time-literal.ts';
import { isTimeZone } from './time-zone.ts';
import { refuse, type TokenStream } from './token-stream.ts';
import { inOneGo, type Slices } from '../../../../universal-row/slices.ts';

/** Items of a list between two yields. */
const sliceItems = 256;

/** Parses the rest of a statement after SELECT. */
export function parseSelect(tokens: TokenStream): SelectStatement {
  return inOneGo(selectInSlices(tokens));
}

/** As `parseSelect`: lists may be long, and the first of them is parsed by code that is not compiled yet. */
export function* selectInSlices(tokens: TokenStream): Slices<SelectStatement> {
  const fields = yield* listInSlices(tokens, parseField);
  const into = tokens.take('INTO') ? parseTarget(tokens) : undefined;
  tokens.expect('FROM');
  const sources = yield* sourcesInSlices(tokens);
  const where = parseWhere(tokens);
  const dimensions = yield* dimensionsInSlices(tokens);
  const fill = parseFill(tokens);
  const descending = parseOrderBy(tokens);
  const limit = parseCount(tokens, 'LIMIT');
  const offset = parseCount(tokens, 'OFFSET');
  const seriesLimit = parseCount(tokens, 'SLIMIT');
  const seriesOffset = parseCount(tokens, 'SOFFSET');
  const timeZone = parseTimeZone(tokens);
  return {
    kind: 'select',
    fields,
    into,
    sources,
    where: where && withNow(where, tokens.options.now),
    groupBy: readDimensions(tokens, dimensions, timeZone),
    fill,
    descending,
    limit,
    offset,
    seriesLimit,
    seriesOffset,
    timeZone,
  };
}

function* listInSlices<T>(tokens: TokenStream, parse: (tokens: TokenStream) => T): Slices<T[]> {
  const items = [parse(tokens)];
  while (tokens.take(',')) {
    if (items.length % sliceItems === 0) yield;
    items.push(parse(tokens));
  }
  return items;
}

function parseField(tokens: TokenStream): SelectField {
  const pattern = tokens.pattern();
  let expression: Expression;
  if (pattern !== undefined) {
    expression = { kind: 'pattern', pattern };
  } else {
    const start = tokens.peek();
    expression = parseExpression(tokens);
    const op = findComparison(expression);
    if (op !== undefined) {
      const where = tokens.describe(start);
      refuse(
        `invalid operator ${op} in SELECT clause at ${where}; operator is intended for WHERE clause`,
      );
    }
  }
  return { expression, alias: tokens.take('AS') ? tokens.identifier() : undefined };
}

/** The first operator that belongs in WHERE. */
function findComparison(expression: Expression): string | undefined {
  switch (expression.kind) {
    case 'binary':
      if (!/^[-+*/%&|^]$/.test(expression.op)) return expression.op.toUpperCase();
      return findComparison(expression.left) ?? findComparison(expression.right);
    case 'parentheses':
      return findComparison(expression.inner);
    case 'call':
      for (const arg of expression.args) {
        const found = findComparison(arg);
        if (found !== undefined) return found;
      }
      return undefined;
    default:
      return undefined;
  }
}

/**
 * Parses the target after INTO: m, rp.m or db.rp.m; :MEASUREMENT stands for the name of the source.
 */
function parseTarget(tokens: TokenStream): MeasurementSource {
  const segments = parseSegments(tokens, tokens.identifier());
  if (segments.length < 3 && tokens.isAdjacent(':')) {
    tokens.expectAll(':', 'MEASUREMENT');
    return segments.length === 1
      ? measurement('', segments[0]!, undefined)
      : measurement(segments[0]!, segments[1]!, undefined);
  }
  const name = segments.pop();
  const policy = segments.pop() ?? '';
  return measurement(segments.pop() ?? '', policy, name);
}

function* sourcesInSlices(tokens: TokenStream): Slices<Source[]> {
  const sources = [yield* sourceInSlices(tokens)];
  while (tokens.take(',')) {
    if (sources.length % sliceItems === 0) yield;
    sources.push(yield* sourceInSlices(tokens));
  }
  return sources;
}

function* sourceInSlices(tokens: TokenStream): Slices<Source> {
  const pattern = tokens.pattern();
  if (pattern !== undefined) return measurement('', '', undefined, pattern);
  if (!tokens.take('(')) return parseMeasurement(tokens);
  return yield* tokens.nestedInSlices(function* () {
    tokens.expect('SELECT');
    const select = yield* selectInSlices(tokens);
    tokens.expect(')');
    return { kind: 'subquery' as const, select };
  });
}

/** now() as the time it is. */
export function withNow(expression: Expression, now: bigint): Expression {
  switch (expression.kind) {
    case 'call':
      if (expression.name === 'now' && expression.args.length === 0) {
        return { kind: 'time', value: now };
      }
      return expression;
    case 'parentheses': {
      const inner = withNow(expression.inner, now);
      return inner === expression.inner ? expression : { ...expression, inner };
    }
    case 'binary': {
      const left = withNow(expression.left, now);
      const right = withNow(expression.right, now);
      if (left === expression.left && right === expression.right) return expression;
      return { ...expression, left, right };
    }
    default:
      return expression;
  }
}

export function parseDimensions(tokens: TokenStream): Expression[] {
  return inOneGo(dimensionsInSlices(tokens));
}

function* dimensionsInSlices(tokens: TokenStream): Slices<Expression[]> {
  if (!tokens.take('GROUP')) return [];
  tokens.expect('BY');
  return yield* listInSlices(tokens, parseDimension);
}

function parseDimension(tokens: TokenStream): Expression {
  const pattern = tokens.pattern();
  return pattern === undefined ? parseExpression(tokens) : { kind: 'pattern', pattern };
}

/** Dimensions that make no sense are no syntax error: the statement answers with the message. */
export function readDimensions(
  tokens: TokenStream,
  dimensions: readonly Expression[],
  timeZone: string | undefined,
): Dimension[] {
  const context = { now: tokens.options.now, timeZone };
  const read: Dimension[] = [];
  let hasTime = false;
  for (const dimension of dimensions) {
    const result = readDimension(dimension, context);
    if (typeof result === 'string') {
      tokens.defer(result);
    } else if (result.kind === 'time' && hasTime) {
      tokens.defer('multiple time dimensions not allowed');
    } else {
      hasTime ||= result.kind === 'time';
      read.push(result);
    }
  }
  return read;
}

function readDimension(dimension: Expression, context: ReduceContext): Dimension | string {
  switch (dimension.kind) {
    case 'reference':
      return dimension.name.toLowerCase() === 'time'
        ? 'time() is a function and expects at least one argument'
        : { kind: 'tag', name: dimension.name };
    case 'pattern':
      return { kind: 'pattern', pattern: dimension.pattern };
    case 'wildcard':
      return { kind: 'wildcard' };
    case 'parentheses':
      return readDimension(dimension.inner, context);
    case 'call':
      return readTimeDimension(dimension.name, dimension.args, context);
    default:
      return 'only time and tag dimensions allowed';
  }
}

function readTimeDimension(
  name: string,
  args: readonly Expression[],
  context: ReduceContext,
): Dimension | string {
  if (name !== 'time') return 'only time() calls allowed in dimensions';
  const [first, second] = args;
  if (first === undefined || args.length > 2) return 'time dimension expected 1 or 2 arguments';
  const width = reduce(first, context);
  if (width.kind !== 'duration') return 'time dimension must have duration argument';
  const interval = width.value;
  if (interval <= 0n) return 'time dimension must have a positive duration';
  if (second === undefined) return { kind: 'time', interval, offset: 0n };
  const offset = offsetOf(second, interval, context);
  return typeof offset === 'string' ? offset : { kind: 'time', interval, offset };
}

function offsetOf(argument: Expression, interval: bigint, context: ReduceContext): bigint | string {
  const offset = reduce(argument, context);
  if (offset.kind === 'call') return 'time dimension offset function must be now()';
  if (offset.kind === 'duration') return offset.value % interval;
  const text = offset.kind === 'string' ? offset.value : undefined;
  const time =
    offset.kind === 'time'
      ? offset.value
      : text !== undefined && looksLikeTime(text)
        ? parseTimeLiteral(text, context.timeZone)
        : undefined;
  if (time === undefined) return 'time dimension offset must be duration or now()';
  return ((time % interval) + interval) % interval;
}

const fills = ['null', 'none', 'previous', 'linear'] as const;

function parseFill(tokens: TokenStream): Fill {
  if (!isCalled(tokens, 'fill')) return { kind: 'default' };
  const call = parseExpression(tokens);
  if (call.kind !== 'call') return refuse('fill must be a function call');
  const [value] = call.args;
  if (value === undefined || call.args.length > 1) {
    return refuse('fill requires an argument, e.g.: 0, null, none, previous, linear');
  }
  if (value.kind === 'number' || value.kind === 'integer') {
    return { kind: 'number', value: Number(value.value) };
  }
  const name = value.kind === 'reference' ? value.name.toLowerCase() : undefined;
  const kind = fills.find((each) => each === name);
  return kind === undefined ? refuse('expected number argument in fill()') : { kind };
}

function isCalled(tokens: TokenStream, name: string): boolean {
  const token = tokens.peek();
  return token.kind === 'IDENT' && token.text.toLowerCase() === name;
}

function parseTimeZone(tokens: TokenStream): string | undefined {
  if (!isCalled(tokens, 'tz')) return undefined;
  const call = parseExpression(tokens);
  if (call.kind !== 'call') return refuse('tz must be a function call');
  const [zone] = call.args;
  if (zone === undefined || call.args.length > 1) return refuse('tz requires exactly one argument');
  if (zone.kind !== 'string') return refuse('expected string argument in tz()');
  // The empty name is UTC as well.
  const name = zone.value === '' ? 'UTC' : zone.value;
  return isTimeZone(name) ? name : refuse(`unable to find time zone ${zone.value}`);
}
