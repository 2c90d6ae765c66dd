// Reads that wait at a scheduler before they go to the disk: whose they are, how much each is, and what may happen meanwhile.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTick } from 'node:timers/promises';
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest';
import { ReadFault } from '../../universal-row/errors.ts';
import { Shape } from '../../universal-row/rows.ts';
import { HeldReads } from '../conformance/held-reads.ts';
import { Verbs } from '../conformance/verbs.ts';
import { engineClosed } from '../engine.ts';
import { KvEngine } from './kv-engine.ts';
import { LevelStore } from './level-store.ts';

const root = mkdtempSync(join(tmpdir(), 'polyrow-kv-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let directories = 0;

/** LevelDB whose reads fail as long as it is told to. */
class FailingStore extends LevelStore {
  failing = false;
  /** Reads wait for it, if there is one. */
  held: Promise<void> | undefined;

  override getMany(keys: Buffer[], most?: number): Promise<(Buffer | undefined)[]> {
    if (this.failing) return Promise.reject(new Error('Input/output error'));
    if (this.held !== undefined) return this.held.then(() => super.getMany(keys, most));
    return super.getMany(keys, most);
  }
}

let engine: KvEngine;
let scheduler: HeldReads;
let level: FailingStore;
const names = (count: number): string[] => [...Array(count).keys()].map((i) => `name ${i}`);

beforeEach(async () => {
  const directory = join(root, String(directories++));
  level = new FailingStore(directory);
  scheduler = new HeldReads(4);
  scheduler.isOn = false;
  engine = new KvEngine({ directory, cacheBytes: 0, levelStore: level, readScheduler: scheduler });
  await engine.open();
  for (const table of [1, 2]) {
    const v = new Verbs(engine.table(table));
    for (const name of names(20)) v.put(name, `${name} of ${table}`);
    const map = v.container('map', Shape.map);
    for (const name of names(20)) v.putFieldOf(map, name, 'v');
  }
  engine.commit(1);
  engine.endTick();
  await engine.checkpoint();
  await forgetAll();
  scheduler.isOn = true;
});
afterEach(() => engine.close());

/** Ticks go by until nothing but what cannot be given up is in memory. */
async function forgetAll(): Promise<void> {
  for (let i = 0; i < 10; i++) {
    await nextTick();
    engine.endTick();
  }
}

/** The value returned, or the promise to wait for. */
function attempt<T>(of: () => T): T | Promise<void> {
  try {
    return of();
  } catch (error) {
    engine.rollback();
    if (error instanceof ReadFault) return error.ready;
    throw error;
  }
}

const ask = (table: number, name: string): string | Promise<void> =>
  attempt(() => new Verbs(engine.table(table)).value(name));

/** Asks for what is not in memory. */
function miss(table: number, name: string): Promise<void> {
  const answer = ask(table, name);
  if (typeof answer === 'string') throw new Error(`${name} is in memory`);
  return answer;
}

const held = (): string[] =>
  scheduler.held.map(({ owner, records, isPage }) => `${owner}: ${isPage ? 'page' : records}`);

const groups = (): number => engine.stats().extra['kv_read_groups_total']!;

test('what one tick misses is read apart by owners, and a few records at a time', async () => {
  const waits = names(10).map((name) => miss(1, name));
  waits.push(miss(2, 'name 0'));
  engine.endTick();
  expect(held()).toEqual(['1: 4', '1: 4', '1: 2', '2: 1']);
  // The last is served while the first ones wait.
  scheduler.held.pop()!.begin();
  await waits[10];
  expect(ask(2, 'name 0')).toBe('name 0 of 2');
  expect(ask(1, 'name 0')).toBe(waits[0]);
  scheduler.releaseAll();
  await Promise.all(waits);
  expect(names(10).map((name) => ask(1, name))).toEqual(names(10).map((name) => `${name} of 1`));
  expect(held()).toEqual([]);
});

test('what was read stays until all that its command asked for is there', async () => {
  const waits = names(8).map((name) => miss(1, name));
  engine.endTick();
  scheduler.held.shift()!.begin();
  await waits[0];
  await forgetAll();
  scheduler.releaseAll();
  await Promise.all(waits);
  expect(names(8).map((name) => ask(1, name))).toEqual(names(8).map((name) => `${name} of 1`));
  await forgetAll();
  // Then it goes.
  void miss(1, 'name 0');
  engine.endTick();
  scheduler.releaseAll();
});

test('an error of the disk is told to those who wait for that read, and to nobody else', async () => {
  const waits = names(5).map((name) => miss(1, name));
  engine.endTick();
  level.failing = true;
  scheduler.held.shift()!.begin();
  for (const wait of waits.slice(0, 4)) await expect(wait).rejects.toThrow('Input/output error');
  level.failing = false;
  scheduler.releaseAll();
  await waits[4];
  expect(ask(1, 'name 4')).toBe('name 4 of 1');
  // A second request reads it again.
  const again = miss(1, 'name 0');
  engine.endTick();
  scheduler.releaseAll();
  await again;
  expect(ask(1, 'name 0')).toBe('name 0 of 1');
});

test('nobody reads what was dropped meanwhile', async () => {
  const [row, other] = [miss(1, 'name 0'), miss(2, 'name 0')];
  engine.endTick();
  engine.table(1).clear();
  engine.commit(2);
  engine.endTick();
  const before = groups();
  scheduler.releaseAll();
  await Promise.all([row, other]);
  expect(groups() - before).toBe(1);
  expect(new Verbs(engine.table(1)).find('name 0')).toBe(0);
  expect(ask(2, 'name 0')).toBe('name 0 of 2');
});

test('tables that change places change owners', async () => {
  engine.swapTables(1, 2);
  engine.commit(2);
  void miss(1, 'name 3');
  engine.endTick();
  expect(held()).toEqual(['1: 1']);
  scheduler.releaseAll();
  await nextTick();
  engine.swapTables(1, 2);
  engine.rollback();
  void miss(2, 'name 4');
  engine.endTick();
  expect(held()).toEqual(['2: 1']);
  scheduler.releaseAll();
});

test('pages wait as well', async () => {
  const fields = (): number | Promise<void> =>
    attempt(() => {
      const v = new Verbs(engine.table(2));
      let count = 0;
      v.table.eachField(v.row('map'), () => {
        count++;
      });
      return count;
    });
  const found: string[] = [];
  for (;;) {
    const answer = fields();
    if (typeof answer === 'number') {
      expect(answer).toBe(20);
      break;
    }
    engine.endTick();
    found.push(...held());
    scheduler.releaseAll();
    await answer;
  }
  expect(found).toEqual(['2: 1', '2: page']);
});

test('closing refuses reads that wait and those to come', async () => {
  const waits = [miss(1, 'name 0'), miss(2, 'name 0')];
  engine.endTick();
  // Neither sent nor at the scheduler yet.
  waits.push(miss(1, 'name 1'));
  await engine.close();
  for (const wait of waits) await expect(wait).rejects.toBe(engineClosed);
  expect(() => ask(1, 'name 5')).toThrow(engineClosed.message);
  const before = groups();
  scheduler.releaseAll();
  await nextTick();
  expect(groups()).toBe(before);
});

test('closing waits for reads under way', async () => {
  const wait = miss(1, 'name 0');
  engine.endTick();
  let letGo = (): void => {};
  level.held = new Promise((resolve) => (letGo = resolve));
  scheduler.releaseAll();
  let isClosed = false;
  const closed = engine.close().then(() => (isClosed = true));
  await forgetAll();
  expect(isClosed).toBe(false);
  letGo();
  await wait;
  await closed;
});

test('closing does not wait for an entry that nobody will commit', async () => {
  engine.table(1).clear();
  await engine.close();
});
