import { afterEach, expect, test, vi } from 'vitest';
import { AcceptQueue } from './accept-queue.ts';

afterEach(() => vi.restoreAllMocks());

const round = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A queue whose sockets take so many milliseconds each, on a clock of its own. */
function queueOf(ms: number): { queue: AcceptQueue<number>; served: number[] } {
  let now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  const served: number[] = [];
  const queue = new AcceptQueue<number>((socket) => {
    served.push(socket);
    now += ms;
  });
  return { queue, served };
}

test('connections that come one by one are served at once', async () => {
  const { queue, served } = queueOf(1);
  for (let n = 0; n < 20; n++) {
    queue.add(n);
    expect(served).toHaveLength(n + 1);
    await round();
  }
  expect(queue.size).toBe(0);
});

test('of many that come together a few are served in each round, in order', async () => {
  const { queue, served } = queueOf(1);
  const all = Array.from({ length: 100 }, (_, n) => n);
  for (const n of all) queue.add(n);
  expect(served).toHaveLength(4);
  const rounds: number[] = [];
  while (queue.size > 0) {
    const before = served.length;
    await round();
    rounds.push(served.length - before);
  }
  expect(Math.max(...rounds)).toBeLessThanOrEqual(8);
  expect(served).toEqual(all);
});
