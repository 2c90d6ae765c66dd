// Cluster mode for one node: beside a redis-server that owns all slots, and as cluster clients use it.

import { spawnSync } from 'node:child_process';
import { Cluster } from 'ioredis';
import { createCluster } from 'redis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { redisInstalled } from '../commands/redis-server.ts';
import { Polyrow } from '../support/polyrow.ts';
import { redisPython } from '../support/redis-python.ts';
import { RedisProcess } from '../support/redis-server.ts';

/** Answered alike by redis-server in cluster mode, but for ids, addresses and clocks. */
const compared: readonly string[] = `
SET a 1
SET b 2
MGET a b
MGET {x}a {x}b
MSET a 1 b 2
DEL a b
RENAME a b
RENAME {x}a {x}b
SUNIONSTORE d a b
EVAL return(1) 2 a b
EVAL return(1) 0
PFMERGE a b
BLPOP a b 1
XREAD STREAMS a b 0 0
SELECT 0
SELECT 1
SWAPDB 0 1
MOVE a 1
COPY {x}a {x}b DB 1
COPY {x}a {x}b
SORT l BY w_* GET v_*
SORT l GET #
SORT l GET v_*
MULTI
SET a 1
SET b 2
EXEC
MULTI
SET {x}a 1
GET {x}a
EXEC
MULTI
MGET a b
EXEC
READONLY
READWRITE
ASKING
CLUSTER KEYSLOT foo
CLUSTER KEYSLOT {user1000}.following
CLUSTER KEYSLOT foo{}{bar}
CLUSTER KEYSLOT foo{{bar}}zap
CLUSTER COUNTKEYSINSLOT 15495
CLUSTER COUNTKEYSINSLOT 16384
CLUSTER COUNTKEYSINSLOT x
CLUSTER GETKEYSINSLOT 15495 10
CLUSTER GETKEYSINSLOT 15495 -1
CLUSTER GETKEYSINSLOT 99999 1
CLUSTER LINKS
CLUSTER NOSUCH
CLUSTER COUNT-FAILURE-REPORTS nosuch
CLUSTER REPLICAS nosuch
SPUBLISH ch m
SSUBSCRIBE {x}a {x}b
SUNSUBSCRIBE
`
  .trim()
  .split('\n');

const ownCarrier = process.env['TEST_POD_CARRIER'] ?? 'none';

describe.each([
  ['memory', ownCarrier],
  ['kv', ownCarrier],
  ['memory', 'tcp'],
] as const)('cluster mode on the %s model, carrier %s', (model, carrier) => {
  let polyrow: Polyrow;
  beforeAll(async () => {
    polyrow = await Polyrow.start({
      flags: ['--redis.default-model', model, '--redis.cluster-mode', 'on'],
      env: { TEST_POD_CARRIER: carrier },
    });
  });
  afterAll(async () => {
    await polyrow.stop();
    await polyrow.remove();
  });

  test.skipIf(!redisInstalled)('answers as a redis-server that owns all slots', async () => {
    const redis = await RedisProcess.start(['--cluster-enabled', 'yes']);
    try {
      const theirs = await redis.client();
      const ours = await polyrow.client();
      await theirs.command('CLUSTER', 'ADDSLOTSRANGE', 0, 16383);
      const state = () => theirs.text('CLUSTER', 'INFO');
      await expect.poll(state).toContain('cluster_state:ok');
      for (const line of compared) {
        const words = line.split(' ');
        const expected = await theirs.text(...words);
        expect(`${line}: ${await ours.text(...words)}`).toBe(`${line}: ${expected}`);
      }
    } finally {
      await redis.remove();
    }
  });

  test('ioredis Cluster', async () => {
    const cluster = new Cluster([{ host: '127.0.0.1', port: polyrow.redisPort }]);
    for (let i = 0; i < 50; i++) await cluster.set(`io:${i}`, String(i));
    expect(await cluster.get('io:33')).toBe('33');
    await expect(cluster.mget('io:1', 'io:2')).rejects.toThrow('CROSSSLOT');
    expect(await cluster.mget('{s}1', '{s}2')).toEqual([null, null]);
    const results = await cluster.pipeline().set('{p}a', 1).incr('{p}a').exec();
    expect(results).toEqual([
      [null, 'OK'],
      [null, 2],
    ]);
    expect(cluster.nodes('master')).toHaveLength(1);
    cluster.disconnect();
  });

  test('node-redis createCluster, with shard channels', async () => {
    const cluster = createCluster({
      rootNodes: [{ url: `redis://127.0.0.1:${polyrow.redisPort}` }],
    });
    await cluster.connect();
    for (let i = 0; i < 50; i++) await cluster.set(`node:${i}`, String(i));
    expect(await cluster.get('node:33')).toBe('33');
    const results = await cluster.multi().set('{m}a', '1').get('{m}a').exec();
    expect(results).toEqual(['OK', '1']);
    const heard: string[] = [];
    await cluster.sSubscribe('shard', (message) => heard.push(message));
    await cluster.sPublish('shard', 'hello');
    await expect.poll(() => heard).toEqual(['hello']);
    cluster.destroy();
  });

  test.skipIf(redisPython === undefined)('redis-py RedisCluster', () => {
    const script = `${import.meta.dirname}/redis_cluster.py`;
    const { stdout, stderr } = spawnSync(redisPython!, [script, String(polyrow.redisPort)], {
      encoding: 'utf8',
    });
    expect(stderr + stdout).toMatch(/^passed/);
  });

  test('every key is found in its slot', async () => {
    const client = await polyrow.client();
    for (let i = 0; i < 20; i++) await client.command('SET', `{slot}:${i}`, i);
    const slot = (await client.text('CLUSTER', 'KEYSLOT', 'slot')).slice(1).trim();
    expect(await client.text('CLUSTER', 'COUNTKEYSINSLOT', slot)).toBe(':20');
    const all = await client.command('CLUSTER', 'GETKEYSINSLOT', slot, 100);
    expect('items' in all && all.items).toHaveLength(20);
    const few = await client.command('CLUSTER', 'GETKEYSINSLOT', slot, 3);
    expect('items' in few && few.items).toHaveLength(3);
  });
});

test.each([ownCarrier, 'tcp'])(
  'without the setting there is no cluster, carrier %s',
  async (carrier) => {
    const polyrow = await Polyrow.start({ env: { TEST_POD_CARRIER: carrier } });
    try {
      const client = await polyrow.client();
      for (const words of [
        ['CLUSTER', 'SLOTS'],
        ['READONLY'],
        ['CLUSTER', 'COUNTKEYSINSLOT', '1'],
      ]) {
        expect(await client.text(...words)).toContain('cluster support disabled');
      }
      expect(await client.text('MGET', 'a', 'b')).not.toContain('CROSSSLOT');
    } finally {
      await polyrow.stop();
      await polyrow.remove();
    }
  },
);
