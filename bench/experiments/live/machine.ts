// Processors of live experiments: the server on one, the load generators on another.

import { cpus } from 'node:os';
import type { Pins } from '../../../cli/demo/neighbours.ts';
import { findProgram } from '../../support/processes.ts';

/** Nothing where there is but one processor, or no taskset. */
export function pinned(): Pins {
  if (cpus().length < 2 || findProgram('taskset') === undefined) {
    return { server: [], flood: [], steady: [] };
  }
  const on = (processor: number): string[] => ['taskset', '-c', String(processor)];
  // The flooding client must not disturb the measuring client: with a lower priority alone it would
  // still take some milliseconds now and then.
  const idle = findProgram('chrt') === undefined ? [] : ['chrt', '--idle', '0'];
  return { server: on(0), flood: [...idle, ...on(1)], steady: on(1) };
}
