// SHOW MEASUREMENTS. Its condition selects measurements: host = 'a' matches a measurement with a series that has this
// tag, host != 'a' a measurement that has the tag key but no such series.

import type { Slices } from '../../../universal-row/slices.ts';
import type { SeriesFilter, SeriesSelection } from '../../../contracts/series-store.ts';
import type { Expression, ShowStatement } from '../influxql/ast.ts';
import { print } from '../influxql/parser/print.ts';
import { QueryError, type ResultSeries } from '../influxql/result.ts';
import { columnar, page } from './answers.ts';
import type { StatementContext } from './context.ts';
import { mentionsTime } from './targets.ts';

export function* showMeasurements(
  show: ShowStatement,
  context: StatementContext,
): Slices<ResultSeries[]> {
  const database = show.database || show.withMeasurement?.database || context.database;
  if (database === '') throw new QueryError('database name required');
  if (mentionsTime(show.where)) {
    throw new QueryError("SHOW MEASUREMENTS doesn't support time in WHERE clause");
  }
  // An unknown database has no measurements.
  if (context.store.database(database) === undefined) return [];
  const matching = show.where && (yield* matchingNames(show.where, { ...context, database }));
  const all = yield* context.store.measurements({ database });
  const names = all
    .filter((name) => isNamed(show.withMeasurement, name))
    .filter((name) => matching === undefined || matching.has(name));
  const rows = page(names, show.limit, show.offset);
  return rows.length === 0 ? [] : [columnar('measurements', ['name'], [rows])];
}

function isNamed(source: ShowStatement['withMeasurement'], name: string): boolean {
  if (source?.pattern !== undefined) return source.pattern.regexp.test(name);
  return source === undefined || source.name === name;
}

type Place = Pick<StatementContext, 'store' | 'database'>;

function* matchingNames(condition: Expression, place: Place): Slices<Set<string>> {
  switch (condition.kind) {
    case 'parentheses':
      return yield* matchingNames(condition.inner, place);
    case 'boolean':
      return new Set(condition.value ? yield* listed(place, {}) : []);
    case 'binary': {
      if (condition.op !== 'and' && condition.op !== 'or') {
        return yield* compared(condition, place);
      }
      const left = yield* matchingNames(condition.left, place);
      const right = yield* matchingNames(condition.right, place);
      return condition.op === 'or'
        ? new Set([...left, ...right])
        : new Set([...left].filter((name) => right.has(name)));
    }
    default:
      throw new QueryError(`invalid condition expression: ${print(condition)}`);
  }
}

function listed({ store, database }: Place, selection: Partial<SeriesSelection>): Slices<string[]> {
  return store.measurements({ ...selection, database });
}

function* compared(
  condition: Extract<Expression, { kind: 'binary' }>,
  place: Place,
): Slices<Set<string>> {
  const { op, left, right } = condition;
  if (left.kind !== 'reference') {
    throw new QueryError(`left side of '${op.toUpperCase()}' must be a tag key`);
  }
  if (!['=', '!=', '=~', '!~'].includes(op)) {
    throw new QueryError('invalid tag comparison operator');
  }
  const tag = left.name;
  const filter = filterOf(tag, op, right);
  const positive = new Set(
    left.name === '_name'
      ? (yield* listed(place, {})).filter((name) => matchesName(right, name))
      : yield* listed(place, { filter }),
  );
  if (op === '=' || op === '=~') return positive;
  const having =
    tag === '_name'
      ? yield* listed(place, {})
      : yield* listed(place, { filter: { kind: 'notEqual', tag, value: '' } });
  return new Set(having.filter((name) => !positive.has(name)));
}

/** Series that have the tag, with the value or one that matches. */
function filterOf(tag: string, op: string, right: Expression): SeriesFilter {
  const present: SeriesFilter = { kind: 'notEqual', tag, value: '' };
  if (op.endsWith('~') && right.kind === 'pattern') {
    const { source, regexp } = right.pattern;
    const matches = (value: string): boolean => regexp.test(value);
    return { kind: 'and', terms: [present, { kind: 'match', tag, pattern: source, matches }] };
  }
  if (right.kind !== 'string') {
    throw new QueryError(`right side of '${op}' must be a tag value string`);
  }
  return { kind: 'and', terms: [present, { kind: 'equal', tag, value: right.value }] };
}

function matchesName(right: Expression, name: string): boolean {
  if (right.kind === 'pattern') return right.pattern.regexp.test(name);
  return right.kind === 'string' && right.value === name;
}
