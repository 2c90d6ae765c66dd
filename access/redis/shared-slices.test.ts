import { afterEach, expect, test, vi } from 'vitest';
import { SharedSlices } from './shared-slices.ts';

afterEach(() => vi.restoreAllMocks());

const round = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('slices share the time of a round, in order, and each has one a round at most', async () => {
  let now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  const turns = new SharedSlices();
  const seen: string[] = [];
  const work = (name: string, ms: number, slices: number): void => {
    let left = slices;
    const slice = (): void => {
      seen.push(name);
      now += ms;
      if (--left > 0) turns.add(slice);
    };
    turns.add(slice);
  };
  work('a', 3, 2);
  work('b', 3, 2);
  work('c', 3, 1);
  work('d', 0, 3);
  const rounds: string[] = [];
  for (let n = 0; n < 6; n++) {
    await round();
    rounds.push(seen.splice(0).join(''));
  }
  expect(rounds).toEqual(['ab', 'cda', 'bd', 'd', '', '']);
});

test('a slice that fails does not end the others', async () => {
  const turns = new SharedSlices();
  const seen: number[] = [];
  const failures: unknown[] = [];
  const listeners = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  process.once('uncaughtException', (error) => failures.push(error.message));
  for (let n = 0; n < 3000; n++) {
    turns.add(() => {
      if (n === 1) throw new Error('of ours');
      seen.push(n);
    });
  }
  while (seen.length < 2999) await round();
  for (const listener of listeners) process.on('uncaughtException', listener);
  expect(failures).toEqual(['of ours']);
  expect(seen).toEqual(Array.from({ length: 3000 }, (_, n) => n).filter((n) => n !== 1));
});
