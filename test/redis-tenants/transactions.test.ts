// Transactions with commands about all databases, where these are kept in different models.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { Redis } from 'ioredis';
import { Polyrow } from '../support/polyrow.ts';
import { tableCommand } from '../table-properties/subjects.ts';

let server: Polyrow;
let memory: Redis;
let kv: Redis;
let other: Redis;

beforeAll(async () => {
  server = await Polyrow.start();
  await tableCommand(server, 'create', '1', '--model', 'kv');
  memory = new Redis(server.redisPort, '127.0.0.1', { db: 0 });
  kv = new Redis(server.redisPort, '127.0.0.1', { db: 1 });
  other = new Redis(server.redisPort, '127.0.0.1', { db: 0 });
});
afterAll(async () => {
  for (const client of [memory, kv, other]) await client.quit();
  await server.remove();
});

test('FLUSHALL does nothing anywhere when a watched key has changed', async () => {
  for (const [client, watched] of [
    [memory, 'k'],
    [kv, 'k'],
  ] as const) {
    await memory.mset('k', '1', 'row', 'm');
    await kv.mset('k', '1', 'row', 'kv');
    const watching = client.duplicate();
    await watching.watch(watched);
    await client.set(watched, '2');
    await watching.multi({ pipeline: false });
    await watching.flushall();
    expect(await watching.exec()).toBeNull();
    expect([await memory.get('row'), await kv.get('row')]).toEqual(['m', 'kv']);

    await watching.watch(watched);
    await watching.multi({ pipeline: false });
    await watching.flushall();
    expect(await watching.exec()).toEqual([[null, 'OK']]);
    expect([await memory.dbsize(), await kv.dbsize()]).toEqual([0, 0]);
    await watching.quit();
  }
});

test('FLUSHALL that a table of another model refuses changes nothing, and says so', async () => {
  await memory.set('row', 'm');
  await kv.set('row', 'kv');
  await tableCommand(server, 'alter', '1', '--read-only');
  await expect(memory.flushall()).rejects.toThrow('READONLY');
  const answers = await memory.multi().set('row', 'n').flushall().exec();
  expect(String(answers?.[1]?.[0])).toContain('READONLY');
  expect([await memory.get('row'), await kv.get('row')]).toEqual(['n', 'kv']);
  await tableCommand(server, 'alter', '1', '--no-read-only');
});
