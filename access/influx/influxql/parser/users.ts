// Statements about users and their privileges.

import type { Privilege } from '../../../../contracts/tenancy/definitions.ts';
import type { PrivilegeStatement, ShowStatement, Statement } from '../ast.ts';
import { Secret } from '../secret.ts';
import { plainShow } from './show.ts';
import type { TokenStream } from './token-stream.ts';

/** CREATE USER name WITH PASSWORD '...' [WITH ALL PRIVILEGES] */
export function parseCreateUser(tokens: TokenStream): Statement {
  const name = tokens.identifier();
  tokens.expectAll('WITH', 'PASSWORD');
  const password = new Secret(tokens.string());
  const admin = tokens.take('WITH');
  if (admin) tokens.expectAll('ALL', 'PRIVILEGES');
  return { kind: 'createUser', name, password, admin };
}

export function parseDropUser(tokens: TokenStream): Statement {
  return { kind: 'dropUser', name: tokens.identifier() };
}

/** SET PASSWORD FOR name = '...' */
export function parseSetPassword(tokens: TokenStream): Statement {
  const name = tokens.identifier();
  tokens.expect('=');
  return { kind: 'setPassword', name, password: new Secret(tokens.string()) };
}

/** GRANT privilege [ON database] TO name, REVOKE privilege [ON database] FROM name */
export function parsePrivilege(
  tokens: TokenStream,
  kind: PrivilegeStatement['kind'],
): PrivilegeStatement {
  const direction = kind === 'grant' ? 'TO' : 'FROM';
  const privilege = parsePrivilegeWord(tokens);
  if (tokens.take('ON')) {
    const database = tokens.identifier();
    tokens.expect(direction);
    return { kind, privilege, database, user: tokens.identifier() };
  }
  const isAll = privilege === 'all';
  if (!isAll || !tokens.take(direction)) {
    tokens.unexpected(tokens.next(), isAll ? ['ON', direction] : ['ON']);
  }
  return { kind, privilege, database: undefined, user: tokens.identifier() };
}

function parsePrivilegeWord(tokens: TokenStream): Privilege {
  const word = tokens.next();
  switch (word.kind) {
    case 'READ':
      return 'read';
    case 'WRITE':
      return 'write';
    case 'ALL':
      tokens.take('PRIVILEGES');
      return 'all';
    default:
      return tokens.unexpected(word, ['READ', 'WRITE', 'ALL [PRIVILEGES]']);
  }
}

/** SHOW GRANTS FOR name */
export function parseShowGrants(tokens: TokenStream): ShowStatement {
  return { ...plainShow('grants'), user: tokens.identifier() };
}
