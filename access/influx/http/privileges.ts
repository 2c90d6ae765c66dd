// The privileges that a statement needs.

import type {
  SelectStatement,
  ShowKind,
  ShowStatement,
  Source,
  Statement,
} from '../influxql/ast.ts';
import { printStatement } from '../influxql/parser/print.ts';
import type { Principal } from '../statements/principal.ts';
import { HttpError } from './http-error.ts';

type Privilege =
  | { readonly kind: 'admin' }
  | { readonly kind: 'READ' | 'WRITE'; readonly database: string };

const admin: readonly Privilege[] = [{ kind: 'admin' }];

// About the server, not about a database.
const adminShows: ReadonlySet<ShowKind> = new Set<ShowKind>([
  'users',
  'grants',
  'subscriptions',
  'shards',
  'shardGroups',
  'stats',
  'diagnostics',
]);

/** Throws the `HttpError` with which InfluxDB refuses the whole query. */
export function authorize(
  principal: Principal,
  statements: readonly Statement[],
  database: string,
): void {
  if (principal.isAdmin) return;
  for (const statement of statements) {
    for (const privilege of privilegesOf(statement, database)) {
      if (allows(principal, privilege)) continue;
      const required =
        privilege.kind === 'admin'
          ? 'admin privilege'
          : `${privilege.kind} on ${privilege.database}`;
      throw new HttpError(
        403,
        `error authorizing query: ${principal.name} not authorized to execute statement ` +
          `'${printStatement(statement)}', requires ${required}`,
      );
    }
  }
}

function allows(principal: Principal, privilege: Privilege): boolean {
  switch (privilege.kind) {
    case 'admin':
      return principal.isAdmin;
    case 'READ':
      return principal.mayRead(privilege.database);
    case 'WRITE':
      return principal.mayWrite(privilege.database);
  }
}

function privilegesOf(statement: Statement, database: string): readonly Privilege[] {
  switch (statement.kind) {
    case 'select':
      return ofSelect(statement, database);
    case 'explain':
      return ofSelect(statement.select, database);
    case 'show':
      return ofShow(statement, database);
    case 'delete':
    case 'dropSeries':
      return [{ kind: 'WRITE', database }];
    case 'dropRetentionPolicy':
      return [{ kind: 'WRITE', database: statement.database }];
    case 'unsupported':
      // The statement can only return its error.
      return [];
    default:
      return admin;
  }
}

function ofSelect(select: SelectStatement, database: string): readonly Privilege[] {
  const privileges = select.sources.flatMap((source) => ofSource(source, database));
  if (select.into === undefined) return privileges;
  return [...privileges, { kind: 'WRITE', database: select.into.database || database }];
}

/** InfluxDB looks at ON only, and tells of the tags of databases that a source names. */
function ofShow(show: ShowStatement, database: string): readonly Privilege[] {
  // The answer lists only names that the caller may see: see `mayKnow`.
  if (show.what === 'databases') return [];
  if (adminShows.has(show.what)) return admin;
  const sources = [...show.sources, ...(show.withMeasurement ? [show.withMeasurement] : [])];
  return [
    { kind: 'READ', database: show.database || database },
    ...sources.flatMap((source) => ofSource(source, show.database || database)),
  ];
}

function ofSource(source: Source, database: string): readonly Privilege[] {
  return source.kind === 'subquery'
    ? ofSelect(source.select, database)
    : [{ kind: 'READ', database: source.database || database }];
}
