// Tenants that read the same disk: who misses a record now and then beside one that misses thousands, over the real
// listener, pod and engine. What LevelDB is asked for is held here until it may go on, so that order can be counted.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { KvEngine } from '../../engines/kv/kv-engine.ts';
import { LevelStore } from '../../engines/kv/level-store.ts';
import { IoScheduler } from '../../storage-node/admission/disk/io-scheduler.ts';
import { systemClock } from '../../universal-row/environment.ts';
import { TenantsServer } from '../redis-tenants/tenants-server.ts';
import { encode, type RespClient } from '../support/resp-client.ts';
import { show } from '../support/resp-value.ts';

const rows = 2000;
const clients = 8;
const keysEach = 200;

/** A read of the disk that has been asked for. */
interface Asked {
  count: number;
  goOn: () => void;
  fail: () => void;
}

class HeldStore extends LevelStore {
  holds = false;
  /** Waiting reads, in order. */
  asked: Asked[] = [];

  override async getMany(keys: Buffer[], most?: number): Promise<(Buffer | undefined)[]> {
    if (this.holds) {
      await new Promise<void>((goOn, fail) => {
        this.asked.push({
          count: keys.length,
          goOn,
          fail: () => fail(new Error('Input/output error')),
        });
      });
    }
    return super.getMany(keys, most);
  }

  /** All go on, and what comes after them. */
  release(): void {
    this.holds = false;
    for (const { goOn } of this.asked.splice(0)) goOn();
  }
}

let directory: string;
let level: HeldStore;
let scheduler: IoScheduler;
let server: TenantsServer;
let failures: string[];

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'polyrow-reads-'));
  failures = [];
  level = new HeldStore(directory);
  server = await TenantsServer.start({
    engine: (ownerOf) => {
      scheduler = new IoScheduler({ clock: systemClock, ownerOf, aloneMs: Infinity });
      return new KvEngine({
        directory,
        cacheBytes: 0,
        levelStore: level,
        readScheduler: scheduler,
      });
    },
    failed: (message) => failures.push(message),
  });
  for (const name of ['busy', 'calm']) {
    server.tenant(name);
    const client = await server.client(name);
    for (let from = 0; from < rows; from += 500) {
      const words = ['MSET'];
      for (let i = from; i < from + 500; i++) words.push(`k${i}`, `${name} ${i}`);
      await client.command(...words);
    }
  }
  await server.pod.checkpoint();
  // Ticks pass, in which unused records are released.
  const client = await server.client('calm');
  for (let i = 0; i < 20; i++) await client.command('PING');
});
afterEach(async () => {
  level.release();
  await server.stop();
  rmSync(directory, { recursive: true, force: true });
});

/** Clients of `busy` that ask for so many keys each, none for the same as another. */
async function flood(): Promise<{ all: RespClient[]; answers: Promise<string[][]> }> {
  level.holds = true;
  const all = await Promise.all(Array.from({ length: clients }, () => server.client('busy')));
  const answers = all.map(async (client, n) => {
    const keys = Array.from({ length: keysEach }, (_, i) => `k${n * keysEach + i}`);
    const reply = await client.command('MGET', ...keys);
    return reply.type === '*' ? reply.items.map(show) : [show(reply)];
  });
  await expect.poll(() => scheduler.length).toBeGreaterThan(clients);
  return { all, answers: Promise.all(answers) };
}

function expected(n: number): string[] {
  return Array.from({ length: keysEach }, (_, i) => JSON.stringify(`busy ${n * keysEach + i}`));
}

const toAsk = (count: number) => expect.poll(() => level.asked.length).toBe(count);

test('one that asks for a record is served before all that another has missed', async () => {
  const calm = await server.client('calm');
  const { answers } = await flood();
  await toAsk(4);
  await expect.poll(() => scheduler.length).toBeGreaterThan(40);
  for (let i = 0; i < 20; i++) {
    const value = calm.text('GET', `k${i}`);
    // One of the workers that there are for others.
    await toAsk(5);
    expect(level.asked[4]!.count).toBe(1);
    level.asked.pop()!.goOn();
    expect(await value).toBe(JSON.stringify(`calm ${i}`));
  }
  expect(scheduler.extraReads).toBe(20);
  level.release();
  expect(await answers).toEqual(Array.from({ length: clients }, (_, n) => expected(n)));
  expect([scheduler.length, scheduler.running]).toEqual([0, 0]);
});

test('without the line its read is asked for when all of the other’s have been', async () => {
  scheduler.enabled = false;
  const calm = await server.client('calm');
  level.holds = true;
  const busy = await server.client('busy');
  const many = busy.command('MGET', ...Array.from({ length: rows }, (_, i) => `k${i}`));
  await expect.poll(() => level.asked.length).toBeGreaterThan(0);
  const value = calm.text('GET', 'k0');
  await expect.poll(() => level.asked.at(-1)!.count).toBe(1);
  const before = level.asked.slice(0, -1).reduce((sum, { count }) => sum + count, 0);
  expect(before).toBe(rows);
  expect([scheduler.length, scheduler.waited]).toEqual([0, 0]);
  level.release();
  expect(await value).toBe('"calm 0"');
  expect((await many).type).toBe('*');
});

test('a read that fails is an error of those who asked for it, and the line goes on', async () => {
  const calm = await server.client('calm');
  const { answers } = await flood();
  await toAsk(4);
  const value = calm.text('GET', 'k0');
  await toAsk(5);
  level.asked.pop()!.fail();
  expect(await value).toMatch(/^-ERR/);
  level.asked.shift()!.fail();
  level.release();
  const got = await answers;
  const wrong = got.filter(([first]) => first!.startsWith('-'));
  expect(wrong).toHaveLength(1);
  got.forEach((one, n) => {
    if (!wrong.includes(one)) expect(one).toEqual(expected(n));
  });
  expect(failures).toHaveLength(2);
  expect([scheduler.length, scheduler.running]).toEqual([0, 0]);
  expect(await calm.text('GET', 'k0')).toBe('"calm 0"');
});

test('clients that go while they wait leave nothing behind', async () => {
  const { all, answers } = await flood();
  answers.catch(() => {});
  for (const client of all) client.socket.destroy();
  const calm = await server.client('calm');
  const value = calm.text('GET', 'k1');
  await toAsk(5);
  level.release();
  expect(await value).toBe('"calm 1"');
  await expect.poll(() => scheduler.length + scheduler.running).toBe(0);
});

test('rows that are dropped while they are waited for are not there', async () => {
  for (const how of ['FLUSHALL', 'FLUSHDB']) {
    const { answers } = await flood();
    const client = await server.client('busy');
    expect(await client.text(how)).toBe('+OK');
    level.release();
    for (const one of await answers) expect(new Set(one)).toEqual(new Set(['(nil)']));
    const words = ['MSET'];
    for (let i = 0; i < clients * keysEach; i++) words.push(`k${i}`, `busy ${i}`);
    await client.command(...words);
    await server.pod.checkpoint();
    for (let i = 0; i < 20; i++) await client.command('PING');
  }
  const calm = await server.client('calm');
  expect(await calm.text('GET', 'k2')).toBe('"calm 2"');
});

test('a tenant may be dropped while its reads wait', async () => {
  const { answers } = await flood();
  answers.catch(() => {});
  const dropped = server.drop('busy');
  const calm = await server.client('calm');
  const value = calm.text('GET', 'k3');
  await toAsk(5);
  level.release();
  expect(await value).toBe('"calm 3"');
  await dropped;
  scheduler.forget(1);
  await expect.poll(() => scheduler.length + scheduler.running).toBe(0);
});

test('switched off, or closed, everybody goes on', async () => {
  for (const end of [() => (scheduler.enabled = false), () => scheduler.close()]) {
    const { answers } = await flood();
    await toAsk(4);
    end();
    expect(scheduler.length).toBe(0);
    level.release();
    expect(await answers).toEqual(Array.from({ length: clients }, (_, n) => expected(n)));
    scheduler.enabled = true;
  }
});

test('a pipeline of writes and reads keeps its order while its reads wait', async () => {
  const { answers } = await flood();
  const calm = await server.client('calm');
  const words = [
    ['GET', 'k5'],
    ['SET', 'k5', 'new'],
    ['GET', 'k5'],
    ['APPEND', 'k6', '!'],
    ['GET', 'k6'],
    ['DEL', 'k7'],
    ['GET', 'k7'],
  ];
  const replies = calm.replies(words.length);
  calm.send(Buffer.concat(words.map((one) => encode(one))));
  await toAsk(5);
  level.release();
  expect((await replies).map(show)).toEqual([
    '"calm 5"',
    '+OK',
    '"new"',
    ':7',
    '"calm 6!"',
    ':1',
    '(nil)',
  ]);
  await answers;
});
