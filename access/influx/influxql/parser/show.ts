// SHOW.

import type { Expression, ShowKind, ShowStatement } from '../ast.ts';
import {
  parseCount,
  parseMeasurement,
  parseOn,
  parseOptionalFrom,
  parseOrderBy,
  parseWhere,
} from './clauses.ts';
import { parseDimensions, readDimensions, withNow } from './select.ts';
import type { TokenStream } from './token-stream.ts';

export function plainShow(what: ShowKind): ShowStatement {
  return {
    kind: 'show',
    what,
    database: '',
    sources: [],
    where: undefined,
    withKey: undefined,
    withMeasurement: undefined,
    groupBy: [],
    exact: false,
    descending: false,
    limit: 0,
    offset: 0,
    seriesLimit: 0,
    seriesOffset: 0,
    module: '',
    user: '',
  };
}

export function parseShowMeasurements(tokens: TokenStream): ShowStatement {
  return {
    ...plainShow('measurements'),
    database: parseOn(tokens),
    withMeasurement: tokens.take('WITH') ? parseWithMeasurement(tokens) : undefined,
    where: parseWhereNow(tokens),
    ...parseOrderAndLimit(tokens),
  };
}

function parseWithMeasurement(tokens: TokenStream): ShowStatement['withMeasurement'] {
  tokens.expect('MEASUREMENT');
  const op = tokens.next();
  if (op.kind !== '=' && op.kind !== '=~') tokens.unexpected(op, ['=', '=~']);
  return parseMeasurement(tokens);
}

function parseWhereNow(tokens: TokenStream): Expression | undefined {
  const where = parseWhere(tokens);
  return where && withNow(where, tokens.options.now);
}

function parseOrderAndLimit(
  tokens: TokenStream,
): Pick<ShowStatement, 'descending' | 'limit' | 'offset'> {
  return {
    descending: parseOrderBy(tokens),
    limit: parseCount(tokens, 'LIMIT'),
    offset: parseCount(tokens, 'OFFSET'),
  };
}

export function parseShowRetentionPolicies(tokens: TokenStream): ShowStatement {
  return { ...plainShow('retentionPolicies'), database: parseOn(tokens) };
}

export function parseShowSeries(tokens: TokenStream): ShowStatement {
  const exact = tokens.take('EXACT');
  if (tokens.take('CARDINALITY')) return parseCardinality(tokens, 'seriesCardinality', exact);
  return {
    ...plainShow('series'),
    database: parseOn(tokens),
    sources: parseOptionalFrom(tokens),
    where: parseWhereNow(tokens),
    ...parseOrderAndLimit(tokens),
  };
}

/** Parses the rest of a statement after CARDINALITY. */
function parseCardinality(tokens: TokenStream, what: ShowKind, exact: boolean): ShowStatement {
  return {
    ...plainShow(what),
    exact,
    database: parseOn(tokens),
    sources: parseOptionalFrom(tokens),
    withKey: what === 'tagValuesCardinality' ? parseWithKey(tokens) : undefined,
    where: parseWhereNow(tokens),
    groupBy: readDimensions(tokens, parseDimensions(tokens), undefined),
    limit: parseCount(tokens, 'LIMIT'),
    offset: parseCount(tokens, 'OFFSET'),
  };
}

/**
 * Parses the rest of a statement after SHOW MEASUREMENT, SHOW TAG KEY or SHOW FIELD KEY, of which
 * only cardinalities exist.
 */
export function parseShowCardinality(tokens: TokenStream, what: ShowKind): ShowStatement {
  const exact = tokens.take('EXACT');
  tokens.expect('CARDINALITY', exact ? ['CARDINALITY'] : ['EXACT', 'CARDINALITY']);
  return parseCardinality(tokens, what, exact);
}

export function parseShowTagKeys(tokens: TokenStream): ShowStatement {
  return {
    ...plainShow('tagKeys'),
    database: parseOn(tokens),
    sources: parseOptionalFrom(tokens),
    where: parseWhereNow(tokens),
    ...parseOrderAndLimit(tokens),
    seriesLimit: parseCount(tokens, 'SLIMIT'),
    seriesOffset: parseCount(tokens, 'SOFFSET'),
  };
}

export function parseShowFieldKeys(tokens: TokenStream): ShowStatement {
  return {
    ...plainShow('fieldKeys'),
    database: parseOn(tokens),
    sources: parseOptionalFrom(tokens),
    ...parseOrderAndLimit(tokens),
  };
}

export function parseShowTagValues(tokens: TokenStream): ShowStatement {
  if (tokens.take('EXACT')) {
    tokens.expect('CARDINALITY');
    return parseCardinality(tokens, 'tagValuesCardinality', true);
  }
  if (tokens.take('CARDINALITY')) return parseCardinality(tokens, 'tagValuesCardinality', false);
  return {
    ...plainShow('tagValues'),
    database: parseOn(tokens),
    sources: parseOptionalFrom(tokens),
    withKey: parseWithKey(tokens),
    where: parseWhereNow(tokens),
    ...parseOrderAndLimit(tokens),
  };
}

function parseWithKey(tokens: TokenStream): ShowStatement['withKey'] {
  tokens.expectAll('WITH', 'KEY');
  const op = tokens.next();
  switch (op.kind) {
    case 'IN': {
      tokens.expect('(');
      const names = [tokens.identifier()];
      while (tokens.take(',')) names.push(tokens.identifier());
      tokens.expect(')');
      return { op: 'in', names };
    }
    case '=':
    case '!=':
      return { op: op.kind, names: [tokens.identifier()] };
    case '=~':
    case '!~': {
      const pattern = tokens.pattern();
      if (pattern === undefined) return tokens.unexpected(tokens.next(), ['regex']);
      return { op: op.kind, pattern };
    }
    default:
      return tokens.unexpected(op, ['IN', '=', '=~']);
  }
}

/** SHOW STATS and SHOW DIAGNOSTICS. */
export function parseShowModule(tokens: TokenStream, what: ShowKind): ShowStatement {
  return { ...plainShow(what), module: tokens.take('FOR') ? tokens.string() : '' };
}
