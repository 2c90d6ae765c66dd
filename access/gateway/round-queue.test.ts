import { afterEach, expect, test, vi } from 'vitest';
import { FirstCome, RoundQueue } from './round-queue.ts';

afterEach(() => vi.restoreAllMocks());

const round = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Turns of work that takes so many milliseconds, on a clock of its own: half of them when it begins, half in promises. */
function turnsOf(ms: number) {
  let now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  const begun: number[] = [];
  const waiting = new FirstCome<number>();
  const turns = new RoundQueue<number>(waiting, (work) => {
    begun.push(work);
    now += ms / 2;
    void Promise.resolve()
      .then(() => {})
      .then(() => (now += ms / 2));
  });
  return { turns, waiting, begun, later: (more: number) => (now += more) };
}

test('work that comes piece by piece begins at once', async () => {
  const { turns, begun } = turnsOf(1);
  for (let n = 0; n < 20; n++) {
    turns.add(n);
    expect(begun).toHaveLength(n + 1);
    await round();
  }
});

test('of work that comes together some is begun in each round, in order, and what it sets off counts', async () => {
  const { turns, waiting, begun } = turnsOf(1);
  const all = Array.from({ length: 100 }, (_, n) => n);
  for (const n of all) turns.add(n);
  // Their promises run when all have come: only the first halves are known by then.
  expect(begun).toHaveLength(8);
  const rounds: number[] = [];
  while (waiting.size > 0) {
    const before = begun.length;
    await round();
    rounds.push(begun.length - before);
  }
  expect(Math.max(...rounds)).toBeLessThanOrEqual(8);
  expect(rounds.length).toBeGreaterThan(10);
  expect(begun).toEqual(all);
});

test('other work in the round counts as well', () => {
  const { turns, begun, later } = turnsOf(1);
  turns.add(1);
  later(10);
  turns.add(2);
  expect(begun).toEqual([1]);
});

test('a piece that fails does not keep those behind it from beginning', async () => {
  let now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  const begun: number[] = [];
  const waiting = new FirstCome<number>();
  const turns = new RoundQueue<number>(waiting, (work) => {
    now += 10;
    begun.push(work);
    if (work === 0) throw new Error('it fails');
  });
  expect(() => turns.add(0)).toThrow('it fails');
  turns.add(1);
  turns.add(2);
  while (waiting.size > 0) await round();
  expect(begun).toEqual([0, 1, 2]);
});

test('a queue keeps its order, and not what was taken', () => {
  const queue = new FirstCome<number>();
  const taken: number[] = [];
  for (let n = 0; n < 100; n++) {
    queue.add(2 * n);
    queue.add(2 * n + 1);
    taken.push(queue.take());
  }
  while (queue.size > 0) taken.push(queue.take());
  expect(taken).toEqual(Array.from({ length: 200 }, (_, n) => n));
});
