// Clients that know Redis Cluster, at a cluster that sends them to the nodes that lead.

import { spawnSync } from 'node:child_process';
import { Cluster } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PolyrowCluster } from '../support/polyrow-cluster.ts';
import { redisPython } from '../support/redis-python.ts';
import { RespClient } from '../support/resp-client.ts';
import { show } from '../support/resp-value.ts';

let cluster: PolyrowCluster;
const clients: RespClient[] = [];

beforeAll(async () => {
  cluster = await PolyrowCluster.start(3, ['--', '--redis.cluster-mode', 'redirect']);
  for (const port of cluster.redisPorts) clients.push(await RespClient.connect(port));
});

afterAll(async () => {
  for (const client of clients) client.close();
  await cluster.remove();
});

/** The port of the node that leads all slots, as a node tells it. */
async function leaderPort(client: RespClient): Promise<number> {
  const slots = show(await client.command('CLUSTER', 'SLOTS'));
  const found = /^\*\[\*\[:0 :16383 \*\["127\.0\.0\.1" :(\d+) /.exec(slots);
  return Number(found?.[1]);
}

test('all nodes tell of the same nodes, and who does not lead sends clients to the leader', async () => {
  const leader = await leaderPort(clients[0]!);
  expect(cluster.redisPorts).toContain(leader);
  for (const [i, client] of clients.entries()) {
    expect(await leaderPort(client)).toBe(leader);
    const leads = cluster.redisPorts[i] === leader;
    const moved = `-MOVED 12182 127.0.0.1:${leader}`;
    expect(await client.text('SET', 'foo', 'bar')).toBe(leads ? '+OK' : moved);
    expect(await client.text('WATCH', 'foo')).toBe(leads ? '+OK' : moved);
    expect(await client.text('EVAL', 'return 1', 1, 'foo')).toBe(leads ? ':1' : moved);
    const nodes = show(await client.command('CLUSTER', 'NODES'));
    expect(nodes.match(/master - 0 0 1 connected 0-16383/g)).toHaveLength(1);
    expect(nodes.match(/slave [0-9a-f]{40} 0 0 1 connected/g)).toHaveLength(2);
    const own = await client.text('CLUSTER', 'MYID');
    expect(nodes).toContain(`${own.slice(1, -1)} 127.0.0.1:${cluster.redisPorts[i]}`);
  }
});

test('any node serves reads of clients that said READONLY, and no writes', async () => {
  const leader = await leaderPort(clients[0]!);
  const i = cluster.redisPorts.findIndex((port) => port !== leader);
  const client = clients[i]!;
  await clients[cluster.redisPorts.indexOf(leader)]!.command('SET', 'read', 'anywhere');
  expect(await client.text('GET', 'read')).toMatch(/^-MOVED /);
  expect(await client.text('READONLY')).toBe('+OK');
  // Such reads are eventual: a follower may not have applied the write yet.
  await expect.poll(() => client.text('GET', 'read')).toBe('"anywhere"');
  expect(await client.text('SET', 'read', 'x')).toMatch(/^-MOVED /);
  expect(await client.text('READWRITE')).toBe('+OK');
  expect(await client.text('GET', 'read')).toMatch(/^-MOVED /);
});

test.skipIf(redisPython === undefined)('redis-py', () => {
  const script = `
import sys
from redis.cluster import RedisCluster
c = RedisCluster(host='127.0.0.1', port=int(sys.argv[1]))
for i in range(50): c.set('py:%d' % i, i)
p = c.pipeline()
for i in range(50): p.get('py:%d' % i)
assert p.execute() == [str(i).encode() for i in range(50)]
assert len(c.keys('py:*')) == 50
assert len(set(c.scan_iter('py:*', count=7))) == 50
assert c.dbsize() >= 50
print('done')
`;
  const args = ['-c', script, String(cluster.redisPorts[1])];
  const { stdout, stderr } = spawnSync(redisPython!, args, { encoding: 'utf8' });
  expect(stderr).toBe('');
  expect(stdout).toBe('done\n');
});

test('ioredis goes on when the leader is killed', async () => {
  const client = new Cluster(
    cluster.redisPorts.map((port) => ({ host: '127.0.0.1', port })),
    { retryDelayOnMoved: 20, retryDelayOnFailover: 100, maxRedirections: 100, scaleReads: 'slave' },
  );
  client.on('error', () => {});
  try {
    for (let i = 0; i < 50; i++) await client.set(`io:${i}`, i);
    const old = await leaderPort(clients[0]!);
    cluster.kill(cluster.redisPorts.indexOf(old));
    let set = 0;
    for (let i = 50; i < 200; i++) {
      // One whose connection ended may have been done or not.
      await client.set(`io:${i}`, i).then(
        () => set++,
        () => undefined,
      );
    }
    expect(set).toBeGreaterThan(100);
    for (let i = 0; i < 50; i++) expect(await client.get(`io:${i}`)).toBe(String(i));
  } finally {
    client.disconnect();
  }
});
