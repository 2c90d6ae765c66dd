// Runs work on all partitions. The work starts everywhere at once, so that all partitions show about the same moment,
// and ends one partition after the other.

import type { Slices } from '../../../universal-row/slices.ts';

/**
 * Returns the results in the order of `all`. If one partition fails or the caller gives up, the other work is ended,
 * and `release` is called with each result that exists.
 */
export function* together<T>(
  all: readonly Slices<T>[],
  release: (result: T) => void = () => {},
): Slices<T[]> {
  const steps: IteratorResult<Promise<unknown> | undefined, T>[] = [];
  const results: T[] = [];
  let isWhole = false;
  try {
    for (const slices of all) steps.push(slices.next());
    for (const [i, slices] of all.entries()) {
      for (let step = steps[i]!; step.done !== true; step = steps[i]!) {
        yield step.value;
        steps[i] = slices.next();
      }
      results.push(steps[i]!.value as T);
    }
    isWhole = true;
    return results;
  } finally {
    // Also runs when the caller abandons the generator.
    if (!isWhole) {
      for (const [i, slices] of all.entries()) {
        const step = steps[i];
        if (step?.done === true) release(step.value);
        else slices.return(undefined as never);
      }
    }
  }
}
