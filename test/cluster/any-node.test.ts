// What works on a single server works through any node of a cluster: scripts, functions, and what clients are told.

import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PolyrowCluster } from '../support/polyrow-cluster.ts';
import { RespClient } from '../support/resp-client.ts';
import { show } from '../support/resp-value.ts';

let cluster: PolyrowCluster;
/** The first one leads the group of database 0. */
let nodes: [Redis, Redis, Redis];

beforeAll(async () => {
  cluster = await PolyrowCluster.start(3);
  const leader = await leaderOfRows();
  const ports = cluster.redisPorts;
  const order = [leader, ...[0, 1, 2].filter((one) => one !== leader)];
  nodes = order.map((i) => new Redis(ports[i]!, '127.0.0.1')) as typeof nodes;
}, 60_000);
afterAll(async () => {
  for (const node of nodes ?? []) node.disconnect();
  await cluster?.remove();
});

async function leaderOfRows(): Promise<number> {
  const status = JSON.parse(await cluster.cli('cluster', 'status', '--groups', '--json')) as {
    groups: { model: string; leader: number }[];
  };
  const { leader } = status.groups.find(({ model }) => model !== 'tsm')!;
  return cluster.nodes.findIndex(({ id }) => id === leader);
}

/** Calls until it does not throw: other nodes hear of users and changes a moment later. */
async function eventually<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!/WRONGPASS|NOTBUSY|expected/.test(String(error))) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

describe('scripts', () => {
  test.each([0, 1, 2])('loaded through node %i are known at all', async (i) => {
    const source = `return redis.call('incrby', KEYS[1], ${i + 1})`;
    const sha = (await nodes[i]!.script('LOAD', source)) as string;
    for (const node of nodes) {
      expect(await node.script('EXISTS', sha)).toEqual([1]);
      expect(await node.evalsha(sha, 1, `loaded:${i}`)).toBeGreaterThan(0);
    }
    expect(await nodes[0].get(`loaded:${i}`)).toBe(String(3 * (i + 1)));
  });

  test('keep to the rules of their user, wherever they run', async () => {
    await nodes[0].call('ACL', 'SETUSER', 'limited', 'on', '>secret', '~mine:*', '+@all', '-incr');
    for (const node of nodes) {
      const { host, port } = node.options;
      const client = new Redis(port!, host!, { lazyConnect: true });
      await client.connect();
      await eventually(() => client.auth('limited', 'secret'));
      const set = "return redis.call('set', KEYS[1], ARGV[1])";
      expect(await client.eval(set, 1, 'mine:1', 'x')).toBe('OK');
      const hidden = "return redis.call('get', 'other')";
      await expect(client.eval(hidden, 0)).rejects.toThrow("can't access at least one of the keys");
      const incr = "return redis.call('incr', 'mine:2')";
      await expect(client.eval(incr, 0)).rejects.toThrow("can't run this command");
      const guarded = "return redis.pcall('get', 'other').err";
      expect(await client.multi().set('mine:3', '1').eval(guarded, 0).exec()).toEqual([
        [null, 'OK'],
        [null, expect.stringContaining("can't access") as string],
      ]);
      client.disconnect();
    }
  });

  test('that take long are ended through any node', async () => {
    const endless = 'while true do end';
    for (const [runs, ends] of [
      [nodes[1], nodes[2]],
      [nodes[2], nodes[0]],
    ] as const) {
      const ended = runs.eval(endless, 1, 'endless').catch((error: unknown) => String(error));
      await eventually(() => ends.script('KILL'));
      expect(await ended).toContain('Script killed by user');
    }
  });
});

describe('functions', () => {
  const library = (name: string, answer: string): string =>
    `#!lua name=${name}\nredis.register_function('${name}_f', function(keys, args)
       redis.call('set', keys[1], '${answer}') return redis.call('get', keys[1]) end)`;

  test.each([0, 1, 2])('loaded through node %i run through all, in their last form', async (i) => {
    const name = `lib${i}`;
    for (const answer of ['first', 'second']) {
      await nodes[i]!.function('LOAD', 'REPLACE', library(name, answer));
      for (const node of nodes) expect(await node.fcall(`${name}_f`, 1, 'key')).toBe(answer);
    }
    await expect(nodes[(i + 1) % 3]!.function('LOAD', library(name, 'x'))).rejects.toThrow(
      'already exists',
    );
    await nodes[(i + 1) % 3]!.function('DELETE', name);
    for (const node of nodes) {
      await expect(node.fcall(`${name}_f`, 1, 'key')).rejects.toThrow('Function not found');
    }
  });

  test('are listed, dumped, restored and flushed alike at all nodes', async () => {
    await nodes[1].function('LOAD', library('one', '1'));
    await nodes[2].function('LOAD', library('two', '2'));
    const lists = await Promise.all(nodes.map((node) => node.function('LIST', 'WITHCODE')));
    expect(lists[0]).toHaveLength(2);
    for (const list of lists) expect(new Set(list)).toEqual(new Set(lists[0]));
    const payload = await nodes[2].callBuffer('FUNCTION', 'DUMP');
    await nodes[1].function('FLUSH');
    for (const node of nodes) expect(await node.function('LIST')).toEqual([]);
    await nodes[2].call('FUNCTION', 'RESTORE', payload as Buffer);
    for (const node of nodes) expect(await node.fcall('two_f', 1, 'key')).toBe('2');
  });

  test('load and run in a transaction', async () => {
    const client = nodes[2].duplicate();
    await client.multi().function('LOAD', 'REPLACE', library('three', '3')).exec();
    for (const node of nodes) {
      const answers = await node.multi().fcall('three_f', 1, 'key').get('key').exec();
      expect(answers!.map(([, answer]) => answer)).toEqual(['3', '3']);
    }
    client.disconnect();
  });
});

describe('what clients are told of changes', () => {
  const port = (i: number): number => nodes[i]!.options.port!;

  test.each([0, 1, 2])('at node %i: keyspace notifications', async (i) => {
    await nodes[i]!.config('SET', 'notify-keyspace-events', 'KEA');
    const subscriber = nodes[i]!.duplicate();
    await subscriber.psubscribe('__key*__:*');
    const heard: string[] = [];
    const key = `told:${i}`;
    const done = new Promise((resolve) => {
      subscriber.on('pmessage', (_pattern, channel: string, payload: string) => {
        if (channel.endsWith(key) || payload === key) heard.push(`${channel} ${payload}`);
        if (channel === '__keyevent@0__:del' && payload === key) resolve(undefined);
      });
    });
    // It is not waited for, as notifications may be lost.
    for (let n = 0; heard.length === 0; n++) {
      await nodes[n % 3]!.set(key, '1');
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    heard.length = 0;
    await nodes[(i + 1) % 3]!.set(key, '2');
    await nodes[(i + 2) % 3]!.del(key);
    await done;
    expect(heard.slice(-4)).toEqual([
      `__keyspace@0__:${key} set`,
      `__keyevent@0__:set ${key}`,
      `__keyspace@0__:${key} del`,
      `__keyevent@0__:del ${key}`,
    ]);
    await nodes[i]!.config('SET', 'notify-keyspace-events', '');
    subscriber.disconnect();
  });

  async function tracking(i: number, ...words: string[]): Promise<RespClient> {
    const client = await RespClient.connect(port(i), 3);
    expect(await client.text('CLIENT', 'TRACKING', 'ON', ...words)).toBe('+OK');
    return client;
  }

  /** What the client is told next. */
  async function told(client: RespClient): Promise<string> {
    const [push] = await client.replies(1);
    return show(push!);
  }

  test.each([0, 1, 2])('at node %i: keys that it caches', async (i) => {
    const client = await tracking(i);
    const key = `cached:${i}`;
    for (const node of nodes) {
      expect(await client.text('GET', key)).not.toContain('invalidate');
      await node.incr(key);
      expect(await told(client)).toBe(`>["invalidate" *["${key}"]]`);
    }
    await client.command('MULTI');
    await client.command('MGET', key, `${key}:b`);
    expect(await client.text('EXEC')).toBe('*[*["3" _]]');
    await nodes[2].set(`${key}:b`, '1');
    expect(await told(client)).toBe(`>["invalidate" *["${key}:b"]]`);
    expect(await client.text('EVAL', "return redis.call('GET', KEYS[1])", 1, key)).toBe('"3"');
    await nodes[1].del(key);
    expect(await told(client)).toBe(`>["invalidate" *["${key}"]]`);
    await nodes[0].flushall();
    expect(await told(client)).toBe('>["invalidate" _]');
    client.close();
  });

  test.each([0, 1, 2])('at node %i: by prefix, on demand, and not its own', async (i) => {
    const broadcast = await tracking(i, 'BCAST', 'PREFIX', 'b:');
    const demanding = await tracking(i, 'OPTIN');
    const own = await tracking(i, 'NOLOOP');
    await nodes[(i + 1) % 3]!.mset('a:1', '1', 'b:1', '1');
    expect(await told(broadcast)).toBe('>["invalidate" *["b:1"]]');
    await demanding.command('GET', 'a:1');
    await demanding.command('CLIENT', 'CACHING', 'YES');
    await demanding.command('GET', 'a:2');
    await own.command('MGET', 'a:1', 'a:2', 'b:1');
    await own.command('SET', 'a:1', 'own');
    await nodes[i]!.set('a:2', '2');
    expect(await told(demanding)).toBe('>["invalidate" *["a:2"]]');
    expect(await told(own)).toBe('>["invalidate" *["a:2"]]');
    for (const client of [broadcast, demanding, own]) client.close();
  });

  test('all that is cached is void when another node leads', async () => {
    const clients = await Promise.all([0, 1, 2].map((i) => tracking(i)));
    for (const client of clients) await client.command('GET', 'kept');
    const next = cluster.nodes[cluster.redisPorts.indexOf(port(1))]!;
    await cluster.cli('partition', 'transfer', '0', '--to', String(next.id));
    for (const client of clients) expect(await told(client)).toBe('>["invalidate" _]');
    for (const client of clients) client.close();
    const again = await tracking(0);
    await again.command('GET', 'kept');
    await nodes[2].set('kept', '1');
    // The change of leader may be told more than once, also before the answer to GET.
    while (!(await told(again)).includes('["kept"]'));
    again.close();
  }, 30_000);
});
