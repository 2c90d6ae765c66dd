// Loaded by vitest before each test file (vitest.config.ts). With `TEST_COSTS=FILE` it adds a line to that file for each
// test file: seconds of processor time, those of processes that it started and that have ended included, and its name.

import { appendFileSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { afterAll, expect } from 'vitest';

const path = process.env['TEST_COSTS'];
/** Clock ticks a second in /proc/PID/stat: the same on all Linux systems of today. */
const ticksPerSecond = 100;

/** Of this process, with its children that have ended. */
function usedSeconds(): number {
  const stat = readFileSync('/proc/self/stat', 'latin1');
  // Behind the name, which may hold spaces: utime, stime, cutime and cstime are fields 14 to 17 (proc(5)).
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return ticks / ticksPerSecond;
}

if (path !== undefined) {
  // A process of its own for each file: its start is part of the file's cost. Shared ones count from here.
  const shared = globalThis as { testCostSeen?: number };
  const before = shared.testCostSeen ?? 0;
  // The first one registered is the last one called.
  afterAll(() => {
    const now = usedSeconds();
    shared.testCostSeen = now;
    const file = relative(process.cwd(), expect.getState().testPath ?? '');
    appendFileSync(path, `${(now - before).toFixed(2)} ${file}\n`);
  });
}
