// Expressions. Operators bind, from loose to tight: OR, AND, comparisons, + - | ^, * / % &.

import type { BinaryOperator, Cast, Expression } from '../ast.ts';
import { ParseError } from '../result.ts';
import { DurationError, parseDuration } from './durations.ts';
import type { Token } from './lexer.ts';
import { quoteName } from './print.ts';
import { refuse, type TokenStream } from './token-stream.ts';

const operators: Readonly<Record<string, { op: BinaryOperator; level: number }>> = {
  OR: { op: 'or', level: 1 },
  AND: { op: 'and', level: 2 },
  '=': { op: '=', level: 3 },
  '!=': { op: '!=', level: 3 },
  '=~': { op: '=~', level: 3 },
  '!~': { op: '!~', level: 3 },
  '<': { op: '<', level: 3 },
  '<=': { op: '<=', level: 3 },
  '>': { op: '>', level: 3 },
  '>=': { op: '>=', level: 3 },
  '+': { op: '+', level: 4 },
  '-': { op: '-', level: 4 },
  '|': { op: '|', level: 4 },
  '^': { op: '^', level: 4 },
  '*': { op: '*', level: 5 },
  '/': { op: '/', level: 5 },
  '%': { op: '%', level: 5 },
  '&': { op: '&', level: 5 },
};

/** Operators of one chain; recursion over trees goes as deep as chains are long. */
const maxChain = 500;

/** Largest height of a tree, to bound recursion. */
const maxHeight = 1000;

export function parseExpression(tokens: TokenStream): Expression {
  const start = tokens.peek();
  const expression = parseOperators(tokens, 1);
  if (heightOf(expression) > maxHeight) tokens.fail('nested too deeply', start);
  return expression;
}

/** Level by level, as a walk down could be too deep itself. */
function heightOf(expression: Expression): number {
  let height = 0;
  for (let level = [expression]; level.length > 0; height++) level = level.flatMap(childrenOf);
  return height;
}

function childrenOf(expression: Expression): readonly Expression[] {
  switch (expression.kind) {
    case 'binary':
      return [expression.left, expression.right];
    case 'parentheses':
      return [expression.inner];
    case 'call':
      return expression.args;
    default:
      return [];
  }
}

/** Operands joined by operators that bind as tightly as `level`, or tighter. */
function parseOperators(tokens: TokenStream, level: number): Expression {
  let left = parseOperand(tokens);
  for (let chain = 0; ; chain++) {
    const token = tokens.peek();
    const operator = operators[token.kind];
    if (operator === undefined || operator.level < level) return left;
    if (chain > maxChain) tokens.fail('nested too deeply', token);
    const { op } = operator;
    if (op === 'and' || op === 'or') {
      const terms = [left];
      while (tokens.take(token.kind)) terms.push(parseOperators(tokens, operator.level + 1));
      left = balance(op, terms, 0, terms.length);
      continue;
    }
    tokens.next();
    const right =
      op === '=~' || op === '!~'
        ? parsePattern(tokens)
        : parseOperators(tokens, operator.level + 1);
    left = { kind: 'binary', op, left, right };
  }
}

/** Long chains of AND and OR, as dashboards make them, as a shallow tree. */
function balance(
  op: 'and' | 'or',
  terms: readonly Expression[],
  from: number,
  to: number,
): Expression {
  if (to - from === 1) return terms[from]!;
  const middle = (from + to) >>> 1;
  const left = balance(op, terms, from, middle);
  return { kind: 'binary', op, left, right: balance(op, terms, middle, to) };
}

function parsePattern(tokens: TokenStream): Expression {
  const pattern = tokens.pattern();
  if (pattern === undefined) return tokens.unexpected(tokens.next(), ['regex']);
  return { kind: 'pattern', pattern };
}

function parseOperand(tokens: TokenStream): Expression {
  const token = tokens.next();
  switch (token.kind) {
    case '(':
      return tokens.nested(() => {
        const inner = parseOperators(tokens, 1);
        tokens.expect(')');
        return { kind: 'parentheses', inner };
      });
    case 'IDENT':
      if (tokens.isAdjacent('(')) return parseCall(tokens, token.text);
      return parseReference(tokens, token.text);
    case 'DISTINCT':
      return parseDistinct(tokens);
    case 'STRING':
      return { kind: 'string', value: token.text };
    case 'NUMBER':
      return parseNumber(tokens, token);
    case 'INTEGER':
      return { kind: 'integer', value: parseInteger(tokens, token) };
    case 'TRUE':
    case 'FALSE':
      return { kind: 'boolean', value: token.kind === 'TRUE' };
    case 'DURATIONVAL':
      return { kind: 'duration', value: durationOf(token) };
    case 'REGEX':
      return { kind: 'pattern', pattern: tokens.compile(token) };
    case '*':
      return parseWildcard(tokens);
    case '+':
    case '-':
      return parseSigned(tokens, token.kind);
    default:
      return tokens.unexpected(token, ['identifier', 'string', 'number', 'bool']);
  }
}

function parseNumber(tokens: TokenStream, token: Token): Expression {
  const value = Number(token.text);
  if (!Number.isFinite(value)) tokens.fail('unable to parse number', token);
  return { kind: 'number', value };
}

/** Up to 64 bits, signed or unsigned. */
function parseInteger(tokens: TokenStream, token: Token): bigint {
  // Leading zeros count for nothing, and a long run of digits is not worth the conversion.
  const digits = token.text.replace(/^0+(?=\d)/, '');
  const value = digits.length > 20 ? 1n << 64n : BigInt(digits);
  if (value >= 1n << 64n) tokens.fail('unable to parse integer', token);
  return value;
}

function durationOf(token: Token): bigint {
  try {
    return parseDuration(token.text);
  } catch (error) {
    if (error instanceof DurationError) return refuse(error.message);
    throw error;
  }
}

function parseSigned(tokens: TokenStream, sign: '+' | '-'): Expression {
  const next = tokens.peek();
  if (!['NUMBER', 'INTEGER', 'DURATIONVAL', '(', 'IDENT'].includes(next.kind)) {
    tokens.unexpected(next, ['identifier', 'number', 'duration', '(']);
  }
  const operand = parseOperand(tokens);
  switch (operand.kind) {
    case 'number':
      return sign === '-' ? { ...operand, value: -operand.value } : operand;
    case 'integer':
    case 'duration': {
      if (sign === '+') return operand;
      const value = -operand.value;
      if (value < -(1n << 63n)) throw underflow(operand.value);
      return { ...operand, value };
    }
    default: {
      const one: Expression = { kind: 'integer', value: sign === '-' ? -1n : 1n };
      // In parentheses, so that it stays one operand when it is printed.
      const inner: Expression = { kind: 'binary', op: '*', left: one, right: operand };
      return { kind: 'parentheses', inner };
    }
  }
}

function underflow(value: bigint): ParseError {
  return new ParseError(`error parsing query: constant -${value} underflows int64`);
}

function parseDistinct(tokens: TokenStream): Expression {
  if (tokens.isAdjacent('(')) return parseCall(tokens, 'distinct');
  const token = tokens.next();
  if (token.kind === 'IDENT' && token.spaced) return { kind: 'distinct', field: token.text };
  return tokens.unexpected(token, token.spaced ? ['identifier'] : ['(', 'identifier']);
}

function parseWildcard(tokens: TokenStream): Expression {
  if (!tokens.isAdjacent('::')) return { kind: 'wildcard', only: undefined };
  tokens.next();
  const token = tokens.next();
  if (token.kind === 'TAG') return { kind: 'wildcard', only: 'tag' };
  if (token.kind === 'FIELD') return { kind: 'wildcard', only: 'field' };
  return tokens.unexpected(token, ['field', 'tag']);
}

/** The arguments of a call, of which the name is read. */
function parseCall(tokens: TokenStream, name: string): Expression {
  return tokens.nested(() => {
    tokens.expect('(');
    const args: Expression[] = [];
    const first = tokens.pattern();
    if (first === undefined && tokens.take(')')) {
      return { kind: 'call', name: name.toLowerCase(), args };
    }
    args.push(
      first === undefined ? parseOperators(tokens, 1) : { kind: 'pattern', pattern: first },
    );
    while (tokens.take(',')) {
      const pattern = tokens.pattern();
      args.push(pattern === undefined ? parseOperators(tokens, 1) : { kind: 'pattern', pattern });
    }
    tokens.expect(')');
    return { kind: 'call', name: name.toLowerCase(), args };
  });
}

const casts: ReadonlyMap<string, Cast> = new Map(
  (['float', 'integer', 'unsigned', 'string', 'boolean'] as const).map((cast) => [cast, cast]),
);

function parseReference(tokens: TokenStream, first: string): Expression {
  const name = parseSegments(tokens, first).join('.');
  if (!tokens.isAdjacent('::')) return { kind: 'reference', name, cast: undefined };
  tokens.next();
  const token = tokens.next();
  if (token.kind === 'FIELD') return { kind: 'reference', name, cast: 'field' };
  if (token.kind === 'TAG') return { kind: 'reference', name, cast: 'tag' };
  const cast = token.kind === 'IDENT' ? casts.get(token.text.toLowerCase()) : undefined;
  if (cast !== undefined) return { kind: 'reference', name, cast };
  return token.kind === 'IDENT'
    ? tokens.unexpected(token, [...casts.keys(), 'field', 'tag'])
    : tokens.unexpected(token, ['float', 'integer', 'string', 'boolean', 'field', 'tag']);
}

/** a.b.c, of which the first is read; between dots there may be nothing. */
export function parseSegments(tokens: TokenStream, first: string): string[] {
  const segments = [first];
  while (tokens.isAdjacent('.')) {
    tokens.next();
    const next = tokens.nextChar();
    // A regular expression, or :MEASUREMENT.
    if (next === '/' || next === ':') break;
    segments.push(next === '.' ? '' : tokens.identifier());
  }
  if (segments.length > 3) {
    const last = quoteName(segments.at(-1)!);
    const all = [...segments.slice(0, -1).map((segment) => `"${segment}"`), last].join('.');
    refuse(`too many segments in ${all} at line 1, char 1`);
  }
  return segments;
}
