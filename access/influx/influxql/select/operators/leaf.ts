// Inputs of the calls of a statement.

import type { FieldType } from '../../../../../universal-row/series/field-type.ts';
import { type Call, isCall, type Plan, type Ref } from '../plan/plan.ts';

/** Functions over previous points, which need points of one more bucket. */
export const lookBack: ReadonlySet<string> = new Set([
  'derivative',
  'non_negative_derivative',
  'difference',
  'non_negative_difference',
  'moving_average',
  'elapsed',
]);
const follows: ReadonlySet<string> = new Set([
  ...lookBack,
  'cumulative_sum',
  'integral',
  'holt_winters',
  'holt_winters_with_fit',
]);
export const selectors: ReadonlySet<string> = new Set([
  'first',
  'last',
  'max',
  'min',
  'percentile',
]);
/** Their points always have their own times, and gaps between them are not filled. */
export const keepTimes: ReadonlySet<string> = new Set(['bottom', 'sample', 'top']);
export const unfilled: ReadonlySet<string> = new Set([...keepTimes, 'distinct']);

/** Their values do not depend on the order in which rows are looked at. */
export const anyOrder: ReadonlySet<string> = new Set(['count', 'max', 'min', 'spread']);

/** Input of a call of the statement: a call or field for which rows are read. */
export interface Leaf {
  readonly call: Call;
  /** Function computed: `call.name`, or 'count distinct'. */
  readonly name: string;
  readonly ref: Ref;
  /** How many buckets more than the statement's range it reads. */
  readonly shift: number;
  /** The function reads rows in the order of time and does not work by bucket. */
  readonly isOrdered: boolean;
}

export function leafOf(call: Call, plan: Plan, shift: number): Leaf {
  const hasInterval = plan.interval.width > 0n;
  const shifted = lookBack.has(call.name) && hasInterval ? shift + 1 : shift;
  const { input } = call;
  if (!isCall(input)) {
    const isOrdered = follows.has(call.name);
    return { call, name: call.name, ref: input, shift: shifted, isOrdered };
  }
  if (call.name === 'count' && !isCall(input.input)) {
    return { call, name: 'count distinct', ref: input.input, shift, isOrdered: false };
  }
  return leafOf(input, plan, shifted);
}

export function uniqueRefs(refs: readonly Ref[]): Ref[] {
  return refs.filter((ref, i) => i === placeOf(ref, refs));
}

export function placeOf({ name, type }: Ref, refs: readonly Ref[]): number {
  return refs.findIndex((ref) => ref.name === name && ref.type === type);
}

export function valueType({ type }: { readonly type: Ref['type'] }): FieldType {
  return type === 'tag' || type === undefined ? 'string' : type;
}
