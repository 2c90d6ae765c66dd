import { expect, test } from 'vitest';
import { RowWork } from '../universal-row/row-work.ts';
import type { Engine } from '../engines/engine.ts';
import { MemoryEngine } from '../engines/memory/memory-engine.ts';
import { ReadFault } from '../universal-row/errors.ts';
import { PodFixture, TextReply } from './pod-fixture.ts';

async function workOf(fixture: PodFixture, ...lines: string[]): Promise<RowWork> {
  const work = new RowWork();
  for (const line of lines) {
    await fixture.pod.execute({ ...fixture.command(line), work }, new TextReply());
  }
  return work;
}

test('a command tells what it had the engine do', async () => {
  const fixture = await PodFixture.open();
  const set = await workOf(fixture, 'put key value');
  expect(set).toMatchObject({ values: 1, misses: 0, walked: 0 });
  expect(set.logBytes).toBeGreaterThan('keyvalue'.length);
  expect(set.logBytes).toBeLessThan(40);
  expect(await workOf(fixture, 'get key')).toMatchObject({
    lookups: 1,
    reads: 1,
    readBytes: 5,
    logBytes: 0,
  });
  expect(await workOf(fixture, 'get nothing')).toMatchObject({ lookups: 1, reads: 0 });
});

test('commands of one connection add up until it begins anew', async () => {
  const fixture = await PodFixture.open();
  const work = await workOf(fixture, 'put a 1', 'put b 2', 'get a', 'get b');
  expect(work).toMatchObject({ values: 2, reads: 2 });
  work.reset();
  expect(Object.values(work).every((count) => count === 0)).toBe(true);
});

test('a command that nobody charges runs all the same', async () => {
  const fixture = await PodFixture.open();
  expect(fixture.run('put a 1')).toBe('OK');
  expect(fixture.run('get a')).toContain('1');
});

test('what was undone for a row on disk counts as a miss, and its work once', async () => {
  const engine = new MemoryEngine();
  const fixture = await PodFixture.open({ engine });
  await workOf(fixture, 'put key value');
  const table = engine.table(0);
  const find = table.find.bind(table);
  let missesLeft = 2;
  table.find = (b, s, n) => {
    if (missesLeft-- > 0) throw new ReadFault(Promise.resolve());
    return find(b, s, n);
  };
  expect(await workOf(fixture, 'get key')).toMatchObject({ misses: 2, lookups: 1, reads: 1 });
});

test('what was undone leaves the work of the commands before it', async () => {
  const engine: Engine = new MemoryEngine();
  engine.expectRows = () => {};
  const fixture = await PodFixture.open({ engine });
  await workOf(fixture, 'put key value', 'put other value');
  const work = new RowWork();
  const table = engine.table(0);
  const find = table.find.bind(table);
  let misses = 0;
  table.find = (b, s, n) => {
    if (misses++ % 2 === 0) throw new ReadFault(Promise.resolve());
    return find(b, s, n);
  };
  for (const line of ['get key', 'get other', 'get key']) {
    await fixture.pod.execute({ ...fixture.command(line), work }, new TextReply());
  }
  expect(work).toMatchObject({ misses: 3, lookups: 3, reads: 3, readBytes: 15 });
});

test('a transaction is the work of its commands', async () => {
  const fixture = await PodFixture.open();
  const work = new RowWork();
  const commands = ['put a 1', 'put b 22', 'get b'].map((line) => ({
    ...fixture.command(line),
    work,
  }));
  await fixture.pod.executeAll(commands, new TextReply(), () => true);
  expect(work).toMatchObject({ values: 2, reads: 1, readBytes: 2 });
  expect(work.logBytes).toBeGreaterThan(0);
});
