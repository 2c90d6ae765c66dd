// Features of a single server work through any node of a cluster: scripts, functions, and messages
// to clients.

import { readFileSync } from 'node:fs';
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
});
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

describe('what reads may see', () => {
  test('is all that a session has seen, whose token goes from node to node', async () => {
    const [, first, second] = await Promise.all(
      nodes.map(({ options }) => RespClient.connect(options.port!)),
    );
    await first!.text('CONSISTENCY', 'SESSION');
    for (let i = 1; i <= 50; i++) {
      await first!.text('SET', 'session', String(i));
      expect(await first!.text('GET', 'session')).toBe(`"${i}"`);
      const token = (await first!.text('CONSISTENCY', 'TOKEN')).slice(1, -1);
      expect(await second!.text('CONSISTENCY', 'SESSION', token)).toBe('+OK');
      expect(await second!.text('GET', 'session')).toBe(`"${i}"`);
    }
    first!.close();
    second!.close();
  });

  test('is the latest where leaders have leases', async () => {
    await cluster.cli('table', 'alter', '0', '--consistency', 'lease');
    for (let i = 0; i < 30; i++) {
      await nodes[i % 3]!.set('leased', i);
      expect(await nodes[(i + 1) % 3]!.get('leased')).toBe(String(i));
    }
    await cluster.cli('table', 'alter', '0', '--consistency', 'strong');
  });

  test('WAIT tells how many replicas have what was written', async () => {
    for (const node of nodes) {
      await node.set('waited', 'x'.repeat(100_000));
      expect(await node.wait(2, 5000)).toBe(2);
      expect(await node.wait(3, 10)).toBeLessThanOrEqual(2);
      expect(await node.multi().wait(1, 5000).exec()).toEqual([[null, 0]]);
    }
  });

  test('WAITAOF tells on which disks it is', async () => {
    for (const node of nodes) {
      await node.set('waited', 'x'.repeat(100_000));
      expect(await node.call('WAITAOF', 1, 2, 60_000)).toEqual([1, 2]);
      expect(await node.call('WAITAOF', 1, 3, 10)).toEqual([1, 2]);
      await expect(node.call('WAITAOF', 2, 0, 0)).rejects.toThrow('value must between 0 and 1');
    }
  });
});

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

describe('through any node', () => {
  const idOf = async (client: Redis): Promise<number> => (await client.client('ID')) as number;

  test.each([0, 1, 2])('%i, all clients are listed, ended and unblocked', async (i) => {
    const others = nodes.map((node) => node.duplicate());
    const ids = await Promise.all(others.map(idOf));
    expect(new Set(ids).size).toBe(3);
    const list = String(await nodes[i]!.client('LIST'));
    for (const id of ids) expect(list).toContain(`id=${id} `);
    const of = String(await nodes[i]!.call('CLIENT', 'LIST', 'ID', String(ids[2])));
    expect(of.trim().split('\n')).toHaveLength(1);
    const popped = others[1]!.blpop('nothing', 0);
    await eventually(async () => {
      expect(await nodes[i]!.client('UNBLOCK', ids[1]!)).toBe(1);
    });
    expect(await popped).toBeNull();
    const ended = others.map((one) => new Promise((resolve) => one.once('close', resolve)));
    for (const one of others) one.options.retryStrategy = () => null;
    for (const id of ids) {
      expect(await nodes[i]!.call('CLIENT', 'KILL', 'ID', String(id))).toBe(1);
      expect(await nodes[i]!.call('CLIENT', 'KILL', 'ID', String(id))).toBe(0);
    }
    await Promise.all(ended);
  });

  test('a client ends itself, and is answered', async () => {
    const client = await RespClient.connect(nodes[1].options.port!);
    const id = (await client.text('CLIENT', 'ID')).slice(1);
    expect(await client.text('CLIENT', 'KILL', 'ID', id, 'SKIPME', 'no')).toBe(':1');
  });

  test('a pause holds for clients of all', async () => {
    expect(await nodes[1].call('CLIENT', 'PAUSE', '60000', 'WRITE')).toBe('OK');
    const clients = nodes.map((node) => node.duplicate());
    const writes = clients.map((client, i) => client.set(`paused:${i}`, '1'));
    const isOver = Promise.race(writes).then(() => true);
    const reads = Promise.all(nodes.map((node) => node.get('paused:0')));
    expect(await reads).toEqual([null, null, null]);
    const later = new Promise((resolve) => setTimeout(resolve, 50, false));
    expect(await Promise.race([isOver, later])).toBe(false);
    expect(await nodes[2].call('CLIENT', 'UNPAUSE')).toBe('OK');
    expect(await Promise.all(writes)).toEqual(['OK', 'OK', 'OK']);
    for (const client of clients) client.disconnect();
  });

  test('settings are changed and slow commands found', async () => {
    await nodes[1].config('SET', 'slowlog-log-slower-than', '0');
    for (const node of nodes) {
      expect(await node.config('GET', 'slowlog-log-slower-than')).toEqual([
        'slowlog-log-slower-than',
        '0',
      ]);
    }
    await nodes[2].slowlog('RESET');
    for (const [i, node] of nodes.entries()) await node.echo(`slow:${i}`);
    for (const node of nodes) {
      const entries = (await node.slowlog('GET', -1)) as [number, number, number, string[]][];
      const texts = entries.map(([, , , words]) => words.join(' '));
      for (const i of nodes.keys()) expect(texts).toContain(`ECHO slow:${i}`.toLowerCase());
      expect(new Set(entries.map(([id]) => id)).size).toBe(entries.length);
      expect(Number(await node.slowlog('LEN'))).toBeGreaterThanOrEqual(entries.length);
    }
    await nodes[0].config('SET', 'slowlog-log-slower-than', '10000');
    await expect(nodes[0].config('SET', 'maxmemory-policy', 'none')).rejects.toThrow('CONFIG SET');
  });

  test('histograms of commands are of all nodes', async () => {
    await nodes[0].config('RESETSTAT');
    for (const node of nodes) await node.get('histogram');
    for (const node of nodes) {
      const [name, about] = (await node.latency('HISTOGRAM', 'get')) as [string, unknown[]];
      expect([name, ...about.slice(0, 2)]).toEqual(['get', 'calls', 3]);
    }
  });

  test('channels and those who listen are counted', async () => {
    const listeners = await Promise.all(nodes.map(async (node) => node.duplicate()));
    for (const [i, one] of listeners.entries()) {
      await one.subscribe('common', `own:${i}`);
      await one.psubscribe('same:*', `other:${i}:*`);
    }
    for (const node of nodes) {
      const names = (await node.pubsub('CHANNELS', '*')) as string[];
      expect(names.sort()).toEqual(['common', 'own:0', 'own:1', 'own:2']);
      expect(await node.pubsub('NUMSUB', 'common', 'own:1', 'none')).toEqual([
        ...['common', 3],
        ...['own:1', 1],
        ...['none', 0],
      ]);
      expect(await node.pubsub('NUMPAT')).toBe(4);
    }
    for (const one of listeners) one.disconnect();
  });

  test('refusals are found in ACL LOG', async () => {
    await nodes[0].call('ACL', 'LOG', 'RESET');
    for (const node of nodes) {
      const client = node.duplicate();
      await expect(client.auth('nobody', node.options.port!.toString())).rejects.toThrow();
      client.disconnect();
    }
    for (const node of nodes) expect(await node.call('ACL', 'LOG')).toHaveLength(3);
    await nodes[1].call('ACL', 'LOG', 'RESET');
    for (const node of nodes) expect(await node.call('ACL', 'LOG')).toHaveLength(0);
  });

  test('INFO counts keys and clients once', async () => {
    await nodes[0].flushall();
    for (let i = 0; i < 30; i++) await nodes[i % 3]!.set(`counted:${i}`, '1');
    const infos = await Promise.all(nodes.map((node) => node.info()));
    const field = (text: string, name: string): string | undefined =>
      new RegExp(`^${name}:(.*)\r$`, 'm').exec(text)?.[1];
    for (const info of infos) {
      expect(field(info, 'db0')).toBe('keys=30,expires=0,avg_ttl=0');
      expect(field(info, 'cluster_nodes')).toBe('3');
      expect(field(info, 'cluster_answering_nodes')).toBe('3');
      expect(Number(field(info, 'connected_clients'))).toBeGreaterThanOrEqual(3);
    }
    expect(new Set(infos.map((info) => field(info, 'cluster_node'))).size).toBe(3);
    expect(await Promise.all(nodes.map((node) => node.dbsize()))).toEqual([30, 30, 30]);
  });
});

describe('the admin API of any node', () => {
  type Rows = Record<string, unknown>[];

  async function ask(i: number, method: string, page: string, body?: object): Promise<unknown> {
    const response = await fetch(`${cluster.nodes[i]!.admin}/v1/${page}`, {
      method,
      headers: {
        authorization: `Bearer ${cluster.adminToken(i)}`,
        'content-type': 'application/json',
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const answer: unknown = await response.json();
    expect(response.status, JSON.stringify(answer)).toBeLessThan(300);
    return answer;
  }

  test('makes, lists and drops databases, wherever they are led', async () => {
    for (const i of [0, 1, 2]) {
      const name = `made${i}`;
      await ask(i, 'POST', 'tenants/default/databases', { name });
      for (const at of [0, 1, 2]) {
        const { databases } = (await ask(at, 'GET', 'tenants/default/databases')) as {
          databases: Rows;
        };
        expect(databases).toContainEqual({ kind: 'influx', name });
      }
      await ask((i + 1) % 3, 'DELETE', `tenants/default/databases/${name}`);
      const { databases } = (await ask(i, 'GET', 'tenants/default/databases')) as {
        databases: Rows;
      };
      expect(databases).not.toContainEqual({ kind: 'influx', name });
    }
  });

  test('has the audit trail of all nodes', async () => {
    for (const i of [0, 1, 2]) {
      await ask(i, 'POST', 'tenants/default/databases', { name: `audited${i}` });
      await ask(i, 'DELETE', `tenants/default/databases/audited${i}`);
    }
    type Trail = { audit: Rows; silentNodes?: number[] };
    for (const at of [0, 1, 2]) {
      const { audit, silentNodes } = (await ask(at, 'GET', 'audit?limit=1000')) as Trail;
      expect(silentNodes).toBeUndefined();
      for (const i of [0, 1, 2]) {
        const path = `/v1/tenants/default/databases/audited${i}`;
        const found = audit.filter((record) => record['path'] === path);
        expect(found.map(({ node }) => node)).toEqual([cluster.nodes[i]!.id]);
      }
      expect(audit.map(({ at: time }) => time)).toEqual(
        audit.map(({ at: time }) => Number(time)).sort((a, b) => a - b),
      );
      const { id } = cluster.nodes[(at + 1) % 3]!;
      const one = (await ask(at, 'GET', `audit?limit=1000&node=${id}&after=0`)) as Trail;
      expect(new Set(one.audit.map(({ node }) => node))).toEqual(new Set([id]));
      const { seq } = one.audit.at(-1)!;
      const rest = (await ask(at, 'GET', `audit?node=${id}&after=${String(seq)}`)) as Trail;
      expect(rest.audit).toEqual([]);
    }
  });

  test('tells what was spent, and what was slow, through all', async () => {
    await nodes[0].config('SET', 'slowlog-log-slower-than', '0');
    for (const [i, node] of nodes.entries()) await node.echo(`told:${i}`);
    await nodes[0].config('SET', 'slowlog-log-slower-than', '10000');
    const totals: number[] = [];
    for (const at of [0, 1, 2]) {
      const { slowlog } = (await ask(at, 'GET', 'slowlog?limit=1000')) as { slowlog: Rows };
      const texts = slowlog.map(({ text }) => text);
      for (const i of [0, 1, 2]) expect(texts).toContain(`echo told:${i}`);
      expect(new Set(slowlog.map(({ id, plane }) => `${String(plane)} ${String(id)}`)).size).toBe(
        slowlog.length,
      );
      const { usage } = (await ask(at, 'GET', 'ru?plane=redis')) as { usage: Rows };
      totals.push(Number(usage.find(({ tenant }) => tenant === 'default')!['requests']));
    }
    // The requests of this test to one node are few compared with all.
    expect(Math.max(...totals) / Math.min(...totals)).toBeLessThan(1.5);
  });

  test('shows the limit of a tenant as one, of which busy nodes have more', async () => {
    const limit = 1000;
    await ask(1, 'PATCH', 'tenants/default/limits', { ruPerSecond: limit });
    const quotaOf = async (): Promise<number> => {
      const { admission } = (await ask(2, 'GET', 'admission?plane=redis')) as { admission: Rows };
      return Number(admission.find(({ tenant }) => tenant === 'default')?.['quotaRu']);
    };
    await eventually(async () => {
      const quota = await quotaOf();
      expect(quota).toBeGreaterThan(limit * 0.9);
      expect(quota).toBeLessThan(limit * 1.1);
    });
    const own = async (i: number): Promise<number> =>
      Number(/^ru_quota:(.*)\r$/m.exec(await nodes[i]!.info('ru'))?.[1]);
    expect(await own(0)).toBeLessThan(limit / 2);
    // All that the tenant asks for it asks of this node.
    const client = nodes[0].duplicate();
    let isOver = false;
    const load = async (): Promise<void> => {
      while (!isOver) {
        const batch = client.pipeline();
        for (let i = 0; i < 500; i++) batch.get('absent');
        await batch.exec();
      }
    };
    const loads = [load(), load(), load(), load()];
    await eventually(async () => {
      expect(await own(0)).toBeGreaterThan(limit * 0.6);
    });
    isOver = true;
    await Promise.all(loads);
    client.disconnect();
    // Nodes are asked one after the other, while shares move.
    await eventually(async () => expect(await quotaOf()).toBeLessThan(limit * 1.1));
    await ask(2, 'PATCH', 'tenants/default/limits', { ruPerSecond: 0 });
  });
});

test('each node tells what the dashboard asks of clusters', async () => {
  const dashboard = readFileSync(new URL('../../docs/grafana/polyrow.json', import.meta.url));
  const asked = new Set(String(dashboard).match(/polyrow_cluster_[a-z_]+/g));
  expect(asked.size).toBeGreaterThan(5);
  const led = new Map<string, number>();
  for (const { admin } of cluster.nodes) {
    const text = await (await fetch(`${admin}/metrics`)).text();
    for (const name of asked) expect(text).toMatch(new RegExp(`^${name}[{ ]`, 'm'));
    for (const [, labels, leads] of text.matchAll(/^polyrow_cluster_group_leads{(.*)} (.)$/gm)) {
      led.set(labels!, (led.get(labels!) ?? 0) + Number(leads));
    }
  }
  expect(led.size).toBeGreaterThan(0);
  // Each group is led by one node.
  expect(new Set(led.values())).toEqual(new Set([1]));
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
    // Repeated, as notifications may be lost.
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

  /** Next message to the client. */
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
  });
});
