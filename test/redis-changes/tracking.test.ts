// CLIENT TRACKING: beside redis-server, and as clients use it.

import { on, once } from 'node:events';
import { createConnection } from 'node:net';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { redisInstalled } from '../commands/redis-server.ts';
import { Polyrow } from '../support/polyrow.ts';
import { RedisProcess } from '../support/redis-server.ts';
import type { RespClient } from '../support/resp-client.ts';
import { show } from '../support/resp-value.ts';

/**
 * Steps of the clients in order: `reader` speaks RESP3, `old` RESP2, `listener` receives
 * invalidations of the keys `old` reads.
 */
const steps: readonly string[] = `
reader CLIENT TRACKING ON BCAST OPTIN
reader CLIENT TRACKING ON PREFIX a
reader CLIENT TRACKING ON OPTIN OPTOUT
reader CLIENT TRACKING ON REDIRECT 99999
reader CLIENT TRACKING ON BCAST PREFIX ab PREFIX a
reader CLIENT TRACKING maybe
reader CLIENT CACHING YES
reader CLIENT TRACKINGINFO
reader CLIENT GETREDIR
reader CLIENT TRACKING ON
reader CLIENT TRACKING ON BCAST
reader CLIENT TRACKINGINFO
reader CLIENT GETREDIR
reader GET k
writer SET k 1
writer SET k 2
reader MGET k k2
reader SET k 3
writer SET k2 1
reader HGETALL h
writer HSET h f v
reader LRANGE l 0 -1
writer RPUSH l v
reader LRANGE l 0 -1
writer BLPOP l 0
reader EXISTS k
writer EXPIRE k 100
reader GET k
writer DEL k
reader GET k
writer RENAME k2 k
reader MULTI
reader GET k
reader GET k2
reader EXEC
writer MSET k 1 k2 2
reader GET k
writer EVAL return{redis.call('set','k','x')} 1 k
reader GET k
reader EVAL return(redis.call('set','k','y')) 2 k k2
writer SET k2 1
writer SET k2 1
reader EVAL return(redis.call('set','k3','y')) 2 k k2
writer MSET k 1 k2 1
reader EVAL return(redis.call('get','k')) 2 k k2
writer MSET k 1 k2 1
writer FLUSHDB
reader CLIENT TRACKING OFF
writer SET k 1
reader CLIENT TRACKING ON NOLOOP
reader GET k
reader SET k 2
reader GET k
writer SET k 2
reader CLIENT TRACKING OFF
reader CLIENT TRACKING ON OPTIN
reader CLIENT CACHING NO
reader CLIENT CACHING YES
reader CLIENT TRACKINGINFO
reader GET k
reader GET k2
writer SET k2 1
writer SET k 1
reader CLIENT CACHING YES
reader MULTI
reader GET k
reader GET k2
reader EXEC
writer SET k2 1
writer SET k 1
reader CLIENT TRACKING ON OPTOUT
reader CLIENT TRACKING OFF
reader CLIENT TRACKING ON OPTOUT
reader CLIENT CACHING NO
reader GET k
reader GET k2
writer SET k 1
writer SET k2 1
reader CLIENT TRACKING OFF
reader CLIENT TRACKING ON BCAST PREFIX user: PREFIX item:
reader CLIENT TRACKING ON BCAST PREFIX user:1
reader CLIENT TRACKING ON BCAST PREFIX other:
reader CLIENT TRACKINGINFO
writer SET user:1 a
writer SET none a
writer MSET item:1 a item:2 b
writer MULTI
writer SET user:1 b
writer SET other:1 b
writer EXEC
reader SET user:1 c
reader CLIENT TRACKING OFF
reader CLIENT TRACKING ON BCAST NOLOOP
reader SET user:1 c
writer SET user:1 c
reader CLIENT TRACKING OFF
listener SUBSCRIBE __redis__:invalidate
old CLIENT TRACKING ON REDIRECT <listener>
old GET k
writer SET k 1
old GET k
writer FLUSHALL
old GET k
writer FLUSHALL
old CLIENT TRACKING OFF
old CLIENT TRACKING ON REDIRECT <listener> BCAST PREFIX k
writer SET k 1
reader CLIENT TRACKING ON REDIRECT <listener>
reader GET k
listener QUIT
writer SET k 1
reader CLIENT TRACKINGINFO
`
  .trim()
  .split('\n');

type Name = 'reader' | 'writer' | 'old' | 'listener';

/** An answer to PING comes behind what was sent before it. */
async function barrier(client: RespClient): Promise<void> {
  if (client.closed) return;
  const { onReply } = client;
  const answered = new Promise<void>((resolve) => {
    client.onReply = (reply) => {
      onReply?.(reply);
      if (/PONG|"pong"/.test(show(reply))) resolve();
    };
  });
  client.send('PING\r\n');
  await Promise.race([answered, client.ended]);
  client.onReply = onReply;
}

/** Messages to all clients after each step. */
async function heard(connect: (version: 2 | 3) => Promise<RespClient>): Promise<string[]> {
  const clients: Record<Name, RespClient> = {
    reader: await connect(3),
    writer: await connect(2),
    old: await connect(2),
    listener: await connect(2),
  };
  await clients.writer.command('FLUSHALL');
  const id = (await clients.listener.text('CLIENT', 'ID')).replace(/\D/g, '');
  let lines: string[] = [];
  for (const [name, client] of Object.entries(clients)) {
    client.onReply = (reply) => {
      const line = show(reply);
      if (!/PONG|"pong"/.test(line)) lines.push(`${name} < ${line}`.replaceAll(id, '<listener>'));
    };
  }
  const inTransaction = new Set<RespClient>();
  const all: string[] = [];
  for (const step of steps) {
    const [name, ...words] = step.replace('<listener>', id).split(' ');
    const client = clients[name as Name];
    client.send(`${words.join(' ')}\r\n`);
    if (words[0] === 'MULTI') inTransaction.add(client);
    if (words[0] === 'EXEC') inTransaction.delete(client);
    for (const one of [client, ...Object.values(clients)]) {
      if (inTransaction.has(one)) await sleep(20);
      else await barrier(one);
    }
    all.push(`${step}\n  ${lines.sort().join('\n  ')}`);
    lines = [];
  }
  for (const client of Object.values(clients)) client.close();
  return all;
}

describe.each(['memory', 'kv'] as const)('client-side caching on the %s model', (model) => {
  let polyrow: Polyrow;
  beforeAll(async () => {
    polyrow = await Polyrow.start({ flags: ['--redis.default-model', model] });
  });
  afterAll(async () => {
    await polyrow.stop();
    await polyrow.remove();
  });

  test.skipIf(!redisInstalled)('goes step by step as with redis-server', async () => {
    const redis = await RedisProcess.start();
    try {
      const theirs = await heard((version) => redis.client(version));
      const ours = await heard((version) => polyrow.client(version));
      expect(ours.join('\n')).toBe(theirs.join('\n'));
    } finally {
      await redis.remove();
    }
  });

  test('a client that has quit tracks nothing, while its socket is open', async () => {
    const port = polyrow.redisPort;
    const socket = createConnection({ port, host: '127.0.0.1', allowHalfOpen: true });
    const tracking = async () => {
      const info = await (await polyrow.client()).text('INFO', 'clients');
      return Number(/tracking_clients:(\d+)/.exec(info)?.[1]);
    };
    try {
      const before = await tracking();
      socket.write('HELLO 3\r\nCLIENT TRACKING ON BCAST PREFIX quit:\r\nECHO tracks\r\n');
      for await (const data of on(socket, 'data')) if (String(data).includes('tracks')) break;
      expect(await tracking()).toBe(before + 1);
      socket.write('QUIT\r\n');
      await once(socket, 'data');
      expect(await tracking()).toBe(before);
    } finally {
      socket.destroy();
    }
  });

  test("node-redis's cache answers without the server, until a key changes", async () => {
    const url = `redis://127.0.0.1:${polyrow.redisPort}`;
    const client = createClient({ url, RESP: 3, clientSideCache: { ttl: 0, maxEntries: 0 } });
    const writer = createClient({ url });
    await Promise.all([client.connect(), writer.connect()]);
    await writer.set('cached', '1');
    expect(await client.get('cached')).toBe('1');
    const before = await writer.info('commandstats');
    for (let i = 0; i < 10; i++) expect(await client.get('cached')).toBe('1');
    const calls = (text: string) => /cmdstat_get:calls=(\d+)/.exec(text)?.[1];
    expect(calls(await writer.info('commandstats'))).toBe(calls(before));
    await writer.set('cached', '2');
    await expect.poll(() => client.get('cached')).toBe('2');
    client.destroy();
    writer.destroy();
  });

  test('ioredis is told of what it has read on a connection of its own', async () => {
    const options = { port: polyrow.redisPort, host: '127.0.0.1', protocol: 2 } as const;
    const client = new Redis(options);
    const listener = new Redis(options);
    const told: string[] = [];
    const id = await listener.client('ID');
    await listener.subscribe('__redis__:invalidate');
    listener.on('message', (_channel, keys: unknown) => told.push(String(keys)));
    await client.client('TRACKING', 'ON', 'REDIRECT', id);
    await client.mget('x', 'y');
    const writer = new Redis(options);
    await writer.set('x', '1');
    await expect.poll(() => told).toEqual(['x']);
    await writer.set('x', '2');
    await writer.set('y', '2');
    await expect.poll(() => told).toEqual(['x', 'y']);
    for (const one of [client, listener, writer]) one.disconnect();
  });

  test('the table is bounded: clients are told to forget', async () => {
    const reader = await polyrow.client(3);
    const admin = await polyrow.client();
    await admin.command('CONFIG', 'SET', 'tracking-table-max-keys', 10);
    await reader.command('CLIENT', 'TRACKING', 'ON');
    const told: string[] = [];
    reader.onReply = (reply) => {
      if (reply.type === '>') told.push(show(reply));
    };
    for (let i = 0; i < 15; i++) {
      reader.send(`GET key:${i}\r\n`);
      await sleep(2);
    }
    await expect.poll(() => told.length).toBe(5);
    expect(await admin.text('INFO', 'stats')).toContain('tracking_total_keys:10');
  });
});

test('a lower limit of tracked keys evicts those that were read first, and tells of them', async () => {
  const polyrow = await Polyrow.start();
  const reader = await polyrow.client(3);
  const told: string[] = [];
  await reader.command('CLIENT', 'TRACKING', 'ON');
  for (let i = 0; i < 50; i++) await reader.command('GET', `key:${i}`);
  reader.onReply = (reply) => {
    const text = show(reply);
    if (text.includes('invalidate')) told.push(text);
  };
  const admin = await polyrow.client();
  await admin.command('CONFIG', 'SET', 'tracking-table-max-keys', '3');
  await expect.poll(() => told.length).toBe(47);
  expect(told[0]).toContain('key:0');
  await polyrow.remove();
});
