// Environment of a running statement.

import type { Pause } from './answers.ts';
import type { Database, RetentionPolicy, SeriesStore } from '../../../contracts/series-store.ts';
import type { SelectStatement, Statement } from '../influxql/ast.ts';
import { QueryError, type StatementResult, type Value } from '../influxql/result.ts';
import type { Principal } from './principal.ts';
import type { QueryRegistry } from './query-registry.ts';
import type { UserDirectory } from './user-directory.ts';

export interface StatementContext {
  readonly store: SeriesStore;
  /** Database of the request, '' when it names none. */
  readonly database: string;
  readonly retentionPolicy: string;
  /** Nanoseconds since 1970. */
  readonly now: bigint;
  readonly queries: QueryRegistry;
  /** The request is a GET. Statements with changes run all the same, with a warning. */
  readonly readOnlyRequest: boolean;
  readonly server: ServerFacts;
  /** The principal; undefined without authentication: everything is allowed. */
  readonly principal?: Principal | undefined;
  /** Absent where there are none. */
  readonly users?: UserDirectory | undefined;
  /** Pauses long statements; absent where they yield at each opportunity. */
  readonly pause?: Pause | undefined;
  /** Runs SELECT and EXPLAIN. */
  select(statement: SelectStatement | Extract<Statement, { kind: 'explain' }>): StatementResult;
}

/** Facts for SHOW SHARDS, SHOW STATS and SHOW DIAGNOSTICS. */
export interface ServerFacts {
  readonly version: string;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  readonly hostname: string;
  /** Reveals nothing about the process and its machine, which other tenants share. */
  readonly isShared?: boolean;
  /** By database and time. Without it, none are shown. */
  shards?(): readonly ShardFacts[];
  /** Besides those that are counted here. */
  statistics?(): readonly Statistic[];
}

export interface ShardFacts {
  readonly id: number;
  readonly database: string;
  readonly retentionPolicy: string;
  /** Nanoseconds since 1970; `end` is not part of it. */
  readonly start: bigint;
  readonly end: bigint;
}

export interface Statistic {
  readonly name: string;
  readonly tags?: Readonly<Record<string, string>>;
  readonly values: Readonly<Record<string, Value>>;
}

/** A database by name, or the request's. Throws `QueryError` when there is none. */
export function databaseOf(context: StatementContext, name: string): Database {
  const asked = name || context.database;
  if (asked === '') throw new QueryError('database name required');
  const database = context.store.database(asked);
  if (database === undefined) throw new QueryError(`database not found: ${asked}`);
  return database;
}

/** The name of a policy, or of the default one when `name` is ''. */
export function policyOf(database: Database, name: string): string {
  const asked = name || database.defaultRetentionPolicy;
  const policy: RetentionPolicy | undefined = database.retentionPolicies.find(
    (each) => each.name === asked,
  );
  if (policy === undefined) throw new QueryError(`retention policy not found: ${asked}`);
  return asked;
}
