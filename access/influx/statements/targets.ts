// The measurements that a SHOW or DELETE is about, and which of their series.

import type { Slices } from '../../../universal-row/slices.ts';
import { compareText } from '../../../universal-row/series/series-key.ts';
import type { SeriesFilter, SeriesSelection } from '../../../contracts/series-store.ts';
import type { Expression, Source } from '../influxql/ast.ts';
import { splitTags, splitTime } from '../influxql/conditions.ts';
import { QueryError } from '../influxql/result.ts';
import { databaseOf, policyOf, type StatementContext } from './context.ts';

/** One measurement; the retention policy is '' for all of them. */
export interface Target extends SeriesSelection {
  readonly retentionPolicy: string;
  readonly measurement: string;
}

interface TargetRequest {
  /** ON; '' for the request's. */
  readonly database: string;
  /** None for every measurement. */
  readonly sources: readonly Source[];
  /** Looks into one policy only, the default unless a source says which. */
  readonly onePolicy: boolean;
}

/** Ascending by name. A measurement that is named need not exist. */
export function* targetsOf(context: StatementContext, request: TargetRequest): Slices<Target[]> {
  if (request.sources.length === 0) return yield* targetsOfSource(context, request, undefined);
  const targets = new Map<string, Target>();
  for (const source of request.sources) {
    if (source.kind === 'subquery') throw new QueryError('subqueries are for SELECT only');
    for (const target of yield* targetsOfSource(context, request, source)) {
      const { database, retentionPolicy, measurement } = target;
      targets.set(JSON.stringify([measurement, database, retentionPolicy]), target);
    }
  }
  return [...targets.values()].sort((a, b) => compareText(a.measurement, b.measurement));
}

function* targetsOfSource(
  context: StatementContext,
  request: TargetRequest,
  source: Exclude<Source, { kind: 'subquery' }> | undefined,
): Slices<Target[]> {
  const database = databaseOf(context, source?.database || request.database);
  const policy = source?.retentionPolicy || context.retentionPolicy;
  const place = {
    database: database.name,
    retentionPolicy: request.onePolicy ? policyOf(database, policy) : '',
  };
  if (source?.name !== undefined) return [{ ...place, measurement: source.name }];
  const names = yield* context.store.measurements(place);
  const pattern = source?.pattern?.regexp;
  return names
    .filter((name) => pattern === undefined || pattern.test(name))
    .map((measurement) => ({ ...place, measurement }));
}

/** Which series of a target a condition means. */
export interface Narrowed {
  readonly target: Target;
  /** The part of the condition that tags do not decide; it refers to fields. */
  readonly residual: Expression | undefined;
}

/** The targets with the condition's time range and its conditions on their tags. */
export function* narrow(
  context: StatementContext,
  targets: readonly Target[],
  where: Expression | undefined,
): Slices<Narrowed[]> {
  const { from, to, rest } = splitTime(where, context);
  const narrowed: Narrowed[] = [];
  for (const target of targets) {
    const fields = rest === undefined ? [] : yield* context.store.fieldKeys(target);
    // Every name that is not a field is a tag, known or not.
    const names = new Set(fields.map(({ name }) => name));
    const { filter, residual } = splitTags(rest, (name) => !names.has(name));
    narrowed.push({ target: { ...target, ...narrowing(filter, from, to) }, residual });
  }
  return narrowed;
}

function narrowing(
  filter: SeriesFilter | undefined,
  from: bigint | undefined,
  to: bigint | undefined,
): Pick<SeriesSelection, 'filter' | 'from' | 'to'> {
  return {
    ...(filter !== undefined && { filter }),
    ...(from !== undefined && { from }),
    ...(to !== undefined && { to }),
  };
}

export function mentionsTime(expression: Expression | undefined): boolean {
  switch (expression?.kind) {
    case 'reference':
      return expression.name.toLowerCase() === 'time';
    case 'binary':
      return mentionsTime(expression.left) || mentionsTime(expression.right);
    case 'parentheses':
      return mentionsTime(expression.inner);
    default:
      return false;
  }
}

/** Tags have no order: throws for a comparison by one. */
export function refuseOrder(expression: Expression | undefined): void {
  if (expression?.kind === 'parentheses') return refuseOrder(expression.inner);
  if (expression?.kind !== 'binary') return;
  const isTime = mentionsTime(expression.left) || mentionsTime(expression.right);
  if (/^[<>]/.test(expression.op) && !isTime) {
    throw new QueryError('invalid tag comparison operator');
  }
  refuseOrder(expression.left);
  refuseOrder(expression.right);
}
