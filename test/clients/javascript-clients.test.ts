// Typical programs with ioredis and node-redis, unchanged.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { Polyrow } from '../support/polyrow.ts';

let server: Polyrow;
beforeAll(async () => {
  server = await Polyrow.start();
});
afterAll(async () => {
  await server.stop();
  await server.remove();
});

const url = () => `redis://127.0.0.1:${server.redisPort}`;

describe.each([2, 3] as const)('ioredis with RESP%i', (protocol) => {
  let client: Redis;
  let other: Redis;
  const connect = () => new Redis(server.redisPort, '127.0.0.1', { protocol });
  beforeAll(async () => {
    client = connect();
    other = connect();
    await client.flushall();
  });
  afterAll(async () => {
    await client.quit();
    await other.quit();
  });

  test('speaks the protocol it was told to', async () => {
    expect(await client.client('INFO')).toContain(`resp=${protocol}`);
  });

  test('strings, binary too', async () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
    expect(await client.set('bytes', bytes, 'EX', 100)).toBe('OK');
    expect(await client.getBuffer('bytes')).toEqual(bytes);
    expect(await client.ttl('bytes')).toBeGreaterThan(90);
    expect(await client.get('missing')).toBeNull();
    expect(await client.mget('bytes', 'missing')).toHaveLength(2);
  });

  test('every type', async () => {
    expect(await client.hset('h', { a: 1, b: 'two' })).toBe(2);
    expect(await client.hgetall('h')).toEqual({ a: '1', b: 'two' });
    expect(await client.rpush('l', 'x', 'y', 'z')).toBe(3);
    expect(await client.lrange('l', 0, -1)).toEqual(['x', 'y', 'z']);
    expect(await client.sadd('s', 'm', 'n')).toBe(2);
    expect((await client.smembers('s')).sort()).toEqual(['m', 'n']);
    expect(await client.zadd('z', 1, 'one', 2.5, 'more')).toBe(2);
    const ranked = await client.call('ZRANGE', 'z', 0, -1, 'WITHSCORES');
    expect((ranked as unknown[]).flat().map(String)).toEqual(['one', '1', 'more', '2.5']);
  });

  test('errors reject, and the connection goes on', async () => {
    await client.set('text', 'abc');
    await expect(client.incr('text')).rejects.toThrow(
      'ERR value is not an integer or out of range',
    );
    await expect(client.lpush('text', 'x')).rejects.toThrow('WRONGTYPE');
    expect(await client.ping()).toBe('PONG');
  });

  test('a pipeline answers in order, errors among the answers', async () => {
    const pipeline = client.pipeline();
    for (let i = 0; i < 1000; i++) pipeline.set(`p${i}`, i).get(`p${i}`);
    const results = (await pipeline.lpush('text', 'x').exec())!;
    expect(results).toHaveLength(2001);
    expect(results[1999]).toEqual([null, '999']);
    expect(results[2000]![0]).toBeInstanceOf(Error);
  });

  test('MULTI, and WATCH that notices', async () => {
    expect(await client.multi().set('m', 1).incr('m').exec()).toEqual([
      [null, 'OK'],
      [null, 2],
    ]);
    await client.watch('m');
    await other.set('m', 'changed');
    expect(await client.multi().set('m', 'mine').exec()).toBeNull();
    expect(await client.get('m')).toBe('changed');
  });

  test('channels and patterns', async () => {
    const subscriber = connect();
    const heard: string[] = [];
    const done = new Promise<void>((resolve) => {
      const hear = (...words: string[]) => {
        heard.push(words.join(' '));
        if (heard.length === 3) resolve();
      };
      subscriber.on('message', (...words: string[]) => hear('message', ...words));
      subscriber.on('pmessage', (...words: string[]) => hear('pmessage', ...words));
    });
    await subscriber.subscribe('news');
    await subscriber.psubscribe('n*');
    expect(await client.publish('news', 'one')).toBe(2);
    expect(await client.publish('nothing', 'two')).toBe(1);
    await done;
    expect(heard).toEqual(['message news one', 'pmessage n* news one', 'pmessage n* nothing two']);
    await subscriber.unsubscribe('news');
    await subscriber.punsubscribe('n*');
    expect(await subscriber.get('text')).toBe('abc');
    await subscriber.quit();
  });

  test('waits for an element', async () => {
    const waiting = other.blpop('queue', 5);
    await client.rpush('queue', 'job');
    expect(await waiting).toEqual(['queue', 'job']);
    expect(await other.blpop('queue', 0.05)).toBeNull();
  });

  test('scans everything once', async () => {
    const keys: string[] = [];
    for await (const some of client.scanStream({ match: 'p*', count: 50 })) {
      keys.push(...(some as string[]));
    }
    expect(new Set(keys).size).toBe(1000);
    const members = Array.from({ length: 2000 }, (_, i) => `member${i}`);
    await client.sadd('big', members);
    const seen: string[] = [];
    for await (const some of client.sscanStream('big')) seen.push(...(some as string[]));
    expect(new Set(seen)).toEqual(new Set(members));
  });

  test('another database', async () => {
    const third = new Redis(server.redisPort, '127.0.0.1', { protocol, db: 3 });
    await third.set('only', 'here');
    expect(await client.exists('only')).toBe(0);
    await third.quit();
  });
});

describe.each([2, 3] as const)('node-redis with RESP%i', (RESP) => {
  const create = () => createClient({ url: url(), RESP });
  let client: ReturnType<typeof create>;
  let other: ReturnType<typeof create>;
  beforeAll(async () => {
    client = create();
    other = create();
    for (const one of [client, other]) {
      one.on('error', () => {});
      await one.connect();
    }
    await client.flushAll();
  });
  afterAll(async () => {
    await client.close();
    await other.close();
  });

  test('speaks the protocol it was told to', async () => {
    expect(await client.sendCommand(['CLIENT', 'INFO'])).toContain(`resp=${RESP}`);
  });

  test('every type', async () => {
    expect(await client.set('k', 'v', { expiration: { type: 'EX', value: 100 } })).toBe('OK');
    expect(await client.get('k')).toBe('v');
    expect(await client.get('missing')).toBeNull();
    expect(await client.hSet('h', { a: '1', b: 'two' })).toBe(2);
    expect({ ...(await client.hGetAll('h')) }).toEqual({ a: '1', b: 'two' });
    expect(await client.rPush('l', ['x', 'y'])).toBe(2);
    expect(await client.lRange('l', 0, -1)).toEqual(['x', 'y']);
    expect(await client.sAdd('s', ['m', 'n'])).toBe(2);
    expect([...(await client.sMembers('s'))].sort()).toEqual(['m', 'n']);
    await client.zAdd('z', [
      { value: 'one', score: 1 },
      { value: 'low', score: -Infinity },
      { value: 'more', score: 2.5 },
    ]);
    expect(await client.zRangeWithScores('z', 0, -1)).toEqual([
      { value: 'low', score: -Infinity },
      { value: 'one', score: 1 },
      { value: 'more', score: 2.5 },
    ]);
    expect(await client.zScore('z', 'more')).toBe(2.5);
    expect(await client.zPopMin('z')).toEqual({ value: 'low', score: -Infinity });
  });

  test('what is sent at once is one pipeline', async () => {
    const numbers = await Promise.all(Array.from({ length: 1000 }, () => client.incr('n')));
    expect(numbers).toEqual(Array.from({ length: 1000 }, (_, i) => i + 1));
  });

  test('MULTI, and WATCH that notices', async () => {
    expect(await client.multi().set('m', '1').incr('m').exec()).toEqual(['OK', 2]);
    await client.watch('m');
    await other.set('m', 'changed');
    await expect(client.multi().set('m', 'mine').exec()).rejects.toThrow(/watched keys/i);
    await expect(client.multi().lPush('k', 'x').get('k').exec()).rejects.toThrow();
    expect(await client.get('m')).toBe('changed');
  });

  test('channels, patterns and sharded channels', async () => {
    const subscriber = create();
    subscriber.on('error', () => {});
    await subscriber.connect();
    const heard: string[] = [];
    await subscriber.subscribe(
      'news',
      (message, channel) => void heard.push(`${channel} ${message}`),
    );
    await subscriber.pSubscribe(
      'n*',
      (message, channel) => void heard.push(`n* ${channel} ${message}`),
    );
    await subscriber.sSubscribe(
      'shard',
      (message, channel) => void heard.push(`s ${channel} ${message}`),
    );
    expect(await client.publish('news', 'one')).toBe(2);
    expect(await client.sPublish('shard', 'two')).toBe(1);
    await expect.poll(() => heard.length).toBe(3);
    expect(heard).toEqual(['news one', 'n* news one', 's shard two']);
    await subscriber.unsubscribe('news');
    await subscriber.close();
  });

  test('waits for an element', async () => {
    const waiting = other.blPop('queue', 5);
    await client.rPush('queue', 'job');
    expect({ ...(await waiting) }).toEqual({ key: 'queue', element: 'job' });
    expect(await other.bzPopMin('nothing', 0.05)).toBeNull();
  });

  test('scans everything once', async () => {
    const count = 1000;
    await client.mSet(Array.from({ length: count }, (_, i) => [`p${i}`, 'v'] as [string, string]));
    const keys: string[] = [];
    for await (const some of client.scanIterator({ MATCH: 'p*', COUNT: 37 })) keys.push(...some);
    expect(new Set(keys).size).toBe(count);
    await client.hSet('hash', Object.fromEntries(keys.map((key) => [key, '1'])));
    const fields: string[] = [];
    for await (const some of client.hScanIterator('hash')) {
      fields.push(...some.map(({ field }) => field));
    }
    expect(new Set(fields).size).toBe(count);
  });
});
