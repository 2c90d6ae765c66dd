// Ceilings of partitions in the whole server, as an operator sets them and real clients meet them.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { Redis } from 'ioredis';
import { redisPython } from '../support/redis-python.ts';
import type { RespClient } from '../support/resp-client.ts';
import { show } from '../support/resp-value.ts';
import { tableCommand } from '../table-properties/subjects.ts';
import { LimitedPolyrow } from './limited-polyrow.ts';

// Little enough for a slow client on a busy machine to want more than a partition's ceiling.
const quota = 4000;

let server: LimitedPolyrow;
let red: RespClient;
let blue: RespClient;
beforeAll(async () => {
  server = await LimitedPolyrow.start();
  for (const name of ['red', 'blue']) await server.tenant(name, quota);
  red = await server.client('red');
  blue = await server.client('blue');
  const table = await tableCommand(server.server, 'alter', 'red/0', '--partitions', '16');
  expect(table).toMatchObject({ partitions: 16 });
});
beforeEach(async () => {
  await set({ 'admission.partition-cap': 'always' });
  await server.quota('red', quota);
});
afterAll(async () => {
  await server.stop();
});

async function set(settings: object): Promise<void> {
  const { status, body } = await server.server.askAdmin('PATCH', '/v1/config', settings);
  expect([status, body]).toEqual([200, expect.anything()]);
}

interface Served {
  /** Units a second. */
  ru: number;
  refused: number;
}

/** Wants as much of one key as it can get, for some seconds by the server's clock. */
async function hammer(client: RespClient, seconds: number, key = 'hot'): Promise<Served> {
  const commands = Array.from({ length: 200 }, () => ['INCR', key]);
  // Savings are spent first.
  for (let i = 0; i < 20; i++) await client.pipeline(commands);
  const before = await LimitedPolyrow.stats(client);
  let after = before;
  while (after.get('seconds')! - before.get('seconds')! < seconds) {
    await client.pipeline(commands);
    after = await LimitedPolyrow.stats(client);
  }
  const grown = (name: string): number => after.get(name)! - before.get(name)!;
  return { ru: grown('write_ru') / grown('seconds'), refused: grown('partition_refused') };
}

async function refusedOf(client: RespClient): Promise<number> {
  return (await LimitedPolyrow.stats(client)).get('partition_refused')!;
}

const ceiling = (3 * quota) / 16;

test('one key gets its partition’s ceiling; other keys and other tenants see nothing of it', async () => {
  const other = await server.client('red');
  let isOver = false;
  const bystander = async (client: RespClient, key: string): Promise<number> => {
    let count = 0;
    for (; !isOver; count++) {
      expect(await client.text('SET', key, count)).toBe('+OK');
      // Its units are in the tenant's, too: at most a twentieth of the ceiling.
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    return count;
  };
  const bystanders = Promise.all([bystander(other, 'a'), bystander(blue, 'hot')]);
  const { ru, refused } = await hammer(red, 3);
  isOver = true;
  for (const count of await bystanders) expect(count).toBeGreaterThan(20);
  expect(refused).toBeGreaterThan(100);
  expect(ru / ceiling).toBeGreaterThan(0.5);
  expect(ru / ceiling).toBeLessThan(1.15);
  expect(await refusedOf(blue)).toBe(0);
  other.close();
});

test('so it is on LevelDB; and reads that the gateway remembers are not held to it', async () => {
  const flags = ['--model', 'kv', '--partitions', '16', '--consistency', 'eventual'];
  await tableCommand(server.server, 'alter', 'red/2', ...flags);
  const client = await server.client('red');
  await client.text('SELECT', 2);
  const { ru, refused } = await hammer(client, 2);
  expect(refused).toBeGreaterThan(100);
  expect(ru / ceiling).toBeGreaterThan(0.5);
  expect(ru / ceiling).toBeLessThan(1.15);
  await expect.poll(() => client.text('GET', 'hot')).not.toMatch(/^-/);
  const before = await refusedOf(client);
  const reads = Array.from({ length: 20_000 }, () => ['GET', 'hot']);
  const answers = new Set((await client.pipeline(reads)).map(show));
  expect(answers.size).toBe(1);
  expect(await refusedOf(client)).toBe(before);
  client.close();
});

test('a load that is spread has all of the quota', async () => {
  // Where nothing is owed.
  await tableCommand(server.server, 'alter', 'red/1', '--partitions', '16');
  const other = await server.client('red');
  await other.text('SELECT', 1);
  const before = await refusedOf(red);
  const spread = Array.from({ length: 4000 }, (_, i) => ['SET', `spread:${i}`, i]);
  await other.pipeline(spread);
  expect(await refusedOf(red)).toBe(before);
  other.close();
});

test('a change holds at once: of the quota, the partitions, the mechanism', async () => {
  const share = async (): Promise<number> => (await hammer(red, 1)).ru / ceiling;
  await server.quota('red', 2 * quota);
  const raised = await share();
  expect(raised).toBeGreaterThan(1.2);
  expect(raised).toBeLessThan(2.4);
  await server.quota('red', quota / 4);
  expect(await share()).toBeLessThan(0.4);
  await server.quota('red', quota);
  // Only an empty table is divided anew.
  await red.command('FLUSHDB');
  const { partitions } = await tableCommand(server.server, 'alter', 'red/0', '--partitions', '64');
  expect(partitions).toBe(64);
  expect(await share()).toBeLessThan(0.4);
  await set({ 'admission.partition-cap': 'none' });
  expect((await hammer(red, 0.5)).refused).toBe(0);
  await set({ 'admission.partition-cap': 'always' });
  expect((await hammer(red, 0.5)).refused).toBeGreaterThan(0);
  await server.quota('red', 0);
  expect(await red.text('INCR', 'hot')).toMatch(/^:/);
  expect(await red.text('INFO', 'ru')).not.toContain('ru_partition_refused');
  await red.command('FLUSHDB');
  await tableCommand(server.server, 'alter', 'red/0', '--partitions', '16');
});

test('`busy`: nothing is refused until the plane does nearly what it can', async () => {
  await set({ 'admission.partition-cap': 'busy', 'redis.ru-per-second': 1_000_000 });
  expect((await hammer(red, 2)).refused).toBe(0);
  // Now the quota is as much as the plane can do.
  await set({ 'redis.ru-per-second': quota });
  await expect.poll(async () => (await hammer(red, 0.5)).refused).toBeGreaterThan(0);
  const metrics = await server.metrics();
  expect(metrics).toMatch(/polyrow_tenant_partition_refused_total\{.*tenant="red".*\} [1-9]/);
  expect(metrics).toMatch(/polyrow_partition_ceilings\{/);
  await set({ 'redis.ru-per-second': 0 });
});

test('ioredis goes on over the connection it has, and what was refused goes through later', async () => {
  const client = new Redis(server.port, '127.0.0.1', { username: 'red', password: 'red' });
  let connects = 0;
  client.on('connect', () => connects++);
  await client.del('hot');
  let [done, refused] = [0, 0];
  const start = performance.now();
  while (done < 2000) {
    if (performance.now() - start > 45_000) throw new Error(`${done} done, ${refused} refused`);
    const tries = Array.from({ length: 500 }, () => client.incr('hot'));
    let retryMs = 0;
    for (const result of await Promise.allSettled(tries)) {
      if (result.status === 'fulfilled') {
        expect(result.value).toBe(++done);
        continue;
      }
      refused++;
      const { message } = result.reason as Error;
      const pattern =
        /^TRYAGAIN RU limit: tenant=red kind=partition need=\S+ retry_after_ms=(\d+)$/;
      retryMs = Number(pattern.exec(message)![1]);
    }
    await new Promise((resolve) => setTimeout(resolve, retryMs));
  }
  expect(refused).toBeGreaterThan(0);
  expect(connects).toBe(1);
  await client.quit();
});

if (redisPython === undefined) console.warn('skipped: no python3 with redis-py (python3-redis)');

test.skipIf(redisPython === undefined)('redis-py', async () => {
  const script = `${import.meta.dirname}/redis_py_partitions.py`;
  const { stdout } = await promisify(execFile)(redisPython!, [script, String(server.port), 'red']);
  expect(stdout).toContain('passed');
});
