// CREATE USER, DROP USER, SET PASSWORD, GRANT, REVOKE, SHOW USERS and SHOW GRANTS.

import type { Privilege, UserDefinition } from '../../../contracts/tenancy/definitions.ts';
import type { CreateUserStatement, PrivilegeStatement, Statement } from '../influxql/ast.ts';
import { QueryError, type ResultSeries } from '../influxql/result.ts';
import { table } from './answers.ts';
import type { StatementContext } from './context.ts';
import type { UserDirectory } from './user-directory.ts';

type UserStatement = Extract<
  Statement,
  { kind: 'createUser' | 'dropUser' | 'setPassword' | 'grant' | 'revoke' }
>;

export async function changeUsers(
  statement: UserStatement,
  context: StatementContext,
): Promise<void> {
  const directory = directoryOf(context);
  switch (statement.kind) {
    case 'createUser':
      return await createUser(statement, directory);
    case 'dropUser': {
      const { name: user } = expectUser(directory, statement.name);
      return await directory.change({ kind: 'dropUser', user });
    }
    case 'setPassword': {
      const { name: user } = expectUser(directory, statement.name);
      const password = statement.password.reveal();
      return await directory.change({ kind: 'setPassword', user, password });
    }
    case 'grant':
    case 'revoke':
      return await changePrivilege(statement, context, directory);
  }
}

function directoryOf({ users }: StatementContext): UserDirectory {
  if (users === undefined) throw new QueryError('there are no users here');
  return users;
}

function expectUser(directory: UserDirectory, name: string): UserDefinition {
  const user = directory.user(name);
  if (user === undefined) throw new QueryError('user not found');
  return user;
}

/** Made a second time just as it is, it is there already. */
async function createUser(statement: CreateUserStatement, directory: UserDirectory): Promise<void> {
  const { name, admin } = statement;
  if (name === '') throw new QueryError('username required');
  const password = statement.password.reveal();
  const existing = directory.user(name);
  if (existing === undefined) {
    return await directory.change({ kind: 'createUser', user: name, password, admin });
  }
  const isSame =
    existing.influxAdmin === admin && (await directory.hasPassword(existing, password));
  if (!isSame) throw new QueryError('user already exists');
}

async function changePrivilege(
  statement: PrivilegeStatement,
  { store }: StatementContext,
  directory: UserDirectory,
): Promise<void> {
  const { kind, database, privilege } = statement;
  const { name: user, grants } = expectUser(directory, statement.user);
  if (database === undefined) {
    return await directory.change({ kind: 'setAdmin', user, admin: kind === 'grant' });
  }
  if (store.database(database) === undefined) {
    throw new QueryError(`database not found: ${database}`);
  }
  const before = Object.hasOwn(grants, database) ? grants[database] : undefined;
  const after = kind === 'grant' ? privilege : without(before, privilege);
  if (after === before) return;
  await directory.change({ kind: 'setGrant', user, database, privilege: after });
}

/** Remaining privilege after a revocation. */
function without(before: Privilege | undefined, taken: Privilege): Privilege | undefined {
  if (taken === 'all' || before === taken) return undefined;
  if (before !== 'all') return before;
  return taken === 'read' ? 'write' : 'read';
}

/** Users with a privilege on the database. */
export function grantees(database: string, { users }: StatementContext): UserDefinition[] {
  return [...(users?.users() ?? [])].filter(({ grants }) => Object.hasOwn(grants, database));
}

/** Privileges on a dropped database go: the next one of that name is another. */
export async function revokeAll(database: string, context: StatementContext): Promise<void> {
  const directory = directoryOf(context);
  for (const { name: user } of grantees(database, context)) {
    await directory.change({ kind: 'setGrant', user, database, privilege: undefined });
  }
}

export function showUsers({ users }: StatementContext): ResultSeries[] {
  const rows = Array.from(users?.users() ?? [], ({ name, influxAdmin }) => [name, influxAdmin]);
  return [{ ...table(undefined, ['user', 'admin'], rows), omitEmptyValues: true }];
}

const privilegeWords = { read: 'READ', write: 'WRITE', all: 'ALL PRIVILEGES' } as const;

export function showGrants(name: string, context: StatementContext): ResultSeries[] {
  const { grants } = expectUser(directoryOf(context), name);
  const rows = Object.entries(grants)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([database, privilege]) => [database, privilegeWords[privilege]]);
  return [{ ...table(undefined, ['database', 'privilege'], rows), omitEmptyValues: true }];
}
