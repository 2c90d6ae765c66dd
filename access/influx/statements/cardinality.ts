// SHOW ... CARDINALITY. Estimates are exact as well; they differ in scope and in format.

import { type Slices, sortedInSlices } from '../../../universal-row/slices.ts';
import { decodeSeriesKey, type SeriesName } from '../../../universal-row/series/series-key.ts';
import type { Dimension, ShowStatement } from '../influxql/ast.ts';
import { QueryError, type ResultSeries } from '../influxql/result.ts';
import { columnar } from './answers.ts';
import type { StatementContext } from './context.ts';
import { isWanted, tagPairs } from './show-schema.ts';
import { mentionsTime, narrow, targetsOf, type Target } from './targets.ts';

export function* showCardinality(
  show: ShowStatement,
  context: StatementContext,
): Slices<ResultSeries[]> {
  if (isEstimate(show)) return [yield* estimate(show, context)];
  if (mentionsTime(show.where)) {
    const what = titles[show.what] ?? '';
    throw new QueryError(`SHOW ${what} EXACT CARDINALITY doesn't support time in WHERE clause`);
  }
  // Every answer has one row.
  if (show.offset > 0) return [];
  const { database, sources, where } = show;
  const named = yield* targetsOf(context, { database, sources, onePolicy: true });
  const targets = (yield* narrow(context, named, where))
    // Conditions on fields hold for no series as such.
    .filter(({ residual }) => residual === undefined)
    .map(({ target }) => target);
  if (show.what === 'measurementCardinality')
    return yield* countMeasurements(show, context, targets);
  const found: ResultSeries[] = [];
  for (const target of targets) {
    if (show.groupBy.length > 0) found.push(...(yield* countGroups(show, context, target)));
    else found.push(...counted(target.measurement, yield* countAll(show, context, target)));
  }
  return found;
}

const titles: { readonly [what in ShowStatement['what']]?: string } = {
  seriesCardinality: 'SERIES',
  measurementCardinality: 'MEASUREMENT',
  tagKeyCardinality: 'TAG KEY',
  tagValuesCardinality: 'TAG VALUES',
  fieldKeyCardinality: 'FIELD KEY',
};

/** Whether the estimate is of a database as a whole, with all its policies. */
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

function* estimate(
  show: ShowStatement,
  { store, database: requested }: StatementContext,
): Slices<ResultSeries> {
  const database = show.database || requested;
  if (database === '') throw new QueryError('database name required');
  // An unknown database has none of either.
  const known = store.database(database) !== undefined;
  const count = !known
    ? 0
    : show.what === 'seriesCardinality'
      ? yield* store.seriesCardinality({ database })
      : (yield* store.measurements({ database })).length;
  return columnar(undefined, ['cardinality estimation'], [[count]]);
}

function counted(name: string | undefined, count: number): ResultSeries[] {
  return count === 0 ? [] : [columnar(name, ['count'], [[count]])];
}

function* countAll(show: ShowStatement, context: StatementContext, target: Target): Slices<number> {
  const { store } = context;
  switch (show.what) {
    case 'seriesCardinality':
      return yield* store.seriesCardinality(target);
    case 'tagKeyCardinality':
      return (yield* store.tagKeys(target)).length;
    case 'tagValuesCardinality':
      return (yield* tagPairs(show, context, target, 0)).length;
    default:
      return (yield* store.fieldKeys(target)).length;
  }
}

function* countMeasurements(
  show: ShowStatement,
  context: StatementContext,
  targets: readonly Target[],
): Slices<ResultSeries[]> {
  if (show.groupBy.length === 0) {
    let names = 0;
    for (const target of targets) {
      if ((yield* context.store.seriesCardinality(target)) > 0) names++;
    }
    return counted(undefined, names);
  }
  const groups = new Map<string, { tags: Tags; names: Set<string> }>();
  for (const target of targets) {
    for (const [key, { tags }] of yield* groupsOf(show, context, target)) {
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

/** Keys that are taken apart between two yields. */
const keysAtOnce = 1024;

type Tags = readonly (readonly [key: string, value: string])[];

interface Group {
  readonly tags: Tags;
  readonly series: SeriesName[];
}

/** The series of a measurement by their values of the tags of GROUP BY, ascending. */
function* groupsOf(
  show: ShowStatement,
  { store }: StatementContext,
  target: Target,
): Slices<Map<string, Group>> {
  const tagKeys = yield* store.tagKeys({ ...target, filter: undefined });
  const keys = dimensionKeys(show.groupBy, tagKeys);
  const groups = new Map<string, Group>();
  let looked = 0;
  for (const seriesKey of yield* store.seriesKeys(target)) {
    if (++looked % keysAtOnce === 0) yield;
    const bytes = Buffer.from(seriesKey);
    const series = decodeSeriesKey(bytes, 0, bytes.length);
    const own = new Map(series.tags);
    const tags = keys.map((key) => [key, own.get(key) ?? ''] as const);
    const id = JSON.stringify(tags);
    const group = groups.get(id) ?? { tags, series: [] };
    groups.set(id, group);
    group.series.push(series);
  }
  return new Map(yield* sortedInSlices([...groups], ([a], [b]) => (a < b ? -1 : 1)));
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

function* countGroups(
  show: ShowStatement,
  context: StatementContext,
  target: Target,
): Slices<ResultSeries[]> {
  const found: ResultSeries[] = [];
  let counts = 0;
  for (const { tags, series } of (yield* groupsOf(show, context, target)).values()) {
    const count = yield* countGroup(show, context, target, series);
    for (const each of counted(target.measurement, count)) found.push({ ...each, tags });
    if (++counts % keysAtOnce === 0) yield;
  }
  return found;
}

function* countGroup(
  show: ShowStatement,
  { store }: StatementContext,
  target: Target,
  series: readonly SeriesName[],
): Slices<number> {
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
      return (yield* store.fieldKeys(target)).length;
  }
}
