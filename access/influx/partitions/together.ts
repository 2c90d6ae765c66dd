// Work on all partitions: begun together, so that all of them show about one moment, and ended one after the other.

import type { Slices } from '../../../universal-row/slices.ts';

/**
 * The results, in the order of `all`. When one fails, or the caller gives up, the others are ended, and `release` is
 * called with each result that was there.
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
