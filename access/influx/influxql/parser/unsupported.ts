// Statements about users, continuous queries and subscriptions: their syntax is checked, as clients
// rely on a syntax error being one, and each answers that it is not supported.

import { parseDurationClause } from './clauses.ts';
import { parseSelect } from './select.ts';
import type { TokenStream } from './token-stream.ts';

/** CREATE USER name WITH PASSWORD '...' [WITH ALL PRIVILEGES] */
export function parseCreateUser(tokens: TokenStream): void {
  tokens.identifier();
  tokens.expectAll('WITH', 'PASSWORD');
  tokens.string();
  if (tokens.take('WITH')) tokens.expectAll('ALL', 'PRIVILEGES');
}

/** A name and no more: DROP USER, SHOW GRANTS FOR. */
export function parseName(tokens: TokenStream): void {
  tokens.identifier();
}

/** SET PASSWORD FOR name = '...' */
export function parseSetPassword(tokens: TokenStream): void {
  tokens.identifier();
  tokens.expect('=');
  tokens.string();
}

/** GRANT privilege [ON database] TO name, REVOKE privilege [ON database] FROM name */
export function parsePrivilege(tokens: TokenStream, user: 'TO' | 'FROM'): void {
  const privilege = tokens.next();
  const all = privilege.kind === 'ALL';
  if (!all && privilege.kind !== 'READ' && privilege.kind !== 'WRITE') {
    tokens.unexpected(privilege, ['READ', 'WRITE', 'ALL [PRIVILEGES]']);
  }
  if (all) tokens.take('PRIVILEGES');
  if (tokens.take('ON')) {
    tokens.identifier();
    tokens.expect(user);
  } else if (!all || !tokens.take(user)) {
    tokens.unexpected(tokens.next(), all ? ['ON', user] : ['ON']);
  }
  tokens.identifier();
}

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
