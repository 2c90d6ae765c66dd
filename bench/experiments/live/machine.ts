// Where the processes of live experiments run: the server on one processor, who makes load on another one.

import { cpus } from 'node:os';
import type { Pins } from '../../../cli/demo/neighbours.ts';
import { findProgram } from '../../support/processes.ts';

/** Nothing where there is but one processor, or no taskset. */
export function pinned(): Pins {
  if (cpus().length < 2 || findProgram('taskset') === undefined) {
    return { server: [], flood: [], steady: [] };
  }
  const on = (processor: number): string[] => ['taskset', '-c', String(processor)];
  // Who floods is not to be in the way of who measures: a lower priority alone gives it some milliseconds now and then.
  const idle = findProgram('chrt') === undefined ? [] : ['chrt', '--idle', '0'];
  return { server: on(0), flood: [...idle, ...on(1)], steady: on(1) };
}
