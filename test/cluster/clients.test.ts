// Clients that know nothing of clusters, through whatever node: the one that leads, or another.

import { Redis } from 'ioredis';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PolyrowCluster } from '../support/polyrow-cluster.ts';

let cluster: PolyrowCluster;
let nodes: Redis[] = [];
beforeAll(async () => {
  cluster = await PolyrowCluster.start(3);
  nodes = cluster.redisPorts.map((port) => new Redis(port, '127.0.0.1'));
});
afterAll(async () => {
  for (const node of nodes) node.disconnect();
  await cluster?.remove();
});

const each = [0, 1, 2] as const;

describe('Redis', () => {
  test.each(each)('reads through node %i what was written through the others', async (i) => {
    const others = nodes.filter((_, n) => n !== i);
    await Promise.all(others.map((node, n) => node.set(`from:${n}`, `by ${i}`)));
    expect(await nodes[i]!.mget('from:0', 'from:1')).toEqual([`by ${i}`, `by ${i}`]);
  });

  test.each(each)('answers a pipeline in order through node %i', async (i) => {
    const pipeline = nodes[i]!.pipeline();
    for (let n = 0; n < 200; n++) pipeline.incr(`pipeline:${i}`);
    const answers = await pipeline.exec();
    expect(answers!.map(([, n]) => n)).toEqual(Array.from({ length: 200 }, (_, n) => n + 1));
  });

  test.each(each)('runs a transaction through node %i, unless a watched key changed', async (i) => {
    const client = nodes[i]!.duplicate();
    const [key, seen] = [`watched:${i}`, `seen:${i}`];
    await client.watch(key);
    await nodes[(i + 1) % 3]!.set(key, 'x');
    expect(await client.multi().set(seen, '1').exec()).toBeNull();
    const answers = await client.multi().incr(seen).incr(seen).exec();
    expect(answers!.map(([, n]) => n)).toEqual([1, 2]);
    client.disconnect();
  });

  test.each(each)('runs scripts through node %i', async (i) => {
    const script = "return redis.call('incrby', KEYS[1], ARGV[1])";
    expect(await nodes[i]!.eval(script, 1, `script:${i}`, 5)).toBe(5);
    const sha = (await nodes[i]!.script('LOAD', script)) as string;
    expect(await nodes[i]!.evalsha(sha, 1, `script:${i}`, 5)).toBe(10);
  });

  test.each(each)('serves a client blocked at node %i', async (i) => {
    const client = nodes[i]!.duplicate();
    const popped = client.blpop(`blocked:${i}`, 20);
    await pause(200);
    await nodes[(i + 1) % 3]!.rpush(`blocked:${i}`, 'v');
    expect(await popped).toEqual([`blocked:${i}`, 'v']);
    client.disconnect();
  });

  test.each(each)('tells subscribers of all nodes what is published at node %i', async (i) => {
    const subscribers = nodes.map((node) => node.duplicate());
    const heard = subscribers.map(
      (client) =>
        new Promise<string>((resolve) => {
          client.on('message', (channel, text) => resolve(`${channel} ${text}`));
        }),
    );
    await Promise.all(subscribers.map((client) => client.subscribe(`channel:${i}`)));
    await nodes[i]!.publish(`channel:${i}`, 'hello');
    expect(await Promise.all(heard)).toEqual(Array(3).fill(`channel:${i} hello`));
    for (const client of subscribers) client.disconnect();
  });

  test('shows MONITOR at one node what clients of all nodes do, those of its tenant', async () => {
    const monitor = await nodes[0]!.monitor();
    const shown: string[] = [];
    monitor.on('monitor', (_time: string, args: string[]) => shown.push(args.join(' ')));
    let n = 0;
    const all = (): boolean => each.every((i) => shown.some((line) => line === `set seen ${i}`));
    for (; !all(); n++) {
      for (const i of each) await nodes[i]!.set('seen', i);
      await pause(20);
    }
    // Each once, whichever node leads the row.
    await nodes[1]!.set('seen', 'the last');
    while (!shown.includes('set seen the last')) await pause(20);
    for (const i of each) {
      expect(shown.filter((line) => line === `set seen ${i}`).length).toBeLessThanOrEqual(n);
    }
    monitor.disconnect();
  });

  test('reads a stream in a group at one node that is written at another', async () => {
    const [a, b, c] = nodes as [Redis, Redis, Redis];
    await a.xgroup('CREATE', 'stream', 'group', '$', 'MKSTREAM');
    const id = await b.xadd('stream', '*', 'field', 'value');
    const read = (await c.xreadgroup('GROUP', 'group', 'me', 'STREAMS', 'stream', '>')) as unknown;
    expect(JSON.stringify(read)).toContain(id);
    expect(await a.xack('stream', 'group', id!)).toBe(1);
  });

  test('a table of several partitions is one table', async () => {
    await cluster.cli('table', 'create', '5', '--model', 'kv', '--partitions', '4');
    await cluster.settled();
    const clients = nodes.map((node) => node.duplicate({ db: 5 }));
    const keys = Array.from({ length: 60 }, (_, n) => `key:${n}`);
    await Promise.all(keys.map((key, n) => clients[n % 3]!.set(key, key)));
    for (const client of clients) {
      expect(await client.dbsize()).toBe(60);
      expect(new Set(await client.keys('*'))).toEqual(new Set(keys));
      expect(await Promise.all(keys.map((key) => client.get(key)))).toEqual(keys);
      await expect(client.mget('key:1', 'key:2')).rejects.toThrow('CROSSSLOT');
      client.disconnect();
    }
  });
});

describe('InfluxDB', () => {
  const ask = async (node: number, text: string): Promise<unknown> => {
    const url = `${cluster.nodes[node]!.influx}/query?db=d&q=${encodeURIComponent(text)}`;
    return (await fetch(url, { method: 'POST' })).json();
  };

  test('points written through any node are read through any other', async () => {
    await ask(0, 'CREATE DATABASE d');
    for (const i of each) {
      const body = `m,node=n${i} value=${i} ${i + 1}`;
      const url = `${cluster.nodes[i]!.influx}/write?db=d`;
      expect((await fetch(url, { method: 'POST', body })).status).toBe(204);
    }
    const answers = await Promise.all(each.map((i) => ask(i, 'SELECT value, node FROM m')));
    for (const answer of answers) expect(answer).toEqual(answers[0]);
    expect(JSON.stringify(answers[0])).toContain('0,"n0"');
    expect(JSON.stringify(answers[0])).toContain('2,"n2"');
  });

  test('a session goes from node to node, and late reads are answered at hand', async () => {
    await ask(0, 'CREATE DATABASE d');
    const headers = { 'X-Polyrow-Consistency': 'session' };
    let token: string | null = null;
    for (let n = 0; n < 12; n++) {
      const given: Record<string, string> =
        token === null ? headers : { 'X-Polyrow-Session': token };
      const { influx } = cluster.nodes[n % 3]!;
      const body = `session v=${n} ${n + 1}`;
      const written = await fetch(`${influx}/write?db=d`, { method: 'POST', body, headers: given });
      expect(written.status).toBe(204);
      token = written.headers.get('x-polyrow-session');
      const q = encodeURIComponent('SELECT last(v) FROM session');
      const url = `${cluster.nodes[(n + 1) % 3]!.influx}/query?db=d&q=${q}`;
      const read = await fetch(url, { headers: { 'X-Polyrow-Session': token! } });
      expect(await read.text()).toContain(`,${n}]`);
      token = read.headers.get('x-polyrow-session');
    }
    const late = { 'X-Polyrow-Consistency': 'bounded; ms=60000' };
    let readHere = 0;
    for (const { influx, admin } of cluster.nodes) {
      const q = encodeURIComponent('SELECT count(v) FROM session');
      const read = await fetch(`${influx}/query?db=d&q=${q}`, { headers: late });
      expect(read.status).toBe(200);
      const metrics = await (await fetch(`${admin}/metrics`)).text();
      const found = /^polyrow_influx_replica_queries\S* (\d+)$/m.exec(metrics)!;
      readHere += Number(found[1]);
    }
    expect(readHere).toBeGreaterThan(0);
  });
});
