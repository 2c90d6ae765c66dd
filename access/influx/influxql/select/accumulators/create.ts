// Which accumulator works out which call, and for which types.

import type { FieldType } from '../../../../../universal-row/series/field-type.ts';
import { QueryError } from '../../result.ts';
import type { Accumulator, AccumulatorOptions } from './accumulator.ts';
import {
  booleanMode,
  type Chooser,
  Collected,
  countDistinct,
  distinct,
  median,
  mode,
  percentile,
  sample,
  stddev,
} from './collected.ts';
import { End } from './ends.ts';
import { Extreme } from './extremes.ts';
import { Count, Mean, Spread, Sum } from './sums.ts';
import { Top } from './top.ts';

/** Calls that can be worked out from summaries of blocks. */
export const summable: ReadonlySet<string> = new Set([
  'count',
  'sum',
  'mean',
  'min',
  'max',
  'first',
  'last',
  'spread',
]);

const choosers: Readonly<Record<string, Chooser>> = {
  'count distinct': countDistinct,
  distinct,
  median,
  mode,
  percentile,
  sample,
  stddev,
};

export function createAccumulator(
  name: string,
  options: AccumulatorOptions,
  descending: boolean,
): Accumulator {
  switch (name) {
    case 'count':
      return new Count();
    case 'sum':
      return new Sum(options);
    case 'mean':
      return new Mean(options);
    case 'spread':
      return new Spread(options);
    case 'max':
      return new Extreme(options, 1);
    case 'min':
      return new Extreme(options, -1);
    case 'first':
      return new End(options, false);
    case 'last':
      return new End(options, true);
    case 'top':
      return new Top(options, 1);
    case 'bottom':
      return new Top(options, -1);
    case 'mode':
      if (options.type === 'boolean') return new Collected(options, booleanMode, descending);
  }
  return new Collected(options, choosers[name]!, descending);
}

const anyType: ReadonlySet<string> = new Set([
  'count',
  'count distinct',
  'distinct',
  'elapsed',
  'first',
  'last',
  'mode',
  'sample',
]);

/** Names of the functions in InfluxDB's error messages. */
const messageNames: Readonly<Record<string, string>> = {
  cumulative_sum: 'cumulative sum',
  moving_average: 'moving average',
  non_negative_derivative: 'derivative',
  non_negative_difference: 'difference',
};

/** Throws when the call has no meaning for values of the type. */
export function checkType(name: string, type: FieldType): void {
  if (type !== 'string' && type !== 'boolean') return;
  if (anyType.has(name)) return;
  if (type === 'boolean' && (name === 'min' || name === 'max')) return;
  const shown = messageNames[name] ?? name;
  throw new QueryError(`unsupported ${shown} iterator type: *query.${type}InterruptIterator`);
}
