// The data directory of a plain server of an earlier build is opened by this one: rows of all types
// of both models, points, tenants, users and functions are unchanged, after a graceful stop and
// after a kill.

import { isDeepStrictEqual } from 'node:util';
import { Redis } from 'ioredis';
import { adminOf } from '../support/admin.ts';
import { startPolyrow } from '../support/processes.ts';
import type { Figure } from './figures.ts';
import { query } from './point-writer.ts';
import { freePort } from '../../test/support/free-port.ts';

const models = ['memory', 'kv'] as const;
const ends = ['SIGTERM', 'SIGKILL'] as const;
const rows = 300;
const library = "#!lua name=lib\nredis.register_function('f', function() return 'f' end)";

export async function oldDirectory(from: string, to: string): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const model of models) {
    for (const end of ends) {
      const value = (await isOpened(from, to, model, end)) ? 1 : 0;
      const name = `a server's directory, ${model}, after ${end}: all is there`;
      figures.push({ name, unit: '', value, atLeast: 1 });
    }
  }
  return figures;
}

async function isOpened(
  from: string,
  to: string,
  model: string,
  end: (typeof ends)[number],
): Promise<boolean> {
  const influxPort = await freePort();
  const flags = ['--redis.default-model', model, '--influx.port', String(influxPort)];
  const url = `http://127.0.0.1:${influxPort}`;
  const old = await startPolyrow('always', flags, [], { dist: from });
  const { directory } = old;
  const tell = async (server: typeof old): Promise<unknown> => {
    const client = new Redis(server.port, '127.0.0.1');
    try {
      return await contents(client, url, await adminOf(server));
    } finally {
      client.disconnect();
    }
  };
  const client = new Redis(old.port, '127.0.0.1');
  await fill(client, url);
  client.disconnect();
  await (await adminOf(old)).request('POST', '/v1/tenants', { name: 'shop' });
  const before = await tell(old);
  await old.end(end);
  const opened = await startPolyrow('always', flags, [], { dist: to, directory });
  const after = await tell(opened);
  await opened.stop();
  const isSame = isDeepStrictEqual(after, before);
  if (!isSame) {
    process.stderr.write(`before: ${JSON.stringify(before)}\nafter: ${JSON.stringify(after)}\n`);
  }
  return isSame;
}

async function fill(client: Redis, url: string): Promise<void> {
  const writes = client.pipeline();
  const later = Date.now() + 86_400_000;
  for (let i = 0; i < rows; i++) {
    writes.set(`string:${i}`, 'x'.repeat(i * 20), 'PXAT', later + i);
    writes.incrby(`number:${i}`, i);
    writes.rpush(`list:${i % 10}`, `element ${i}`, i);
    writes.hset(`hash:${i % 10}`, `field ${i}`, `value ${i}`);
    writes.sadd(`set:${i % 10}`, i, `member ${i}`);
    writes.zadd(`ranked:${i % 10}`, i / 3, `member ${i}`);
    writes.xadd(`stream:${i % 10}`, `${i + 1}-1`, 'field', String(i));
    writes.pfadd('sketch', i);
    writes.setbit('bits', i * 7, 1);
    writes.geoadd('places', i / 10, i / 10, `place ${i}`);
  }
  writes.call('HPEXPIREAT', 'hash:0', later, 'FIELDS', 1, 'field 0');
  writes.xgroup('CREATE', 'stream:0', 'group', '0');
  writes.xreadgroup('GROUP', 'group', 'consumer', 'COUNT', 3, 'STREAMS', 'stream:0', '>');
  writes.select(1).set('other', 'database').select(0);
  writes.del('number:7');
  writes.call('FUNCTION', 'LOAD', 'REPLACE', library);
  writes.acl('SETUSER', 'reader', 'on', '>secret', '~*', '+@read');
  for (const [error] of (await writes.exec())!) if (error !== null) throw error;
  await query(url, 'CREATE DATABASE points');
  const lines = Array.from({ length: rows }, (_, i) => `m,h=${i % 5} v=${i},t="${i}" ${1e18 + i}`);
  const answer = await fetch(`${url}/write?db=points`, { method: 'POST', body: lines.join('\n') });
  if (!answer.ok) throw new Error(await answer.text());
}

async function contents(
  client: Redis,
  url: string,
  admin: Awaited<ReturnType<typeof adminOf>>,
): Promise<unknown> {
  const keys = (await client.keys('*')).sort();
  const told = await Promise.all(
    keys.map(async (key) => [key, await client.pexpiretime(key), await contentOf(client, key)]),
  );
  return {
    rows: told,
    pending: await client.xpending('stream:0', 'group'),
    fieldTime: await client.call('HPEXPIRETIME', 'hash:0', 'FIELDS', '1', 'field 0'),
    databases: await client.info('keyspace').then((text) => text.replaceAll(/avg_ttl=\d+/g, '')),
    functions: await client.call('FUNCTION', 'LIST', 'WITHCODE'),
    answer: await client.call('FCALL', 'f', 0),
    users: await client.acl('LIST'),
    points: await query(url, 'SELECT * FROM m'),
    tenants: await admin.request('GET', '/v1/tenants'),
  };
}

async function contentOf(client: Redis, key: string): Promise<unknown> {
  switch (await client.type(key)) {
    case 'hash':
      return Object.entries(await client.hgetall(key)).sort(([a], [b]) => (a < b ? -1 : 1));
    case 'set':
      return (await client.smembers(key)).sort();
    case 'list':
      return client.lrange(key, 0, -1);
    case 'zset':
      return client.zrange(key, '0', '-1', 'WITHSCORES');
    case 'stream':
      return client.xrange(key, '-', '+');
    default:
      return client.getBuffer(key).then((value) => value?.toString('hex'));
  }
}
