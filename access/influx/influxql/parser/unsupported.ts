// Statements about continuous queries and subscriptions: their syntax is checked, as clients rely on a
// syntax error being one, and each answers that it is not supported.

import { parseDurationClause } from './clauses.ts';
import { parseSelect } from './select.ts';
import type { TokenStream } from './token-stream.ts';

/** CREATE CONTINUOUS QUERY name ON database [RESAMPLE ...] BEGIN SELECT ... END */
export function parseCreateContinuousQuery(tokens: TokenStream): void {
  tokens.identifier();
  tokens.expect('ON');
  tokens.identifier();
  if (tokens.take('RESAMPLE')) parseResample(tokens);
  tokens.expectAll('BEGIN', 'SELECT');
  parseSelect(tokens);
  tokens.expect('END');
}

function parseResample(tokens: TokenStream): void {
  const every = tokens.take('EVERY');
  if (every) parseDurationClause(tokens);
  const span = tokens.take('FOR');
  if (span) parseDurationClause(tokens);
  if (!every && !span) tokens.unexpected(tokens.next(), ['EVERY', 'FOR']);
}

/** DROP CONTINUOUS QUERY name ON database */
export function parseDropContinuousQuery(tokens: TokenStream): void {
  tokens.identifier();
  tokens.expect('ON');
  tokens.identifier();
}

/** CREATE SUBSCRIPTION name ON database.policy DESTINATIONS ALL|ANY '...', ... */
export function parseCreateSubscription(tokens: TokenStream): void {
  parseDropSubscription(tokens);
  tokens.expect('DESTINATIONS');
  const mode = tokens.next();
  if (mode.kind !== 'ALL' && mode.kind !== 'ANY') tokens.unexpected(mode, ['ALL', 'ANY']);
  tokens.string();
  while (tokens.take(',')) tokens.string();
}

/** DROP SUBSCRIPTION name ON database.policy */
export function parseDropSubscription(tokens: TokenStream): void {
  tokens.identifier();
  tokens.expect('ON');
  tokens.identifier();
  tokens.expect('.');
  tokens.identifier();
}
