import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Work, WorkQueue } from './work-queue.ts';

const work = (startedAt: number, more: Partial<Work> = {}): Work => ({
  priority: 0,
  startedAt,
  arrivedAt: startedAt,
  deadline: Infinity,
  ...more,
});

function drain(queue: WorkQueue<Work>, now = 0): number[] {
  const order: number[] = [];
  for (let next = queue.pop(now); next !== undefined; next = queue.pop(now)) {
    order.push(next.startedAt);
  }
  return order;
}

/** The queue has been late for long enough. */
function overload(queue: WorkQueue<Work>): void {
  for (let tick = 0; tick < 3; tick++) queue.tick(1e6);
  expect(queue.isOverloaded).toBe(true);
}

test('without overload work is served in the order in which its transactions began, priority first', () => {
  const one = fc.record({ startedAt: fc.nat(50), priority: fc.nat(2) });
  fc.assert(
    fc.property(fc.array(one), (all) => {
      const queue = new WorkQueue<Work>();
      for (const { startedAt, priority } of all) queue.push(work(startedAt, { priority }));
      const expected = all
        .toSorted((a, b) => b.priority - a.priority || a.startedAt - b.startedAt)
        .map(({ startedAt }) => startedAt);
      expect(drain(queue)).toEqual(expected);
    }),
  );
});

test('under overload the newest epoch goes first, and within it the oldest', () => {
  const queue = new WorkQueue<Work>();
  for (const at of [250, 10, 120, 290, 50, 180, 210]) queue.push(work(at));
  queue.push(work(5, { priority: 1 }));
  overload(queue);
  queue.push(work(305));
  queue.push(work(205));
  expect(drain(queue)).toEqual([5, 305, 205, 210, 250, 290, 120, 180, 10, 50]);
});

test('drained, it forgets the overload', () => {
  const queue = new WorkQueue<Work>();
  queue.push(work(1));
  overload(queue);
  expect(drain(queue)).toEqual([1]);
  expect(queue.isOverloaded).toBe(false);
  queue.push(work(20));
  queue.push(work(500));
  expect(drain(queue)).toEqual([20, 500]);
});

test('a short wait, or one late tick, is no overload', () => {
  const queue = new WorkQueue<Work>();
  queue.push(work(1000));
  for (let tick = 0; tick < 10; tick++) queue.tick(1100);
  queue.tick(1101);
  queue.tick(1102);
  queue.tick(1050);
  queue.tick(1101);
  queue.tick(1102);
  expect(queue.isOverloaded).toBe(false);
});

test('what has expired is passed over and told', () => {
  const queue = new WorkQueue<Work>();
  for (const at of [1, 2, 3]) queue.push(work(at, { deadline: at * 10 }));
  const expired: number[] = [];
  expect(queue.pop(20, (gone) => expired.push(gone.startedAt))!.startedAt).toBe(3);
  expect(expired).toEqual([1, 2]);
});
