// Checks of a SELECT before any data is read: its time range, its buckets, and whether its fields
// can be combined. The texts of failures are InfluxDB's.

import { maxTime, minTime } from '../../../../../contracts/series-store.ts';
import type { Expression, SelectField, SelectStatement, SubquerySource } from '../../ast.ts';
import { splitTime } from '../../conditions.ts';
import { print } from '../../parser/print.ts';
import { reduce } from '../../parser/reduce.ts';
import { QueryError } from '../../result.ts';
import { FieldChecker } from './check-fields.ts';
import { mathFunctions } from './math-functions.ts';

export interface Interval {
  /** Nanoseconds; 0n where there is no GROUP BY time. */
  readonly width: bigint;
  readonly offset: bigint;
  readonly timeZone: string | undefined;
}

export interface Compiled {
  readonly statement: SelectStatement;
  /** Fields of the statement without `time`, with constants folded. */
  readonly fields: readonly SelectField[];
  readonly timeName: string;
  /** Both ends inclusive; minTime and maxTime where open. */
  readonly from: bigint;
  readonly to: bigint;
  /** WHERE without time. */
  readonly condition: Expression | undefined;
  readonly interval: Interval;
  readonly hasCalls: boolean;
  readonly descending: boolean;
  /** As the sources; undefined for measurements. */
  readonly subqueries: readonly (Compiled | undefined)[];
}

/** Settings a subquery inherits from the enclosing statement. */
interface Outer {
  readonly from: bigint;
  readonly to: bigint;
  readonly interval: Interval;
  readonly descending: boolean;
}

export function compile(statement: SelectStatement, now: bigint): Compiled {
  return compileIn(statement, now, undefined);
}

function compileIn(statement: SelectStatement, now: bigint, outer: Outer | undefined): Compiled {
  const { timeZone } = statement;
  const split = splitTime(statement.where, { now, timeZone });
  if (split.rest !== undefined) checkCondition(split.rest);
  const own = intervalOf(statement);
  let from = split.from ?? minTime;
  let to = split.to ?? (own.width > 0n ? now : maxTime);
  let interval = own;
  let isInherited = false;
  if (outer !== undefined) {
    if (statement.descending && !outer.descending) {
      throw new QueryError('subqueries must be ordered in the same direction as the query itself');
    }
    if (outer.from > from) from = outer.from;
    if (outer.to < to) to = outer.to;
    if (own.width === 0n && outer.interval.width > 0n) {
      interval = outer.interval;
      isInherited = true;
    }
  }
  const checker = new FieldChecker({
    fill: statement.fill,
    limit: statement.limit,
    hasTarget: statement.into !== undefined,
    hasInterval: interval.width > 0n,
    isInheritedInterval: isInherited,
  });
  let timeName = 'time';
  const fields: SelectField[] = [];
  for (const field of statement.fields) {
    const { expression, alias } = field;
    if (expression.kind === 'reference' && expression.name === 'time') {
      timeName = alias ?? timeName;
      continue;
    }
    const reduced = reduce(asCall(expression), { now, timeZone });
    checker.add(reduced);
    fields.push({ expression: reduced, alias });
  }
  checker.finish();
  const descending = outer?.descending ?? statement.descending;
  const inner: Outer = { from, to, interval, descending };
  const subqueries = statement.sources.map((source) =>
    isSubquery(source) ? compileIn(source.select, now, inner) : undefined,
  );
  return {
    statement,
    fields,
    timeName,
    from,
    to,
    condition: split.rest,
    interval,
    hasCalls: checker.calls > 0,
    descending,
    subqueries,
  };
}

function isSubquery(source: { readonly kind: string }): source is SubquerySource {
  return source.kind === 'subquery';
}

/** DISTINCT f is distinct(f), wherever it stands. */
function asCall(expression: Expression): Expression {
  switch (expression.kind) {
    case 'distinct': {
      const name = expression.field;
      return {
        kind: 'call',
        name: 'distinct',
        args: [{ kind: 'reference', name, cast: undefined }],
      };
    }
    case 'call':
      return { ...expression, args: expression.args.map(asCall) };
    case 'parentheses':
      return { ...expression, inner: asCall(expression.inner) };
    case 'binary':
      return { ...expression, left: asCall(expression.left), right: asCall(expression.right) };
    default:
      return expression;
  }
}

function intervalOf(statement: SelectStatement): Interval {
  const { timeZone } = statement;
  let interval: Interval = { width: 0n, offset: 0n, timeZone };
  for (const dimension of statement.groupBy) {
    if (dimension.kind === 'tag' && dimension.name.toLowerCase() === 'time') {
      throw new QueryError('time() is a function and expects at least one argument');
    }
    if (dimension.kind !== 'time') continue;
    if (interval.width !== 0n) throw new QueryError('multiple time dimensions not allowed');
    const width = dimension.interval;
    if (width > 0n) interval = { width, offset: dimension.offset % width, timeZone };
  }
  return interval;
}

function checkCondition(condition: Expression): void {
  if (condition.kind === 'binary') {
    checkCondition(condition.left);
    checkCondition(condition.right);
  } else if (condition.kind === 'parentheses') {
    checkCondition(condition.inner);
  } else if (condition.kind === 'call') {
    const { name, args } = condition;
    const expected = mathFunctions.get(name);
    if (expected === undefined) {
      throw new QueryError(`invalid function call in condition: ${print(condition)}`);
    }
    if (args.length !== expected) {
      throw new QueryError(
        `invalid number of arguments for ${name}, expected ${expected}, got ${args.length}`,
      );
    }
    args.forEach(checkCondition);
  }
}
