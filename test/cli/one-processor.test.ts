// Where the server has one processor, the threads that help its engine give way to those that answer.

import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { afterEach, expect, test } from 'vitest';
import { findProgram } from '../../bench/support/processes.ts';
import { Polyrow } from '../support/polyrow.ts';

let server: Polyrow | undefined;
afterEach(async () => {
  await server?.remove();
  server = undefined;
});

/** Nice values of a process's threads, the oldest first. */
function nicenessOf(pid: number): number[] {
  return readdirSync(`/proc/${pid}/task`)
    .map(Number)
    .sort((a, b) => a - b)
    .map((thread) => {
      const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'latin1');
      // The name, in brackets, may have spaces; behind it niceness is the 17th.
      return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16]);
    });
}

const isLinux = process.platform === 'linux';

test.skipIf(!isLinux || findProgram('taskset') === undefined)(
  'on one processor V8 has five threads of low priority, and nothing else has',
  async () => {
    server = await Polyrow.start({ before: ['taskset', '-c', '0'] });
    const [main, ...others] = nicenessOf(server.pid);
    expect(others.slice(0, 5)).toEqual([15, 15, 15, 15, 15]);
    expect(new Set(others.slice(5))).toEqual(new Set([main]));
  },
);

test.skipIf(!isLinux || availableParallelism() === 1)('on several all are alike', async () => {
  server = await Polyrow.start();
  expect(new Set(nicenessOf(server.pid)).size).toBe(1);
});
