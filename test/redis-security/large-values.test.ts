// Values of many megabytes are stored, copied and combined in steps, and no other client sees a part of one.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { stepBytes } from '../../universal-row/steps.ts';
import { TenantsServer } from '../redis-tenants/tenants-server.ts';
import type { RespClient } from '../support/resp-client.ts';

const size = 4 * 1024 * 1024;
/** Whatever stores a value of this size takes as many steps at least. */
const leastSteps = size / stepBytes;
const large = Buffer.from(
  Array.from({ length: size / 8 }, (_, i) => String(i).padStart(8, '.')).join(''),
);
const inverted = large.map((byte) => ~byte);
let server: TenantsServer;
let client: RespClient;

beforeAll(async () => {
  server = await TenantsServer.start();
  client = await server.client();
});
afterAll(() => server.stop());

async function valueOf(key: string): Promise<Buffer> {
  const reply = await client.command('GET', key);
  return Buffer.from('text' in reply ? reply.text : '', 'latin1');
}

test.each<
  [name: string, words: (string | number | Buffer)[], answer: string, key: string, value: Buffer]
>([
  ['SET', ['SET', 'k', large], 'OK', 'k', large],
  ['SET with options', ['SET', 'k1', large, 'NX', 'EX', 100], 'OK', 'k1', large],
  [
    'SET that answers the old value',
    ['SET', 'k1', large, 'GET', 'KEEPTTL'],
    large.toString(),
    'k1',
    large,
  ],
  ['SETNX', ['SETNX', 'k2', large], '1', 'k2', large],
  ['SETEX', ['SETEX', 'k3', 100, large], 'OK', 'k3', large],
  ['PSETEX', ['PSETEX', 'k4', 100_000, large], 'OK', 'k4', large],
  ['GETSET', ['GETSET', 'k4', large], large.toString(), 'k4', large],
  ['MSET', ['MSET', 'a', 1, 'k5', large, 'b', 2], 'OK', 'k5', large],
  ['MSETNX', ['MSETNX', 'k6', large, 'c', 3], '1', 'k6', large],
  ['COPY', ['COPY', 'k', 'k7'], '1', 'k7', large],
  ['COPY over a value', ['COPY', 'k', 'a', 'REPLACE'], '1', 'a', large],
  ['APPEND to no key', ['APPEND', 'k8', large], String(size), 'k8', large],
  [
    'APPEND',
    ['APPEND', 'b', large],
    String(size + 1),
    'b',
    Buffer.concat([Buffer.from('2'), large]),
  ],
  [
    'SETRANGE',
    ['SETRANGE', 'c', 3, large],
    String(size + 3),
    'c',
    Buffer.concat([Buffer.from('3\0\0'), large]),
  ],
  ['GET', ['GET', 'k'], large.toString(), 'k', large],
  ['GETRANGE', ['GETRANGE', 'k', 0, -1], large.toString(), 'k', large],
  ['GETEX', ['GETEX', 'k', 'PERSIST'], large.toString(), 'k', large],
  ['GETSET by a short one', ['GETSET', 'k1', 'v'], large.toString(), 'k1', Buffer.from('v')],
  ['SET GET by a short one', ['SET', 'k2', 'v', 'GET'], large.toString(), 'k2', Buffer.from('v')],
  ['GETDEL', ['GETDEL', 'k3'], large.toString(), 'k3', Buffer.alloc(0)],
  ['BITOP', ['BITOP', 'NOT', 'k9', 'k'], String(size), 'k9', Buffer.from(inverted)],
])('%s', async (_name, words, answer, key, value) => {
  const before = server.pod.stats.longSteps;
  const reply = await client.command(...words);
  expect('text' in reply ? reply.text === answer : reply).toBe(true);
  expect(server.pod.stats.longSteps - before).toBeGreaterThanOrEqual(leastSteps);
  expect((await valueOf(key)).equals(value)).toBe(true);
});

test('MGET answers large values in steps, and others between them', async () => {
  const before = server.pod.stats.longSteps;
  await client.command('SET', 'small', 'v');
  const reply = await client.command('MGET', 'k', 'small', 'nosuch', 'k5', 'small');
  const items =
    'items' in reply ? reply.items.map((item) => ('text' in item ? item.text : '')) : [];
  expect(items.map((text) => text.length)).toEqual([size, 1, 0, size, 1]);
  expect(items[0] === large.toString() && items[3] === items[0]).toBe(true);
  expect(server.pod.stats.longSteps - before).toBeGreaterThanOrEqual(2 * leastSteps);
});

test('SET that is refused stores nothing', async () => {
  expect(await client.command('SET', 'k', large, 'NX')).toMatchObject({ type: 'nil' });
  expect(await client.command('SET', 'nosuch', large, 'XX')).toMatchObject({ type: 'nil' });
  await client.command('RPUSH', 'list', 'x');
  expect(await client.text('SET', 'list', large, 'GET')).toMatch(/^-WRONGTYPE/);
  expect(await client.text('EXISTS', 'nosuch')).toBe(':0');
});

test('other clients see the old value or the new one', async () => {
  const other = await server.client();
  await client.command('SET', 'seen', 'old');
  const steps = server.pod.stats.longSteps;
  const done = client.command('SET', 'seen', large);
  const lengths: string[] = [];
  while (server.pod.stats.longSteps === steps) lengths.push(await other.text('STRLEN', 'seen'));
  await done;
  for (const length of lengths) expect([':3', `:${size}`]).toContain(length);
});

test('of a script and of a transaction as well', async () => {
  await client.command('EVAL', "return redis.call('SET', KEYS[1], ARGV[1])", 1, 'scripted', large);
  expect((await valueOf('scripted')).equals(large)).toBe(true);
  await client.pipeline([['MULTI'], ['SET', 'queued', large], ['STRLEN', 'queued']]);
  expect(await client.command('EXEC')).toMatchObject({
    items: [{ text: 'OK' }, { text: String(size) }],
  });
  expect((await valueOf('queued')).equals(large)).toBe(true);
});
