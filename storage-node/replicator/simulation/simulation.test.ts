// Histories of the replicated log under faults, and that the simulator would find what it looks for. More are run in CI and
// with POLYROW_FULL=1; `npm run simulate` runs as many as one likes, and a failed seed repeats with `--from SEED --seeds 1`.

import { describe, expect, test } from 'vitest';
import { defects } from './defects.ts';
import { runHistory } from './history.ts';

const isFull = Boolean(process.env['POLYROW_FULL'] ?? process.env['CI']);
const histories = isFull ? 3000 : 200;
const perTest = 100;
/** Bugs that take more seeds are left to `npm run simulate -- --defects`. */
const quickDefects = 200;

test.each(Array.from({ length: histories / perTest }, (_, i) => 1 + i * perTest))(
  'every invariant holds from seed %d on',
  { timeout: 600_000 },
  async (from) => {
    let committed = 0;
    for (let seed = from; seed < from + perTest; seed++) {
      const { failure, committed: more } = await runHistory(seed);
      expect({ seed, failure }).toEqual({ seed, failure: undefined });
      committed += more;
    }
    expect(committed).toBeGreaterThan(perTest * 20);
  },
);

test('a seed repeats its history, whichever ran before', async () => {
  const first = await runHistory(5);
  await runHistory(6);
  expect(await runHistory(5)).toEqual(first);
});

describe('a planted bug is found', { timeout: 600_000 }, () => {
  test.each([
    'the log is never synced',
    'all of the log counts as committed at a restart',
    'the members are forgotten at a restart',
    'a read is answered without asking the others',
    'a voter keeps to no lease',
    'a snapshot misses what was applied last',
  ])('%s', async (name) => {
    const defect = defects.find((one) => one.name === name)!;
    let failure: string | undefined;
    for (let seed = 1; seed <= quickDefects && failure === undefined; seed++) {
      failure = (await runHistory(seed, defect)).failure;
    }
    expect(failure).toBeDefined();
  });
});
