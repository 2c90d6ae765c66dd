// SHOW TAG KEYS, TAG VALUES, FIELD KEYS and SERIES.

import { compareText } from '../../../universal-row/series/series-key.ts';
import type { ShowStatement } from '../influxql/ast.ts';
import type { ResultSeries } from '../influxql/result.ts';
import { columnar, page } from './answers.ts';
import type { StatementContext } from './context.ts';
import { mentionsTime, narrow, refuseOrder, targetsOf, type Target } from './targets.ts';

export function showTagKeys(show: ShowStatement, context: StatementContext): ResultSeries[] {
  return selected(show, context).flatMap((target) => {
    const keys = page(context.store.tagKeys(target), show.limit, show.offset);
    return keys.length === 0 ? [] : [columnar(target.measurement, ['tagKey'], [keys])];
  });
}

/** The measurements and series meant, in all retention policies. */
function selected(show: ShowStatement, context: StatementContext): Target[] {
  const { database, sources, where } = show;
  refuseOrder(where);
  const targets = targetsOf(context, { database, sources, onePolicy: false });
  return narrow(context, targets, where).map(({ target }) => target);
}

export function showTagValues(show: ShowStatement, context: StatementContext): ResultSeries[] {
  return selected(show, context).flatMap((target) => {
    const pairs = tagPairs(show, context, target, show.limit === 0 ? 0 : show.offset + show.limit);
    const rows = page(pairs, show.limit, show.offset);
    if (rows.length === 0) return [];
    const values = [rows.map(([key]) => key), rows.map(([, value]) => value)];
    return [columnar(target.measurement, ['key', 'value'], values)];
  });
}

/** Keys with values, by both. Ends early once there are `enough`; 0 is never. */
export function tagPairs(
  show: ShowStatement,
  context: StatementContext,
  target: Target,
  enough: number,
): [key: string, value: string][] {
  const pairs: [string, string][] = [];
  for (const key of context.store.tagKeys(target)) {
    if (!isWanted(show.withKey, key)) continue;
    for (const value of context.store.tagValues(target, key)) pairs.push([key, value]);
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

export function showFieldKeys(show: ShowStatement, context: StatementContext): ResultSeries[] {
  const { database, sources } = show;
  return targetsOf(context, { database, sources, onePolicy: true }).flatMap((target) => {
    const keys = page(context.store.fieldKeys(target), show.limit, show.offset);
    if (keys.length === 0) return [];
    const values = [keys.map(({ name }) => name), keys.map(({ type }) => type)];
    return [columnar(target.measurement, ['fieldKey', 'fieldType'], values)];
  });
}

export function showSeries(show: ShowStatement, context: StatementContext): ResultSeries[] {
  const { database, sources, where } = show;
  refuseOrder(where);
  // With a time it is about points, and those are looked for in one policy.
  const targets = targetsOf(context, { database, sources, onePolicy: mentionsTime(where) });
  const keys: string[] = [];
  for (const { target } of narrow(context, targets, where)) {
    for (const key of context.store.seriesKeys(target)) keys.push(key);
  }
  if (targets.length > 1) keys.sort(compareText);
  const rows = page(keys, show.limit, show.offset);
  return rows.length === 0 ? [] : [columnar(undefined, ['key'], [rows])];
}
