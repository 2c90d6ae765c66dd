// Statements other than SELECT, run. https://docs.influxdata.com/influxdb/v1/query_language/

import type { ShowStatement, Statement } from '../influxql/ast.ts';
import { printStatement } from '../influxql/parser/print.ts';
import {
  type Message,
  QueryError,
  type ResultSeries,
  type StatementResult,
} from '../influxql/result.ts';
import { answer, answerAfter } from './answers.ts';
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
 * Runs a statement; what it changes in the store is done when this returns, unless users are touched as
 * well: then all is done when the answer has been read. Throws `QueryError`, or the store's `SeriesError`,
 * when it fails.
 */
export function executeStatement(statement: Statement, context: StatementContext): StatementResult {
  const changed = changedBy(statement, context.database);
  if (changed !== '') expectWritable(context.store, changed);
  switch (statement.kind) {
    case 'select': {
      const result = context.select(statement);
      if (statement.into === undefined) return result;
      return { ...result, messages: [...warnings(statement, context), ...result.messages] };
    }
    case 'explain':
      return context.select(statement);
    case 'show':
      return answer(showSeriesOf(statement, context));
    case 'killQuery':
      context.queries.kill(statement.id);
      return answer([]);
    case 'unsupported':
      throw new QueryError(statement.error);
    case 'createDatabase':
      createDatabase(statement, context);
      break;
    case 'createRetentionPolicy':
    case 'alterRetentionPolicy':
      changeRetentionPolicy(statement, context);
      break;
    case 'dropDatabase':
      if (grantees(statement.database, context).length > 0) {
        return answerAfter(
          async () => {
            await revokeAll(statement.database, context);
            drop(statement, context);
          },
          warnings(statement, context),
        );
      }
      drop(statement, context);
      break;
    case 'dropRetentionPolicy':
      drop(statement, context);
      break;
    case 'createUser':
    case 'dropUser':
    case 'setPassword':
    case 'grant':
    case 'revoke':
      return answerAfter(() => changeUsers(statement, context), warnings(statement, context));
    case 'dropMeasurement':
      dropMeasurement(statement.measurement, context);
      break;
    case 'delete':
    case 'dropSeries':
      deleteSeries(statement, context);
      break;
    case 'dropShard':
      dropShard(statement.id, context);
      break;
  }
  return answer([], warnings(statement, context));
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

function showSeriesOf(show: ShowStatement, context: StatementContext): ResultSeries[] {
  switch (show.what) {
    case 'databases':
      return showDatabases(context);
    case 'measurements':
      return showMeasurements(show, context);
    case 'tagKeys':
      return showTagKeys(show, context);
    case 'tagValues':
      return showTagValues(show, context);
    case 'fieldKeys':
      return showFieldKeys(show, context);
    case 'series':
      return showSeries(show, context);
    case 'retentionPolicies':
      return showRetentionPolicies(show, context);
    case 'users':
      return showUsers(context);
    case 'queries':
      return showQueries(context);
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
      return showStats(show, context);
    case 'diagnostics':
      return showDiagnostics(show, context);
    case 'seriesCardinality':
    case 'measurementCardinality':
    case 'tagKeyCardinality':
    case 'tagValuesCardinality':
    case 'fieldKeyCardinality':
      return showCardinality(show, context);
  }
}
