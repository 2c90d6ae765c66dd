import { expect, test } from 'vitest';
import { whenFinished } from '../../../universal-row/slices.ts';
import { QueryRegistry } from './query-registry.ts';

function registry(maxConcurrent = 0) {
  const clock = { now: () => 0, time: 0, monotonic: () => clock.time };
  return { clock, queries: new QueryRegistry({ clock, maxConcurrent }) };
}

test('lists what runs', () => {
  const { clock, queries } = registry();
  const first = queries.start('SELECT 1', 'db');
  clock.time = 5;
  const second = queries.start('SELECT 2', '');
  clock.time = 7;
  expect(queries.list().map(({ id, text, database }) => [id, text, database])).toEqual([
    [1, 'SELECT 1', 'db'],
    [2, 'SELECT 2', ''],
  ]);
  expect([first.elapsedMs(), second.elapsedMs()]).toEqual([7, 2]);
  first.end();
  first.end();
  expect(queries.list()).toEqual([second]);
  expect([queries.size, queries.executed, queries.finished]).toEqual([1, 2, 1]);
});

test('a killed query fails at its next look', () => {
  const { queries } = registry();
  const task = queries.start('SELECT', 'db');
  const told: string[] = [];
  task.whenKilled(() => told.push('before'));
  task.throwIfKilled();
  void queries.kill(task.id);
  task.cancel('too late to matter');
  task.whenKilled(() => told.push('after'));
  expect(told).toEqual(['before', 'after']);
  expect(task.killed).toBe(true);
  expect(() => task.throwIfKilled()).toThrow('query interrupted');
  task.end();
  expect(() => queries.kill(task.id)).toThrow('no such query id: 1');
});

test('a reason of its own', () => {
  const task = registry().queries.start('SELECT', 'db');
  task.cancel('query-timeout limit exceeded');
  expect(() => task.throwIfKilled()).toThrow('query-timeout limit exceeded');
});

test('only so many at once', () => {
  const { queries } = registry(2);
  const first = queries.start('a', '');
  queries.start('b', '');
  expect(() => queries.start('c', '')).toThrow('max-concurrent-queries limit exceeded(2, 2)');
  first.end();
  queries.start('c', '');
});

test('one that waits is there to be killed, and its time begins later', () => {
  const { clock, queries } = registry();
  const task = queries.start('SELECT', 'db');
  task.wait();
  clock.time = 50;
  expect([task.waiting, task.elapsedMs()]).toEqual([true, 50]);
  let reason: string | undefined;
  task.whenKilled(() => (reason = task.reason));
  task.begin();
  clock.time = 60;
  expect([task.waiting, task.elapsedMs()]).toEqual([false, 10]);
  void queries.kill(task.id);
  expect(reason).toBe('query interrupted');
});

test('in a cluster those of other nodes are listed and killed, by ids that tell the node', async () => {
  const clock = { now: () => 0, monotonic: () => 0 };
  const nodes = [1, 2].map((node): QueryRegistry => {
    const other = (): QueryRegistry => nodes[2 - node]!;
    const elsewhere = {
      node,
      list: async () => other().shownHere(),
      kill: async (id: number) => other().killHere(id),
    };
    return new QueryRegistry({ clock, maxConcurrent: 0, elsewhere });
  });
  const [first, second] = nodes as [QueryRegistry, QueryRegistry];
  const here = first.start('SELECT 1', 'db');
  const there = second.start('SELECT 2', 'db', 'ann');
  const shown = await whenFinished(first.shown());
  expect(shown.map(({ id, text, user, status }) => [id, text, user, status])).toEqual([
    [2 ** 32 + 1, 'SELECT 1', '', 'running'],
    [2 * 2 ** 32 + 1, 'SELECT 2', 'ann', 'running'],
  ]);
  await first.kill(shown[1]!.id);
  expect([here.killed, there.killed]).toEqual([false, true]);
  there.end();
  await expect(first.kill(shown[1]!.id)).rejects.toThrow(`no such query id: ${shown[1]!.id}`);
  await second.kill(shown[0]!.id);
  expect(here.killed).toBe(true);
});
