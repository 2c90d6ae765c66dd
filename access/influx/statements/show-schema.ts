// SHOW TAG KEYS, TAG VALUES, FIELD KEYS and SERIES.

import { type Slices, sortedInSlices } from '../../../universal-row/slices.ts';
import { compareText } from '../../../universal-row/series/series-key.ts';
import type { ShowStatement } from '../influxql/ast.ts';
import type { ResultSeries } from '../influxql/result.ts';
import { columnar, page } from './answers.ts';
import type { StatementContext } from './context.ts';
import { mentionsTime, narrow, refuseOrder, targetsOf, type Target } from './targets.ts';

export function* showTagKeys(
  show: ShowStatement,
  context: StatementContext,
): Slices<ResultSeries[]> {
  const found: ResultSeries[] = [];
  for (const target of yield* selected(show, context)) {
    const keys = page(yield* context.store.tagKeys(target), show.limit, show.offset);
    if (keys.length > 0) found.push(columnar(target.measurement, ['tagKey'], [keys]));
  }
  return found;
}

/** The measurements and series meant, in all retention policies. */
function* selected(show: ShowStatement, context: StatementContext): Slices<Target[]> {
  const { database, sources, where } = show;
  refuseOrder(where);
  const targets = yield* targetsOf(context, { database, sources, onePolicy: false });
  return (yield* narrow(context, targets, where)).map(({ target }) => target);
}

export function* showTagValues(
  show: ShowStatement,
  context: StatementContext,
): Slices<ResultSeries[]> {
  const found: ResultSeries[] = [];
  const enough = show.limit === 0 ? 0 : show.offset + show.limit;
  for (const target of yield* selected(show, context)) {
    const pairs = yield* tagPairs(show, context, target, enough);
    const rows = page(pairs, show.limit, show.offset);
    if (rows.length === 0) continue;
    const values = [rows.map(([key]) => key), rows.map(([, value]) => value)];
    found.push(columnar(target.measurement, ['key', 'value'], values));
  }
  return found;
}

/** Keys with values, by both. Ends early once there are `enough`; 0 is never. */
export function* tagPairs(
  show: ShowStatement,
  context: StatementContext,
  target: Target,
  enough: number,
): Slices<[key: string, value: string][]> {
  const pairs: [string, string][] = [];
  for (const key of yield* context.store.tagKeys(target)) {
    if (!isWanted(show.withKey, key)) continue;
    for (const value of yield* context.store.tagValues(target, key)) pairs.push([key, value]);
    if (enough > 0 && pairs.length >= enough) break;
  }
  return pairs;
}

export function isWanted(withKey: ShowStatement['withKey'], key: string): boolean {
  switch (withKey?.op) {
    case '=':
    case 'in':
      return withKey.names.includes(key);
    case '!=':
      return !withKey.names.includes(key);
    case '=~':
      return withKey.pattern.regexp.test(key);
    case '!~':
      return !withKey.pattern.regexp.test(key);
    default:
      return true;
  }
}

export function* showFieldKeys(
  show: ShowStatement,
  context: StatementContext,
): Slices<ResultSeries[]> {
  const { database, sources } = show;
  const targets = yield* targetsOf(context, { database, sources, onePolicy: true });
  const found: ResultSeries[] = [];
  for (const target of targets) {
    const keys = page(yield* context.store.fieldKeys(target), show.limit, show.offset);
    if (keys.length === 0) continue;
    const values = [keys.map(({ name }) => name), keys.map(({ type }) => type)];
    found.push(columnar(target.measurement, ['fieldKey', 'fieldType'], values));
  }
  return found;
}

export function* showSeries(
  show: ShowStatement,
  context: StatementContext,
): Slices<ResultSeries[]> {
  const { database, sources, where } = show;
  refuseOrder(where);
  // With a time it is about points, and those are looked for in one policy.
  const targets = yield* targetsOf(context, {
    database,
    sources,
    onePolicy: mentionsTime(where),
  });
  let keys: string[] = [];
  for (const { target } of yield* narrow(context, targets, where)) {
    for (const key of yield* context.store.seriesKeys(target)) keys.push(key);
  }
  if (targets.length > 1) keys = yield* sortedInSlices(keys, compareText);
  const rows = page(keys, show.limit, show.offset);
  return rows.length === 0 ? [] : [columnar(undefined, ['key'], [rows])];
}
