// Fields of hashes that expire, on a whole server: they go by themselves, over a restart and in large hashes.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Polyrow } from '../support/polyrow.ts';
import type { RespClient } from '../support/resp-client.ts';

describe.each(['memory', 'kv'] as const)('on the %s model', (model) => {
  let polyrow: Polyrow;
  let client: RespClient;
  beforeAll(async () => {
    polyrow = await Polyrow.start({ flags: ['--redis.default-model', model] });
    client = await polyrow.client();
  });
  afterAll(() => polyrow.remove());

  const until = async (expected: string, ...words: string[]): Promise<void> => {
    while ((await client.text(...words)) !== expected) await sleep(10);
  };

  test('fields go, and the hash with the last of them', async () => {
    await client.command('HSET', 'h', 'a', '1', 'b', '2', 'c', '3');
    expect(await client.text('HPEXPIRE', 'h', '50', 'FIELDS', '2', 'a', 'b')).toBe('*[:1 :1]');
    expect(await client.text('HPEXPIRE', 'h', '300', 'FIELDS', '1', 'c')).toBe('*[:1]');
    await until('*["c" "3"]', 'HGETALL', 'h');
    // No client reads the hash here.
    await until(':0', 'DBSIZE');
  });

  test('times are there after a restart, a copy and a rename', async () => {
    await client.command('HSET', 'k', 'a', '1', 'b', '2');
    await client.command('EXPIRE', 'k', '5000');
    const time = String(Date.now() + 1e7);
    await client.command('HPEXPIREAT', 'k', time, 'FIELDS', '1', 'a');
    await client.command('COPY', 'k', 'copied');
    await client.command('RENAME', 'k', 'renamed');
    client.socket.destroy();
    await polyrow.restart();
    client = await polyrow.client();
    for (const key of ['copied', 'renamed']) {
      const times = await client.text('HPEXPIRETIME', key, 'FIELDS', '2', 'a', 'b');
      expect(`${key} ${times}`).toBe(`${key} *[:${time} :-1]`);
      expect(await client.text('TTL', key)).toMatch(/:(5000|49\d\d)/);
    }
    await client.command('SADD', 'ids', 'renamed');
    expect(await client.text('SORT', 'ids', 'BY', 'nosort', 'GET', '*->b')).toBe('*["2"]');
    expect(await client.text('EVAL', "return redis.call('HGET', 'renamed', 'b')", '0')).toBe('"2"');
    await client.command('FLUSHALL');
  });

  test('many fields of a large hash go at once', async () => {
    const fields = 30_000;
    const names = Array.from({ length: fields }, (_, i) => `field ${i}`);
    await client.command('HSET', 'large', ...names.flatMap((name) => [name, 'v']));
    const half = names.slice(0, fields / 2);
    await client.command('HPEXPIRE', 'large', '500', 'FIELDS', String(half.length), ...half);
    await until(`:${fields / 2}`, 'HLEN', 'large');
    expect(await client.text('HEXISTS', 'large', half[5]!)).toBe(':0');
    const answer = await client.command('HGETALL', 'large');
    expect('items' in answer && answer.items.length).toBe(fields);
    const left = names.slice(fields / 2);
    await client.command('HPEXPIRE', 'large', '1', 'FIELDS', String(left.length), ...left);
    await until(':0', 'EXISTS', 'large');
    await until(':0', 'DBSIZE');
  });
});
