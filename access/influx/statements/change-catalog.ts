// CREATE, DROP and ALTER of databases and retention policies. The store validates the changes.

import type { MaybePromise } from '../../../universal-row/maybe-promise.ts';
import type { RetentionPolicyChange } from '../../../contracts/series-store.ts';
import type {
  CreateDatabaseStatement,
  RetentionPolicyClauses,
  RetentionPolicyStatement,
  Statement,
} from '../influxql/ast.ts';
import { QueryError } from '../influxql/result.ts';
import type { StatementContext } from './context.ts';

export function createDatabase(
  { database, policy }: CreateDatabaseStatement,
  { store }: StatementContext,
): MaybePromise<void> {
  checkName(database);
  if (policy === undefined) return store.change({ kind: 'createDatabase', database });
  const named = policy.name === '' ? {} : { name: policy.name };
  return store.change({
    kind: 'createDatabase',
    database,
    policy: { ...changeOf(policy), ...named },
  });
}

/** Names become parts of paths. */
function checkName(name: string): void {
  const isPath = name === '.' || name === '..' || /[/\\]/.test(name);
  if (name === '' || isPath || !isPrintable(name)) throw new QueryError('invalid name');
}

function isPrintable(text: string): boolean {
  return !/\p{Cc}/u.test(text);
}

function changeOf(clauses: RetentionPolicyClauses): RetentionPolicyChange {
  const { duration, replication, shardDuration } = clauses;
  return {
    ...(duration !== undefined && { duration }),
    ...(replication !== undefined && { replicaN: replication }),
    ...(shardDuration !== undefined && { shardGroupDuration: shardDuration }),
  };
}

export function changeRetentionPolicy(
  statement: RetentionPolicyStatement,
  { store }: StatementContext,
): MaybePromise<void> {
  const { kind, database, name } = statement;
  if (kind === 'createRetentionPolicy') checkName(name);
  if (store.database(database) === undefined) {
    throw new QueryError(`database not found: ${database}`);
  }
  const makeDefault = statement.makeDefault ? { makeDefault: true } : {};
  return store.change({ kind, database, name, policy: { ...changeOf(statement), ...makeDefault } });
}

/** Dropping something that does not exist succeeds. */
export function drop(
  statement: Extract<Statement, { kind: 'dropDatabase' | 'dropRetentionPolicy' }>,
  { store }: StatementContext,
): MaybePromise<void> {
  const database = store.database(statement.database);
  if (database === undefined) return;
  if (statement.kind === 'dropDatabase') {
    return store.change({ kind: 'dropDatabase', database: statement.database });
  }
  if (database.retentionPolicies.some(({ name }) => name === statement.name)) {
    const { kind, name } = statement;
    return store.change({ kind, database: statement.database, name });
  }
}
