// Where there is one processor, as in a small container, helpers of the garbage collector only take it from the thread
// that waits for them: a pause of one millisecond becomes one of ten.

import { availableParallelism } from 'node:os';
import { setFlagsFromString } from 'node:v8';

/** Before other threads begin. */
export function collectGarbageAlone(): void {
  if (availableParallelism() === 1) setFlagsFromString('--no-parallel-scavenge');
}
