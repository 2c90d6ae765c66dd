// SHOW ... CARDINALITY. Estimates are exact as well; they differ in what they look at, and in shape.

import { decodeSeriesKey, type SeriesName } from '../../../universal-row/series/series-key.ts';
import type { Dimension, ShowStatement } from '../influxql/ast.ts';
import { QueryError, type ResultSeries } from '../influxql/result.ts';
import { columnar } from './answers.ts';
import type { StatementContext } from './context.ts';
import { isWanted, tagPairs } from './show-schema.ts';
import { mentionsTime, narrow, targetsOf, type Target } from './targets.ts';

export function showCardinality(show: ShowStatement, context: StatementContext): ResultSeries[] {
  if (isEstimate(show)) return [estimate(show, context)];
  if (mentionsTime(show.where)) {
    const what = titles[show.what] ?? '';
    throw new QueryError(`SHOW ${what} EXACT CARDINALITY doesn't support time in WHERE clause`);
  }
  // Every answer has one row.
  if (show.offset > 0) return [];
  const { database, sources, where } = show;
  const targets = narrow(context, targetsOf(context, { database, sources, onePolicy: true }), where)
    // Conditions on fields hold for no series as such.
    .filter(({ residual }) => residual === undefined)
    .map(({ target }) => target);
  if (show.what === 'measurementCardinality') return countMeasurements(show, context, targets);
  return targets.flatMap((target) =>
    show.groupBy.length === 0
      ? counted(target.measurement, countAll(show, context, target))
      : countGroups(show, context, target),
  );
}

const titles: { readonly [what in ShowStatement['what']]?: string } = {
  seriesCardinality: 'SERIES',
  measurementCardinality: 'MEASUREMENT',
  tagKeyCardinality: 'TAG KEY',
  tagValuesCardinality: 'TAG VALUES',
  fieldKeyCardinality: 'FIELD KEY',
};

/** Of a database as a whole, and of all its policies. */
function isEstimate(show: ShowStatement): boolean {
  return (
    (show.what === 'seriesCardinality' || show.what === 'measurementCardinality') &&
    !show.exact &&
    show.sources.length === 0 &&
    show.where === undefined &&
    show.groupBy.length === 0 &&
    show.limit === 0 &&
    show.offset === 0
  );
}

function estimate(
  show: ShowStatement,
  { store, database: requested }: StatementContext,
): ResultSeries {
  const database = show.database || requested;
  if (database === '') throw new QueryError('database name required');
  // An unknown database has none of either.
  const known = store.database(database) !== undefined;
  const count = !known
    ? 0
    : show.what === 'seriesCardinality'
      ? store.seriesCardinality({ database })
      : store.measurements({ database }).length;
  return columnar(undefined, ['cardinality estimation'], [[count]]);
}

function counted(name: string | undefined, count: number): ResultSeries[] {
  return count === 0 ? [] : [columnar(name, ['count'], [[count]])];
}

function countAll(show: ShowStatement, context: StatementContext, target: Target): number {
  const { store } = context;
  switch (show.what) {
    case 'seriesCardinality':
      return store.seriesCardinality(target);
    case 'tagKeyCardinality':
      return store.tagKeys(target).length;
    case 'tagValuesCardinality':
      return tagPairs(show, context, target, 0).length;
    default:
      return store.fieldKeys(target).length;
  }
}

function countMeasurements(
  show: ShowStatement,
  context: StatementContext,
  targets: readonly Target[],
): ResultSeries[] {
  if (show.groupBy.length === 0) {
    const names = targets.filter((target) => context.store.seriesCardinality(target) > 0);
    return counted(undefined, names.length);
  }
  const groups = new Map<string, { tags: Tags; names: Set<string> }>();
  for (const target of targets) {
    for (const [key, { tags }] of groupsOf(show, context, target)) {
      const group = groups.get(key) ?? { tags, names: new Set() };
      groups.set(key, group);
      group.names.add(target.measurement);
    }
  }
  return [...groups]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([, { tags, names }]) =>
      counted(undefined, names.size).map((series) => ({ ...series, tags })),
    );
}

type Tags = readonly (readonly [key: string, value: string])[];

interface Group {
  readonly tags: Tags;
  readonly series: SeriesName[];
}

/** The series of a measurement by their values of the tags of GROUP BY, ascending. */
function groupsOf(
  show: ShowStatement,
  { store }: StatementContext,
  target: Target,
): Map<string, Group> {
  const keys = dimensionKeys(show.groupBy, store.tagKeys({ ...target, filter: undefined }));
  const groups = new Map<string, Group>();
  for (const seriesKey of store.seriesKeys(target)) {
    const bytes = Buffer.from(seriesKey);
    const series = decodeSeriesKey(bytes, 0, bytes.length);
    const own = new Map(series.tags);
    const tags = keys.map((key) => [key, own.get(key) ?? ''] as const);
    const id = JSON.stringify(tags);
    const group = groups.get(id) ?? { tags, series: [] };
    groups.set(id, group);
    group.series.push(series);
  }
  return new Map([...groups].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function dimensionKeys(dimensions: readonly Dimension[], tagKeys: readonly string[]): string[] {
  const keys = dimensions.flatMap((dimension) => {
    switch (dimension.kind) {
      case 'tag':
        return [dimension.name];
      case 'wildcard':
        return tagKeys;
      case 'pattern':
        return tagKeys.filter((key) => dimension.pattern.regexp.test(key));
      case 'time':
        return [];
    }
  });
  return [...new Set(keys)];
}

function countGroups(
  show: ShowStatement,
  context: StatementContext,
  target: Target,
): ResultSeries[] {
  return [...groupsOf(show, context, target).values()].flatMap(({ tags, series }) =>
    counted(target.measurement, countGroup(show, context, target, series)).map((each) => ({
      ...each,
      tags,
    })),
  );
}

function countGroup(
  show: ShowStatement,
  { store }: StatementContext,
  target: Target,
  series: readonly SeriesName[],
): number {
  switch (show.what) {
    case 'seriesCardinality':
      return series.length;
    case 'tagKeyCardinality':
      return new Set(series.flatMap(({ tags }) => tags.map(([key]) => key))).size;
    case 'tagValuesCardinality': {
      const pairs = series.flatMap(({ tags }) =>
        tags.filter(([key]) => isWanted(show.withKey, key)),
      );
      return new Set(pairs.map((pair) => JSON.stringify(pair))).size;
    }
    default:
      return store.fieldKeys(target).length;
  }
}
