// InfluxQL: text to statements. Syntax errors have the messages of InfluxDB 1.6.

import { type Slices, unwaiting } from '../../../../universal-row/slices.ts';
import type { Statement } from '../ast.ts';
import {
  parseAlterRetentionPolicy,
  parseCreateDatabase,
  parseCreateRetentionPolicy,
  parseDelete,
  parseDropDatabase,
  parseDropMeasurement,
  parseDropRetentionPolicy,
  parseDropShard,
  parseExplain,
  parseKillQuery,
} from './definitions.ts';
import { selectInSlices } from './select.ts';
import {
  parseShowCardinality,
  parseShowFieldKeys,
  parseShowMeasurements,
  parseShowModule,
  parseShowRetentionPolicies,
  parseShowSeries,
  parseShowTagKeys,
  parseShowTagValues,
  plainShow,
} from './show.ts';
import { type ParseOptions, TokenStream } from './token-stream.ts';
import {
  parseCreateContinuousQuery,
  parseCreateSubscription,
  parseDropContinuousQuery,
  parseDropSubscription,
} from './unsupported.ts';
import {
  parseCreateUser,
  parseDropUser,
  parsePrivilege,
  parseSetPassword,
  parseShowGrants,
} from './users.ts';

/** The statements of a request. Throws `ParseError` if one of them cannot be understood. */
export function parseQuery(text: string, options: ParseOptions): Statement[] {
  return [...parseStatements(text, options)].filter((statement) => statement !== undefined);
}

/** As `parseQuery`, one statement after the other, and undefined within a long one, so that others can run in between. */
export function* parseStatements(
  text: string,
  options: ParseOptions,
): Generator<Statement | undefined> {
  const tokens = new TokenStream(text, options);
  while (tokens.take(';'));
  while (!tokens.is('EOF')) {
    tokens.beginStatement();
    yield yield* statementInSlices(tokens);
    if (!tokens.is('EOF')) tokens.expect(';');
    while (tokens.take(';'));
  }
}

function* statementInSlices(tokens: TokenStream): Generator<undefined, Statement> {
  const start = tokens.position();
  const parsed = parseBy(statements, tokens);
  const statement = 'kind' in parsed ? parsed : yield* unwaiting(parsed);
  const error = tokens.takeDeferred();
  if (error === undefined) return statement;
  return { kind: 'unsupported', text: tokens.textSince(start), error };
}

/** Keywords in the order in which messages list them, with their parsers. */
interface Keywords {
  readonly [keyword: string]: Keywords | ((tokens: TokenStream) => Statement | Slices<Statement>);
}

function parseBy(keywords: Keywords, tokens: TokenStream): Statement | Slices<Statement> {
  const token = tokens.next();
  const next = Object.hasOwn(keywords, token.kind) ? keywords[token.kind] : undefined;
  if (next === undefined) return tokens.unexpected(token, Object.keys(keywords));
  return typeof next === 'function' ? next(tokens) : parseBy(next, tokens);
}

/** A statement of which only the syntax is known. */
function unsupported(
  what: string,
  parse: (tokens: TokenStream) => void,
): (tokens: TokenStream) => Statement {
  return (tokens) => {
    parse(tokens);
    return { kind: 'unsupported', text: what, error: `${what} is not supported yet` };
  };
}

const statements: Keywords = {
  SELECT: selectInSlices,
  DELETE: (tokens) => parseDelete(tokens, 'delete'),
  SHOW: {
    CONTINUOUS: { QUERIES: () => plainShow('continuousQueries') },
    DATABASES: () => plainShow('databases'),
    DIAGNOSTICS: (tokens) => parseShowModule(tokens, 'diagnostics'),
    FIELD: {
      KEY: (tokens) => parseShowCardinality(tokens, 'fieldKeyCardinality'),
      KEYS: parseShowFieldKeys,
    },
    GRANTS: { FOR: parseShowGrants },
    MEASUREMENT: (tokens) => parseShowCardinality(tokens, 'measurementCardinality'),
    MEASUREMENTS: parseShowMeasurements,
    QUERIES: () => plainShow('queries'),
    RETENTION: { POLICIES: parseShowRetentionPolicies },
    SERIES: parseShowSeries,
    SHARD: { GROUPS: () => plainShow('shardGroups') },
    SHARDS: () => plainShow('shards'),
    STATS: (tokens) => parseShowModule(tokens, 'stats'),
    SUBSCRIPTIONS: () => plainShow('subscriptions'),
    TAG: {
      KEY: (tokens) => parseShowCardinality(tokens, 'tagKeyCardinality'),
      KEYS: parseShowTagKeys,
      VALUES: parseShowTagValues,
    },
    USERS: () => plainShow('users'),
  },
  CREATE: {
    CONTINUOUS: { QUERY: unsupported('CREATE CONTINUOUS QUERY', parseCreateContinuousQuery) },
    DATABASE: parseCreateDatabase,
    USER: parseCreateUser,
    RETENTION: { POLICY: parseCreateRetentionPolicy },
    SUBSCRIPTION: unsupported('CREATE SUBSCRIPTION', parseCreateSubscription),
  },
  DROP: {
    CONTINUOUS: { QUERY: unsupported('DROP CONTINUOUS QUERY', parseDropContinuousQuery) },
    DATABASE: parseDropDatabase,
    MEASUREMENT: parseDropMeasurement,
    RETENTION: { POLICY: parseDropRetentionPolicy },
    SERIES: (tokens) => parseDelete(tokens, 'dropSeries'),
    SHARD: parseDropShard,
    SUBSCRIPTION: unsupported('DROP SUBSCRIPTION', parseDropSubscription),
    USER: parseDropUser,
  },
  EXPLAIN: parseExplain,
  GRANT: (tokens) => parsePrivilege(tokens, 'grant'),
  REVOKE: (tokens) => parsePrivilege(tokens, 'revoke'),
  ALTER: { RETENTION: { POLICY: parseAlterRetentionPolicy } },
  SET: { PASSWORD: { FOR: parseSetPassword } },
  KILL: { QUERY: parseKillQuery },
};
