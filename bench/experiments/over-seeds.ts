// A measure as the mean over seeds, with its spread.

import { spreadOf } from '../../control/scheduler/simulation/trial.ts';
import type { Measure } from './experiment.ts';

/** `values` and `without` have one number for each seed. */
export function overSeeds(
  values: readonly number[],
  rest: Omit<Measure, 'value' | 'spread' | 'without'>,
  without?: readonly number[],
): Measure {
  const { mean, least, most } = spreadOf(values);
  const other = without === undefined ? {} : { without: spreadOf(without).mean };
  return { ...rest, value: mean, spread: [least, most], ...other };
}
