import { expect, test } from 'vitest';
import { systemClock } from '../../universal-row/environment.ts';
import { type DiskWait, SlicedRun } from './sliced-work.ts';

/** Work of one wait, and what became of its lives. */
function waiting(wait: DiskWait): { run: SlicedRun; lives: string[] } {
  const lives: string[] = [];
  const run = new SlicedRun(function* () {
    const life = lives.push('begun') - 1;
    try {
      yield wait;
      lives[life] = 'done';
    } catch (error) {
      lives[life] = (error as Error).message;
      throw error;
    }
  });
  return { run, lives };
}

test('a caller that blocks does not take the word of a second sync for a first one under way', async () => {
  let calls = 0;
  const { run, lives } = waiting({
    now: () => void calls++,
    // The disk tells this one alone that it has failed.
    later: () => Promise.reject(new Error('EIO')),
  });
  expect(run.slice(systemClock, 1000, false)).toBe(true);
  expect(run.slice(systemClock, 1000, true)).toBe(false);
  expect(lives).toEqual(['the work begins anew', 'done']);
  expect(calls).toBe(1);
  await run.waiting;
});

test('work goes on after a wait that may be repeated', () => {
  const { run, lives } = waiting({
    now: () => {},
    later: () => new Promise(() => {}),
    isRepeatable: true,
  });
  run.slice(systemClock, 1000, false);
  expect(run.slice(systemClock, 1000, true)).toBe(false);
  expect(lives).toEqual(['done']);
});
