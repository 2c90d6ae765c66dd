// SHOW statements about the server: databases, policies, queries, shards, figures.

import type { Slices } from '../../../universal-row/slices.ts';
import type { ShowStatement } from '../influxql/ast.ts';
import { formatGoDuration } from '../influxql/parser/durations.ts';
import { formatTime } from '../influxql/parser/time-literal.ts';
import type { ResultSeries, Value } from '../influxql/result.ts';
import { columnar, table } from './answers.ts';
import {
  databaseOf,
  type ServerFacts,
  type ShardFacts,
  type StatementContext,
  type Statistic,
} from './context.ts';
import { mayKnow } from './principal.ts';

/** Clients read the series even when there is no database, so it has no "values" then. */
export function showDatabases(context: StatementContext): ResultSeries[] {
  const names = knownDatabases(context);
  return [{ ...columnar('databases', ['name'], [names]), omitEmptyValues: true }];
}

/** Databases that the caller may see. */
function knownDatabases({ store, principal }: StatementContext): string[] {
  return store
    .databases()
    .map(({ name }) => name)
    .filter((name) => mayKnow(principal, name));
}

export function showRetentionPolicies(
  show: ShowStatement,
  context: StatementContext,
): ResultSeries[] {
  const { retentionPolicies, defaultRetentionPolicy } = databaseOf(context, show.database);
  const columns = ['name', 'duration', 'shardGroupDuration', 'replicaN', 'default'];
  const rows = retentionPolicies.map(({ name, duration, shardGroupDuration, replicaN }) => [
    name,
    formatGoDuration(duration),
    formatGoDuration(shardGroupDuration),
    replicaN,
    name === defaultRetentionPolicy,
  ]);
  return [table(undefined, columns, rows)];
}

export function showContinuousQueries(context: StatementContext): ResultSeries[] {
  return knownDatabases(context).map((name) => ({
    ...columnar(name, ['name', 'query'], [[], []]),
    omitEmptyValues: true,
  }));
}

/** Callers who are not administrators see only their own: a text names more than its database. */
export function* showQueries({ queries, principal }: StatementContext): Slices<ResultSeries[]> {
  const columns = ['qid', 'query', 'database', 'duration', 'status'];
  const shown = yield* queries.shown();
  const rows = shown
    .filter(({ user }) => principal === undefined || principal.isAdmin || user === principal.name)
    .map((query) => [
      query.id,
      query.text,
      query.database,
      formatGoDuration(rounded(query.elapsedMs)),
      query.status,
    ]);
  return [table(undefined, columns, rows)];
}

/** Rounds to whole seconds, milliseconds or microseconds, in nanoseconds. */
function rounded(ms: number): bigint {
  const micros = BigInt(Math.max(1, Math.floor(ms * 1000)));
  const unit = micros >= 1_000_000n ? 1_000_000n : micros >= 1000n ? 1000n : 1n;
  return (micros - (micros % unit)) * 1000n;
}

/** A series a database. */
export function showShards(context: StatementContext): ResultSeries[] {
  const columns = [
    'id',
    'database',
    'retention_policy',
    'shard_group',
    'start_time',
    'end_time',
    'expiry_time',
    'owners',
  ];
  const shards = context.server.shards?.() ?? [];
  return context.store.databases().map(({ name }) => {
    const rows = shards
      .filter(({ database }) => database === name)
      .map((shard) => [
        shard.id,
        shard.database,
        shard.retentionPolicy,
        shard.id,
        ...timesOf(shard, context),
        '',
      ]);
    return { ...table(name, columns, rows), omitEmptyValues: true };
  });
}

export function showShardGroups(context: StatementContext): ResultSeries[] {
  const columns = ['id', 'database', 'retention_policy', 'start_time', 'end_time', 'expiry_time'];
  const rows = (context.server.shards?.() ?? []).map((shard) => [
    shard.id,
    shard.database,
    shard.retentionPolicy,
    ...timesOf(shard, context),
  ]);
  return [{ ...table('shard groups', columns, rows), omitEmptyValues: true }];
}

/** Start, end, and when it is dropped: with its end where points are kept for ever, as InfluxDB has it. */
function timesOf(shard: ShardFacts, { store }: StatementContext): string[] {
  const policy = store
    .database(shard.database)
    ?.retentionPolicies.find(({ name }) => name === shard.retentionPolicy);
  const expiry = shard.end + (policy?.duration ?? 0n);
  return [shard.start, shard.end, expiry].map(formatTime);
}

export function* showStats(show: ShowStatement, context: StatementContext): Slices<ResultSeries[]> {
  const statistics = [...(yield* ownStatistics(context)), ...(context.server.statistics?.() ?? [])];
  return statistics
    .filter(({ name }) => show.module === '' || name === show.module)
    .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
    .map(({ name, tags, values }) => {
      const columns = Object.keys(values).sort();
      const series = table(name, columns, [columns.map((column) => values[column] ?? null)]);
      return tags === undefined ? series : { ...series, tags: sortedTags(tags) };
    });
}

function sortedTags(tags: Readonly<Record<string, string>>): [string, string][] {
  return Object.entries(tags).sort(([a], [b]) => (a < b ? -1 : 1));
}

function* ownStatistics({ store, queries, server }: StatementContext): Slices<Statistic[]> {
  const databases: Statistic[] = [];
  for (const { name } of store.databases()) {
    const numMeasurements = (yield* store.measurements({ database: name })).length;
    const numSeries = yield* store.seriesCardinality({ database: name });
    databases.push({
      name: 'database',
      tags: { database: name },
      values: { numMeasurements, numSeries },
    });
  }
  return [
    {
      name: 'queryExecutor',
      values: {
        queriesActive: queries.size,
        queriesExecuted: queries.executed,
        queriesFinished: queries.finished,
      },
    },
    ...(server.isShared === true ? [] : [runtimeStatistic()]),
    ...databases,
  ];
}

function runtimeStatistic(): Statistic {
  const { heapUsed, heapTotal, rss } = process.memoryUsage();
  return { name: 'runtime', values: { HeapAlloc: heapUsed, HeapSys: heapTotal, Sys: rss } };
}

export function showDiagnostics(show: ShowStatement, context: StatementContext): ResultSeries[] {
  return Object.entries(diagnostics(context.server, context.now))
    .filter(([name]) => show.module === '' || name === show.module)
    .map(([name, facts]) => table(name, Object.keys(facts), [Object.values(facts)]));
}

function diagnostics(
  server: ServerFacts,
  now: bigint,
): Record<string, Readonly<Record<string, Value>>> {
  const build = { Branch: '', 'Build Time': '', Commit: '', Version: server.version };
  if (server.isShared === true) return { build, system: { currentTime: formatTime(now) } };
  const started = BigInt(Math.trunc(server.startedAt)) * 1_000_000n;
  return {
    build,
    network: { hostname: server.hostname },
    runtime: {
      GOARCH: process.arch,
      GOMAXPROCS: 1,
      GOOS: process.platform,
      version: process.version,
    },
    system: {
      PID: process.pid,
      currentTime: formatTime(now),
      started: formatTime(started),
      uptime: formatGoDuration(now > started ? now - started : 0n),
    },
  };
}
