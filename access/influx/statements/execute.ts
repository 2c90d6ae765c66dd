// Statements other than SELECT, run. https://docs.influxdata.com/influxdb/v1/query_language/

import type { MaybePromise } from '../../../universal-row/maybe-promise.ts';
import type { Slices } from '../../../universal-row/slices.ts';
import type { ShowStatement, Statement } from '../influxql/ast.ts';
import { printStatement } from '../influxql/parser/print.ts';
import {
  type Message,
  QueryError,
  type ResultSeries,
  type StatementResult,
} from '../influxql/result.ts';
import { answer, answerAfter, answerInSlices } from './answers.ts';
import { showCardinality } from './cardinality.ts';
import { changeRetentionPolicy, createDatabase, drop } from './change-catalog.ts';
import type { StatementContext } from './context.ts';
import { deleteSeries, dropMeasurement } from './delete-series.ts';
import { changedBy, expectWritable } from './read-only.ts';
import { showMeasurements } from './show-measurements.ts';
import { showFieldKeys, showSeries, showTagKeys, showTagValues } from './show-schema.ts';
import {
  showContinuousQueries,
  showDatabases,
  showDiagnostics,
  showQueries,
  showRetentionPolicies,
  showShardGroups,
  showShards,
  showStats,
} from './show-server.ts';
import { changeUsers, grantees, revokeAll, showGrants, showUsers } from './users.ts';

/**
 * Runs a statement. Its changes in the store are complete when the answer has been read. Changes that need no long
 * work, no waiting and no change of users are complete when this function returns. Throws `QueryError`, or the
 * store's `SeriesError`.
 */
export function executeStatement(statement: Statement, context: StatementContext): StatementResult {
  const database = changedBy(statement, context.database);
  if (database !== '') expectWritable(context.store, database);
  switch (statement.kind) {
    case 'select': {
      const result = context.select(statement);
      if (statement.into === undefined) return result;
      return { ...result, messages: [...warnings(statement, context), ...result.messages] };
    }
    case 'explain':
      return context.select(statement);
    case 'show':
      return answerInSlices(showSeriesOf(statement, context), context.pause);
    case 'killQuery':
      return after(context.queries.kill(statement.id), []);
    case 'unsupported':
      throw new QueryError(statement.error);
    case 'createDatabase':
      return changed(createDatabase(statement, context), statement, context);
    case 'createRetentionPolicy':
    case 'alterRetentionPolicy':
      return changed(changeRetentionPolicy(statement, context), statement, context);
    case 'dropDatabase':
      if (grantees(statement.database, context).length > 0) {
        return answerAfter(
          async () => {
            await revokeAll(statement.database, context);
            await drop(statement, context);
          },
          warnings(statement, context),
        );
      }
      return changed(drop(statement, context), statement, context);
    case 'dropRetentionPolicy':
      return changed(drop(statement, context), statement, context);
    case 'createUser':
    case 'dropUser':
    case 'setPassword':
    case 'grant':
    case 'revoke':
      return answerAfter(() => changeUsers(statement, context), warnings(statement, context));
    case 'dropMeasurement':
      return done(dropMeasurement(statement.measurement, context), statement, context);
    case 'delete':
    case 'dropSeries':
      return done(deleteSeries(statement, context), statement, context);
    case 'dropShard':
      dropShard(statement.id, context);
      break;
  }
  return answer([], warnings(statement, context));
}

/** Says nothing but that the change is made. */
function changed(
  change: MaybePromise<void>,
  statement: Statement,
  context: StatementContext,
): StatementResult {
  return after(change, warnings(statement, context));
}

function after(change: MaybePromise<void>, messages: readonly Message[]): StatementResult {
  if (!(change instanceof Promise)) return answer([], messages);
  // The reader of the answer receives the failure.
  change.catch(() => {});
  return answerAfter(() => change, messages);
}

/** As `answerInSlices` of a change that says nothing. */
function done(
  slices: Slices<void>,
  statement: Statement,
  context: StatementContext,
): StatementResult {
  return answerInSlices(nothingAfter(slices), context.pause, warnings(statement, context));
}

function* nothingAfter(slices: Slices<void>): Slices<ResultSeries[]> {
  yield* slices;
  return [];
}

/** InfluxDB warns of changes by GET, of all but DELETE. */
function warnings(statement: Statement, { readOnlyRequest }: StatementContext): Message[] {
  if (!readOnlyRequest || statement.kind === 'delete') return [];
  const text = `deprecated use of '${printStatement(statement)}' in a read only context, please use a POST request instead`;
  return [{ level: 'warning', text }];
}

/** A shard that does not exist is dropped already. */
function dropShard(id: number, { server }: StatementContext): void {
  const shards = server.shards?.() ?? [];
  if (shards.some((shard) => shard.id === id)) {
    throw new QueryError('DROP SHARD is not supported yet');
  }
}

function* showSeriesOf(show: ShowStatement, context: StatementContext): Slices<ResultSeries[]> {
  switch (show.what) {
    case 'databases':
      return showDatabases(context);
    case 'measurements':
      return yield* showMeasurements(show, context);
    case 'tagKeys':
      return yield* showTagKeys(show, context);
    case 'tagValues':
      return yield* showTagValues(show, context);
    case 'fieldKeys':
      return yield* showFieldKeys(show, context);
    case 'series':
      return yield* showSeries(show, context);
    case 'retentionPolicies':
      return showRetentionPolicies(show, context);
    case 'users':
      return showUsers(context);
    case 'queries':
      return yield* showQueries(context);
    case 'continuousQueries':
      return showContinuousQueries(context);
    case 'subscriptions':
      return [];
    case 'grants':
      return showGrants(show.user, context);
    case 'shards':
      return showShards(context);
    case 'shardGroups':
      return showShardGroups(context);
    case 'stats':
      return yield* showStats(show, context);
    case 'diagnostics':
      return showDiagnostics(show, context);
    case 'seriesCardinality':
    case 'measurementCardinality':
    case 'tagKeyCardinality':
    case 'tagValuesCardinality':
    case 'fieldKeyCardinality':
      return yield* showCardinality(show, context);
  }
}
