// Clauses that several statements have: FROM, WHERE, ORDER BY, LIMIT and the like.

import type { Expression, MeasurementSource, Source } from '../ast.ts';
import { DurationError, parseDuration } from './durations.ts';
import { parseExpression, parseSegments } from './expressions.ts';
import { refuse, type TokenStream } from './token-stream.ts';

/** A list of measurements. */
function parseMeasurements(tokens: TokenStream): MeasurementSource[] {
  const sources = [parseMeasurement(tokens)];
  while (tokens.take(',')) sources.push(parseMeasurement(tokens));
  return sources;
}

export function parseOptionalFrom(tokens: TokenStream): Source[] {
  return tokens.take('FROM') ? parseMeasurements(tokens) : [];
}

/** m, /m/, rp.m, rp./m/, db.rp.m, db..m */
export function parseMeasurement(tokens: TokenStream): MeasurementSource {
  const whole = tokens.pattern();
  if (whole !== undefined) return measurement('', '', undefined, whole);
  const segments = parseSegments(tokens, tokens.identifier());
  const [first = '', second = '', third] = segments;
  if (third !== undefined) return measurement(first, second, third);
  const pattern = tokens.nextChar() === '/' ? tokens.pattern() : undefined;
  if (pattern !== undefined) {
    return segments.length === 1
      ? measurement('', first, undefined, pattern)
      : measurement(first, second, undefined, pattern);
  }
  return segments.length === 1 ? measurement('', '', first) : measurement('', first, second);
}

export function measurement(
  database: string,
  retentionPolicy: string,
  name: string | undefined,
  pattern?: MeasurementSource['pattern'],
): MeasurementSource {
  const isBackReference = name === undefined && pattern === undefined;
  return { kind: 'measurement', database, retentionPolicy, name, pattern, isBackReference };
}

export function parseWhere(tokens: TokenStream): Expression | undefined {
  return tokens.take('WHERE') ? parseExpression(tokens) : undefined;
}

/** ON database, or ''. */
export function parseOn(tokens: TokenStream): string {
  return tokens.take('ON') ? tokens.identifier() : '';
}

/** True for descending. Only time has an order. */
export function parseOrderBy(tokens: TokenStream): boolean {
  if (!tokens.take('ORDER')) return false;
  tokens.expect('BY');
  const first = tokens.next();
  let descending = first.kind === 'DESC';
  if (first.kind === 'IDENT') {
    descending = parseDirection(tokens);
    if (first.text !== 'time') onlyTime();
  } else if (!descending && first.kind !== 'ASC') {
    tokens.unexpected(first, ['identifier', 'ASC', 'DESC']);
  }
  if (!tokens.is(',')) return descending;
  while (tokens.take(',')) {
    tokens.identifier();
    parseDirection(tokens);
  }
  return onlyTime();
}

function parseDirection(tokens: TokenStream): boolean {
  if (tokens.take('DESC')) return true;
  tokens.take('ASC');
  return false;
}

function onlyTime(): never {
  return refuse('only ORDER BY time supported at this time');
}

/** LIMIT n and its like; 0 when it is left out. */
export function parseCount(tokens: TokenStream, keyword: string): number {
  if (!tokens.take(keyword)) return 0;
  const token = tokens.expect('INTEGER', ['integer']);
  if (token.text.startsWith('-')) tokens.fail(`${keyword} must be >= 0`, token);
  return Math.min(Number(token.text), Number.MAX_SAFE_INTEGER);
}

/** A duration in a clause of a retention policy; INF is 0. */
export function parseDurationClause(tokens: TokenStream): bigint {
  const token = tokens.next();
  if (token.kind === 'INF') return 0n;
  if (token.kind !== 'DURATIONVAL') tokens.unexpected(token, ['duration']);
  try {
    return parseDuration(token.text);
  } catch (error) {
    if (error instanceof DurationError) tokens.fail(error.message, token);
    throw error;
  }
}

const maxInt64 = 2n ** 63n - 1n;
const maxUint64 = 2n ** 64n - 1n;

/** A whole number within bounds, as of REPLICATION. */
export function parseInteger(tokens: TokenStream, min: number, max: number): number {
  const token = tokens.expect('INTEGER', ['integer']);
  if (exceeds(token.text, maxInt64)) {
    tokens.fail(`strconv.Atoi: parsing "${token.text}": value out of range`, token);
  }
  const value = Number(token.text);
  if (value < min || value > max) {
    tokens.fail(`invalid value ${token.text}: must be ${min} <= n <= ${max}`, token);
  }
  return value;
}

/** A number of a shard or a query. */
export function parseIdNumber(tokens: TokenStream): number {
  const token = tokens.expect('INTEGER', ['integer']);
  if (exceeds(token.text, maxUint64)) {
    tokens.fail(`strconv.ParseUint: parsing "${token.text}": value out of range`, token);
  }
  return Number(token.text);
}

function exceeds(digits: string, max: bigint): boolean {
  return digits.length > 64 || BigInt(digits) > max;
}
