// Statements with changes: databases, retention policies, and their contents.

import type { DeleteStatement, RetentionPolicyClauses, Source, Statement } from '../ast.ts';
import {
  parseDurationClause,
  parseIdNumber,
  parseInteger,
  parseOptionalFrom,
  parseWhere,
} from './clauses.ts';
import { parseSelect, withNow } from './select.ts';
import { refuse, type TokenStream } from './token-stream.ts';

const maxReplication = 2 ** 31 - 1;

export function parseCreateDatabase(tokens: TokenStream): Statement {
  const database = tokens.identifier();
  if (!tokens.take('WITH')) return { kind: 'createDatabase', database, policy: undefined };
  const next = tokens.peek();
  const options = ['DURATION', 'NAME', 'REPLICATION', 'SHARD'];
  if (!options.includes(next.kind)) tokens.unexpected(next, options);
  const policy = {
    duration: tokens.take('DURATION') ? parseDurationClause(tokens) : undefined,
    replication: tokens.take('REPLICATION') ? parseInteger(tokens, 1, maxReplication) : undefined,
    shardDuration: tokens.take('SHARD') ? parseShardDuration(tokens) : undefined,
    name: tokens.take('NAME') ? tokens.identifier() : '',
  };
  return { kind: 'createDatabase', database, policy };
}

function parseShardDuration(tokens: TokenStream): bigint {
  tokens.expect('DURATION');
  return parseDurationClause(tokens);
}

/** Shard duration of a policy, which cannot be infinite. */
function parseFiniteShardDuration(tokens: TokenStream): bigint {
  tokens.expect('DURATION');
  if (tokens.is('INF')) tokens.fail('invalid duration INF for shard duration', tokens.peek());
  return parseDurationClause(tokens);
}

export function parseDropDatabase(tokens: TokenStream): Statement {
  return { kind: 'dropDatabase', database: tokens.identifier() };
}

export function parseCreateRetentionPolicy(tokens: TokenStream): Statement {
  const name = tokens.identifier();
  tokens.expect('ON');
  const database = tokens.identifier();
  tokens.expect('DURATION');
  const duration = parseDurationClause(tokens);
  tokens.expect('REPLICATION');
  const replication = parseInteger(tokens, 1, maxReplication);
  const shardDuration = tokens.take('SHARD') ? parseFiniteShardDuration(tokens) : undefined;
  const makeDefault = tokens.take('DEFAULT');
  return {
    kind: 'createRetentionPolicy',
    name,
    database,
    duration,
    replication,
    shardDuration,
    makeDefault,
  };
}

/** The options may come in any order, each once. */
export function parseAlterRetentionPolicy(tokens: TokenStream): Statement {
  const name = tokens.take('DEFAULT') ? 'default' : tokens.identifier();
  tokens.expect('ON');
  const database = tokens.identifier();
  const clauses: { -readonly [key in keyof RetentionPolicyClauses]: RetentionPolicyClauses[key] } =
    { duration: undefined, replication: undefined, shardDuration: undefined };
  const found = new Set<string>();
  for (;;) {
    const { kind } = tokens.peek();
    if (found.has(kind)) tokens.fail(`found duplicate ${kind} option`, tokens.peek());
    if (tokens.take('DURATION')) clauses.duration = parseDurationClause(tokens);
    else if (tokens.take('REPLICATION')) {
      clauses.replication = parseInteger(tokens, 1, maxReplication);
    } else if (tokens.take('SHARD')) clauses.shardDuration = parseFiniteShardDuration(tokens);
    else if (!tokens.take('DEFAULT')) break;
    found.add(kind);
  }
  if (found.size === 0) {
    tokens.unexpected(tokens.next(), ['DURATION', 'REPLICATION', 'SHARD', 'DEFAULT']);
  }
  const makeDefault = found.has('DEFAULT');
  return { kind: 'alterRetentionPolicy', name, database, ...clauses, makeDefault };
}

export function parseDropRetentionPolicy(tokens: TokenStream): Statement {
  const name = tokens.identifier();
  tokens.expect('ON');
  return { kind: 'dropRetentionPolicy', name, database: tokens.identifier() };
}

export function parseDropMeasurement(tokens: TokenStream): Statement {
  return { kind: 'dropMeasurement', measurement: tokens.identifier() };
}

export function parseDropShard(tokens: TokenStream): Statement {
  return { kind: 'dropShard', id: parseIdNumber(tokens) };
}

/** DELETE and DROP SERIES, in the database that the request names. */
export function parseDelete(tokens: TokenStream, kind: DeleteStatement['kind']): Statement {
  const start = tokens.peek();
  const sources = parseOptionalFrom(tokens);
  for (const source of sources) refuseQualified(source);
  const where = parseWhere(tokens);
  if (sources.length === 0 && where === undefined) tokens.unexpected(start, ['FROM', 'WHERE']);
  return { kind, sources, where: where && withNow(where, tokens.options.now) };
}

function refuseQualified(source: Source): void {
  if (source.kind === 'subquery') return;
  if (source.retentionPolicy !== '') refuse('retention policy not supported at line 1, char 1');
  if (source.database !== '') refuse('database not supported at line 1, char 1');
}

export function parseKillQuery(tokens: TokenStream): Statement {
  const id = parseIdNumber(tokens);
  return { kind: 'killQuery', id, host: tokens.take('ON') ? tokens.identifier() : undefined };
}

export function parseExplain(tokens: TokenStream): Statement {
  const analyze = tokens.take('ANALYZE');
  tokens.expect('SELECT');
  return { kind: 'explain', analyze, select: parseSelect(tokens) };
}
