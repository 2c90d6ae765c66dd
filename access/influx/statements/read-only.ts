// The pod refuses changes of a read-only database from any protocol. Statements check before they
// begin, so that no change is left half done, and no work is wasted.

import { ReadOnlyError, type SeriesStore } from '../../../contracts/series-store.ts';
import type { Statement } from '../influxql/ast.ts';

/** Throws `ReadOnlyError` if the database is read-only. */
export function expectWritable(store: Pick<SeriesStore, 'database'>, database: string): void {
  if (store.database(database)?.isReadOnly !== true) return;
  throw new ReadOnlyError(`database is read-only: ${database}`);
}

/** The database in which the statement would change something that is there; '' for none. */
export function changedBy(statement: Statement, requestDatabase: string): string {
  switch (statement.kind) {
    case 'select':
      return statement.into === undefined ? '' : statement.into.database || requestDatabase;
    case 'delete':
    case 'dropSeries':
    case 'dropMeasurement':
      return requestDatabase;
    case 'dropDatabase':
    case 'createRetentionPolicy':
    case 'alterRetentionPolicy':
    case 'dropRetentionPolicy':
      return statement.database;
    default:
      return '';
  }
}
