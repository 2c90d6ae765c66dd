// Real clients of a tenant that wants more than its quota, unchanged: they get on without opening their connections
// anew, and what was refused to them they can send again.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Redis } from 'ioredis';
import { parseYcsbOutput } from '../../bench/support/ycsb-output.ts';
import { goTool } from '../support/go-tools.ts';
import { redisPython } from '../support/redis-python.ts';
import type { RespClient } from '../support/resp-client.ts';
import { LimitedPolyrow } from './limited-polyrow.ts';

const run = promisify(execFile);

let server: LimitedPolyrow;
let watcher: RespClient;
beforeAll(async () => {
  server = await LimitedPolyrow.start();
  await server.tenant('red', 2000);
  watcher = await server.client('red');
});
afterAll(async () => {
  await server.stop();
});

async function counted(name: string): Promise<number> {
  return (await LimitedPolyrow.stats(watcher)).get(name)!;
}

const refusal = /^TRYAGAIN RU limit: tenant=red kind=write need=\S+ retry_after_ms=(\d+)/;

describe('ioredis', () => {
  let client: Redis;
  let connects = 0;
  beforeAll(() => {
    client = new Redis(server.port, '127.0.0.1', { username: 'red', password: 'red' });
    client.on('connect', () => connects++);
  });
  afterAll(async () => {
    await client.quit();
  });

  test('one command after the other, from many places at once', async () => {
    // A quota below what the slowest machine sends.
    await server.tenant('slow', 200);
    const slow = new Redis(server.port, '127.0.0.1', { username: 'slow', password: 'slow' });
    let slowConnects = 0;
    slow.on('connect', () => slowConnects++);
    const places = Array.from({ length: 50 }, async (_, place) => {
      for (let i = 1; i <= 20; i++) expect(await slow.incr(`place${place}`)).toBe(i);
    });
    await Promise.all(places);
    const stats = await LimitedPolyrow.stats(await server.client('slow'));
    expect(stats.get('waited')).toBeGreaterThan(0);
    expect(slowConnects).toBe(1);
    await slow.quit();
  });

  test('a pipeline: every answer in its place, and what was refused goes through later', async () => {
    let left = Array.from({ length: 5000 }, (_, i) => i);
    let refused = 0;
    const start = performance.now();
    while (left.length > 0) {
      if (performance.now() - start > 45_000) throw new Error(`${left.length} are still left`);
      const pipeline = client.pipeline();
      for (const n of left) pipeline.set(`p${n}`, n).echo(String(n));
      const answers = (await pipeline.exec())!;
      const again: number[] = [];
      let retryMs = 0;
      left.forEach((n, i) => {
        expect(answers[2 * i + 1]).toEqual([null, String(n)]);
        const [error, value] = answers[2 * i]!;
        if (error === null) {
          expect(value).toBe('OK');
          return;
        }
        retryMs = Number(refusal.exec(error.message)![1]);
        again.push(n);
      });
      refused += again.length;
      left = again;
      await new Promise((resolve) => setTimeout(resolve, retryMs));
    }
    expect(refused).toBeGreaterThan(0);
    expect(await client.get('p4999')).toBe('4999');
    expect(connects).toBe(1);
  });

  test('MULTI: all of it or nothing', async () => {
    await client.set('sum', 0);
    // Others of the tenant want all there is.
    const others = await Promise.all(Array.from({ length: 4 }, () => server.client('red')));
    const commands = Array.from({ length: 5000 }, () => ['SET', 'x', 'y']);
    const floods = others.map(async (other) => {
      while (!other.closed) await other.pipeline(commands);
    });
    await expect.poll(() => counted('waiting')).toBe(4);
    let done = 0;
    let refused = 0;
    while (done < 20 && refused < 1000) {
      // Many at once, on one connection.
      const tries = Array.from({ length: 1000 }, () =>
        client.multi().incr('sum').incr('sum').exec(),
      );
      for (const result of await Promise.allSettled(tries)) {
        if (result.status === 'fulfilled') {
          done++;
          expect(result.value).toEqual([
            [null, done * 2 - 1],
            [null, done * 2],
          ]);
        } else {
          refused++;
          expect((result.reason as Error).message).toMatch(refusal);
          expect((result.reason as Error).message).toContain('(transaction discarded)');
        }
      }
    }
    for (const other of others) other.close();
    await Promise.allSettled(floods);
    expect(refused).toBeGreaterThan(0);
    // The last command may have left a debt: retried, as the refusal says.
    const sum = (): Promise<string | null> =>
      client.get('sum').catch((error: Error) => error.message);
    await expect.poll(sum).toBe(String(done * 2));
    expect(connects).toBe(1);
  });

  test('subscriptions and pings go on, whatever is owed', async () => {
    const listener = new Redis(server.port, '127.0.0.1', { username: 'red', password: 'red' });
    await listener.subscribe('news');
    const heard = new Promise((resolve) => listener.on('message', (_, text) => resolve(text)));
    const flood = client.pipeline();
    for (let i = 0; i < 8000; i++) flood.set('x', i);
    const flooding = flood.exec();
    const other = new Redis(server.port, '127.0.0.1', { username: 'red', password: 'red' });
    expect(await other.ping()).toBe('PONG');
    await other.publish('news', 'still here');
    expect(await heard).toBe('still here');
    await flooding;
    await Promise.all([listener.quit(), other.quit()]);
  });
});

const goRedis = await goTool({
  module: `${import.meta.dirname}/../clients/go-redis`,
  program: 'polyrow/test/go-redis',
});
if ('missing' in goRedis) console.warn(`skipped: ${goRedis.missing}`);

test.skipIf('missing' in goRedis)('go-redis', async () => {
  const { stdout } = await run((goRedis as { path: string }).path, [String(server.port), 'red']);
  const result = JSON.parse(stdout) as Record<string, number>;
  expect(result).toMatchObject({ served: 1600, failed: 0 });
  expect(result['refused']).toBeGreaterThan(0);
  expect(result['connects']).toBeLessThanOrEqual(16);
});

if (redisPython === undefined) console.warn('skipped: no python3 with redis-py (python3-redis)');

test.skipIf(redisPython === undefined)('redis-py', async () => {
  const script = `${import.meta.dirname}/redis_py_limits.py`;
  const { stdout } = await run(redisPython!, [script, String(server.port), 'red']);
  expect(stdout).toContain('passed');
});

const ycsb = await goTool({
  module: `${import.meta.dirname}/../../bench/ycsb-driver`,
  program: 'polyrow/bench/ycsb-driver',
});
if ('missing' in ycsb) console.warn(`skipped: ${ycsb.missing}`);

test.skipIf('missing' in ycsb)('YCSB finishes', async () => {
  // Without a login the limit of tenant `default` applies.
  const own = await LimitedPolyrow.start();
  try {
    await own.quota('default', 3000);
    const properties = {
      'redis.host': '127.0.0.1',
      'redis.port': own.port,
      recordcount: 2000,
      operationcount: 8000,
      threadcount: 16,
      readproportion: 0.5,
      updateproportion: 0.5,
      requestdistribution: 'zipfian',
    };
    for (const phase of ['load', 'run'] as const) {
      const words = Object.entries(properties).map(([name, value]) => `${name}=${value}`);
      const { stdout } = await run((ycsb as { path: string }).path, [phase, ...words]);
      // Throws when operations failed.
      expect(parseYcsbOutput(stdout).throughput).toBeGreaterThan(0);
    }
    const client = await own.server.client();
    const stats = await LimitedPolyrow.stats(client);
    expect(stats.get('refused')).toBe(0);
    expect(stats.get('waited')).toBeGreaterThan(100);
    client.close();
  } finally {
    await own.stop();
  }
});
