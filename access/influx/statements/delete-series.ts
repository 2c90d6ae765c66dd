// DELETE, DROP SERIES and DROP MEASUREMENT: in the request's database, in all its retention policies.

import type { Slices } from '../../../universal-row/slices.ts';
import type { SeriesFilter } from '../../../contracts/series-store.ts';
import type { DeleteStatement } from '../influxql/ast.ts';
import { QueryError } from '../influxql/result.ts';
import type { StatementContext } from './context.ts';
import { mentionsTime, narrow, type Narrowed, targetsOf } from './targets.ts';

export function* deleteSeries(statement: DeleteStatement, context: StatementContext): Slices<void> {
  const { kind, sources, where } = statement;
  const { store } = context;
  const policies = requestDatabase(context);
  if (kind === 'dropSeries' && mentionsTime(where)) {
    throw new QueryError("DROP SERIES doesn't support time in WHERE clause");
  }
  const targets = yield* targetsOf(context, { database: '', sources, onePolicy: false });
  const narrowed = (yield* narrow(context, targets, where)).map(({ target, residual }) => ({
    target: { ...target, filter: target.filter && remembering(target.filter) },
    residual,
  }));
  // All or nothing: errors are found before any deletion.
  for (const each of narrowed) {
    yield* refuseFields(each, context);
    // A pattern that takes too long is refused here.
    yield* store.seriesCardinality(each.target);
  }
  for (const { target } of narrowed) {
    if (kind === 'dropSeries') {
      yield* store.dropSeries(target);
      continue;
    }
    for (const retentionPolicy of policies) {
      yield* store.deletePoints({ ...target, retentionPolicy });
    }
  }
}

/**
 * A pattern is evaluated once for each value, so that the deletion itself cannot exceed the limits
 * of patterns.
 */
function remembering(filter: SeriesFilter): SeriesFilter {
  if ('terms' in filter) return { ...filter, terms: filter.terms.map(remembering) };
  if (!('matches' in filter)) return filter;
  const known = new Map<string, boolean>();
  const matches = (value: string): boolean => {
    let found = known.get(value);
    if (found === undefined) known.set(value, (found = filter.matches(value)));
    return found;
  };
  return { ...filter, matches };
}

/** Names of the policies of the request's database. */
function requestDatabase({ store, database: name }: StatementContext): string[] {
  const database = store.database(name);
  if (database === undefined) throw new QueryError(`database not found: ${name}`);
  return database.retentionPolicies.map((policy) => policy.name);
}

function* refuseFields({ target, residual }: Narrowed, { store }: StatementContext): Slices<void> {
  // Where no series is meant, no field is looked at.
  if (residual === undefined || (yield* store.seriesCardinality(target)) === 0) return;
  throw new QueryError('shard 1: fields not supported in WHERE clause during deletion');
}

export function* dropMeasurement(measurement: string, context: StatementContext): Slices<void> {
  requestDatabase(context);
  yield* context.store.dropSeries({ database: context.database, measurement });
}
