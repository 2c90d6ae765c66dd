// maxmemory-policy on memory tables: which rows go, whose, and what is told of it.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { evictionPolicies } from '../../storage-node/eviction/evictor.ts';
import { noLimits } from '../../contracts/tenancy/definitions.ts';
import { TenantsServer } from '../redis-tenants/tenants-server.ts';
import type { RespClient } from '../support/resp-client.ts';

let server: TenantsServer;
let client: RespClient;
beforeEach(async () => {
  server = await TenantsServer.start();
  client = await server.client();
});
afterEach(() => server.stop());

const value = 'v'.repeat(200);

/** Writes keys until so many bytes are used. */
async function fill(from: number, count: number, ...options: (string | number)[]): Promise<void> {
  const commands = Array.from({ length: count }, (_, i) => [
    'SET',
    `key:${from + i}`,
    value,
    ...options,
  ]);
  await client.pipeline(commands);
}

function used(): number {
  return server.pod.engineStats().usedBytes;
}

async function there(prefix: string, count: number): Promise<number> {
  const keys = Array.from({ length: count }, (_, i) => `${prefix}:${i}`);
  return Number((await client.text('EXISTS', ...keys)).slice(1));
}

describe.each(evictionPolicies)('%s', (policy) => {
  test('keeps below the limit, or refuses', async () => {
    await fill(0, 1000, 'EX', 1000);
    server.pod.setEviction(policy, 5);
    server.pod.maxMemoryBytes = used() - 1;
    const replies = await client.pipeline(
      Array.from({ length: 2000 }, (_, i) => ['SET', `more:${i}`, value, 'EX', 1000]),
    );
    const refused = replies.filter(({ type }) => type === '-').length;
    // Memory is looked at every 32 commands.
    expect(used()).toBeLessThan(server.pod.maxMemoryBytes + 64 * 400);
    if (policy === 'noeviction') expect(refused).toBeGreaterThan(1900);
    else {
      expect(refused).toBe(0);
      const [evicted] = [...server.pod.evictedRows.values()];
      expect(evicted).toBe(3000 - server.pod.tableSize(0).rows);
      expect(evicted).toBeGreaterThan(1900);
    }
  });
});

test.each(['volatile-lru', 'volatile-lfu', 'volatile-random', 'volatile-ttl'] as const)(
  '%s leaves rows without an expiry, and refuses when there is no other',
  async (policy) => {
    await client.pipeline(Array.from({ length: 500 }, (_, i) => ['SET', `stays:${i}`, value]));
    await fill(0, 500, 'EX', 1000);
    server.pod.setEviction(policy, 5);
    server.pod.maxMemoryBytes = used();
    const replies = await client.pipeline(
      Array.from({ length: 1000 }, (_, i) => ['SET', `stays:${500 + i}`, value]),
    );
    expect(await there('stays', 500)).toBe(500);
    expect(await there('key', 500)).toBe(0);
    expect(replies.at(-1)!).toMatchObject({ type: '-', text: expect.stringContaining('OOM') });
  },
);

test('volatile-ttl drops what has the least time left', async () => {
  const commands = Array.from({ length: 400 }, (_, i) => [
    'SET',
    `${i % 2 === 0 ? 'soon' : 'late'}:${i >> 1}`,
    value,
    'EX',
    i % 2 === 0 ? 100 : 100_000,
  ]);
  await client.pipeline(commands);
  server.pod.setEviction('volatile-ttl', 10);
  server.pod.maxMemoryBytes = used();
  await fill(0, 100, 'EX', 1_000_000);
  expect(await there('late', 200)).toBeGreaterThan(190);
  expect(await there('soon', 200)).toBeLessThan(150);
});

test.each(['allkeys-lru', 'allkeys-lfu'] as const)('%s keeps what is used', async (policy) => {
  server.pod.setEviction(policy, 10);
  await fill(0, 400);
  // Redis's clock counts seconds, and its frequency of new rows is above none.
  await sleep(1100);
  for (let round = 0; round < 50; round++) {
    await client.pipeline(Array.from({ length: 100 }, (_, i) => ['GET', `key:${i}`]));
  }
  server.pod.maxMemoryBytes = used();
  await client.pipeline(Array.from({ length: 200 }, (_, i) => ['SET', `more:${i}`, value]));
  const kept = await there('key', 100);
  expect(kept).toBeGreaterThan(90);
  expect(await there('key', 400)).toBeLessThan(kept + 300);
});

test('OBJECT IDLETIME and FREQ tell of uses, and are none', async () => {
  await client.command('SET', 'k', 'v');
  expect(await client.text('OBJECT', 'FREQ', 'k')).toContain(
    'LFU maxmemory policy is not selected',
  );
  server.pod.setEviction('allkeys-lru', 5);
  await client.command('GET', 'k');
  await sleep(2100);
  await client.command('EXISTS', 'k');
  await client.command('TTL', 'k');
  for (let i = 0; i < 2; i++) {
    expect(Number((await client.text('OBJECT', 'IDLETIME', 'k')).slice(1))).toBeGreaterThan(0);
  }
  await client.command('GET', 'k');
  expect(Number((await client.text('OBJECT', 'IDLETIME', 'k')).slice(1))).toBeLessThanOrEqual(1);
  server.pod.setEviction('allkeys-lfu', 5);
  await client.command('SET', 'counted', 'v');
  expect(await client.text('OBJECT', 'FREQ', 'counted')).toBe(':5');
  for (let i = 0; i < 200; i++) await client.command('GET', 'counted');
  expect(Number((await client.text('OBJECT', 'FREQ', 'counted')).slice(1))).toBeGreaterThan(6);
  expect(await client.text('OBJECT', 'IDLETIME', 'counted')).toContain('LFU');
});

test('RESTORE sets how long ago, or how often, a row was used', async () => {
  await client.command('SET', 'k', 'v');
  const [payload] = await client.pipeline([['DUMP', 'k']]);
  const bytes = Buffer.from('text' in payload! ? payload.text : '', 'latin1');
  server.pod.setEviction('allkeys-lru', 5);
  expect(await client.text('RESTORE', 'k', 0, bytes, 'REPLACE', 'IDLETIME', 1000)).toBe('+OK');
  expect(await client.text('OBJECT', 'IDLETIME', 'k')).toMatch(/^:100[0-2]$/);
  server.pod.setEviction('allkeys-lfu', 5);
  expect(await client.text('RESTORE', 'k', 0, bytes, 'REPLACE', 'FREQ', 100)).toBe('+OK');
  expect(await client.text('OBJECT', 'FREQ', 'k')).toBe(':100');
  expect(
    await client.text('RESTORE', 'k', 0, bytes, 'REPLACE', 'FREQ', 1, 'IDLETIME', 1),
  ).toContain('syntax');
});

test('makes room for a tenant among its own rows, at the limit of the server', async () => {
  server.tenant('other');
  const other = await server.client('default@other', 'other');
  await fill(0, 1000);
  await other.pipeline(Array.from({ length: 50 }, (_, i) => ['SET', `own:${i}`, value]));
  server.pod.setEviction('allkeys-lru', 5);
  server.pod.maxMemoryBytes = used();
  await other.pipeline(Array.from({ length: 1000 }, (_, i) => ['SET', `more:${i}`, value]));
  expect(await there('key', 1000)).toBe(1000);
});

test('makes room by the limit of the tenant', async () => {
  server.tenant('small', { limits: { ...noLimits, keys: 100 } });
  const small = await server.client('default@small', 'small');
  server.pod.setEviction('allkeys-random', 5);
  const replies = await small.pipeline(
    Array.from({ length: 500 }, (_, i) => ['SET', `key:${i}`, value]),
  );
  expect(replies.filter(({ type }) => type === '-')).toEqual([]);
  expect(await small.text('DBSIZE')).toBe(':100');
});

test('is told of: evicted_keys, and the event', async () => {
  server.redis.changes.classes = 'Ee';
  const heard: string[] = [];
  const listener = await server.client();
  await listener.command('PSUBSCRIBE', '__keyevent*');
  listener.onReply = (reply) => {
    if ('items' in reply && 'text' in reply.items[2]!) heard.push(reply.items[2].text);
  };
  await fill(0, 200);
  server.pod.setEviction('allkeys-random', 5);
  server.pod.maxMemoryBytes = used();
  await fill(200, 200);
  await expect.poll(() => heard.length).toBeGreaterThan(100);
  expect(new Set(heard)).toEqual(new Set(['__keyevent@0__:evicted']));
});

test('a limit that is lifted holds no more for the next command', async () => {
  await fill(0, 10);
  server.pod.maxMemoryBytes = 1;
  expect(await client.text('SET', 'a', value)).toContain('OOM');
  server.pod.maxMemoryBytes = Infinity;
  expect(await client.text('SET', 'a', value)).toBe('+OK');
});
