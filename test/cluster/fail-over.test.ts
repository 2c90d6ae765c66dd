// Three nodes: each is killed in turn while clients write through all of them. Nothing that was acknowledged is lost, and
// nothing happens twice.

import type { Redis } from 'ioredis';
import { afterEach, expect, test } from 'vitest';
import { setTimeout as pause } from 'node:timers/promises';
import { connectOnce, PolyrowCluster } from '../support/polyrow-cluster.ts';
import { until } from '../support/until.ts';

let cluster: PolyrowCluster | undefined;
const clients: Redis[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) client.disconnect();
  await cluster?.remove();
  cluster = undefined;
});

async function connect(port: number): Promise<Redis> {
  const client = connectOnce(port);
  clients.push(client);
  await ready(client);
  return client;
}

async function ready(client: Redis): Promise<void> {
  while (client.status !== 'ready') await pause(20);
}

interface Written {
  acknowledged: number[];
  unknown: number[];
}

/** Appends numbers to a list until told to stop. */
async function append(client: Redis, writer: number, until: () => boolean): Promise<Written> {
  const written: Written = { acknowledged: [], unknown: [] };
  for (let n = 0; !until(); n++) {
    try {
      await client.rpush(`list:${writer}`, String(n));
      written.acknowledged.push(n);
    } catch (error) {
      const { message } = error as Error;
      // Refusals that say that nothing was done.
      if (!/^CLUSTERDOWN|^LOADING|isn't writeable/.test(message)) written.unknown.push(n);
      await pause(20);
    }
  }
  return written;
}

/** A busy machine may take longer to elect a leader than a command waits for one. */
function onlyLeaderless({ message }: Error): undefined {
  expect(message).toMatch(/^CLUSTERDOWN/);
}

test('each node in turn is killed under load', async () => {
  cluster = await PolyrowCluster.start(3);
  const { redisPorts } = cluster;
  let isOver = false;
  const writers: Promise<Written>[] = [];
  for (let i = 0; i < 9; i++) {
    writers.push(append(await connect(redisPorts[i % 3]!), i, () => isOver));
  }
  for (const index of [0, 1, 2]) {
    await pause(1500);
    cluster.kill(index);
    await pause(3500);
  }
  await pause(1000);
  isOver = true;
  const all = await Promise.all(writers);
  const reader = await connect(redisPorts[0]!);
  for (const [writer, { acknowledged, unknown }] of all.entries()) {
    let found: string[] | undefined = undefined;
    await until(async () => {
      found = await reader.lrange(`list:${writer}`, 0, -1).catch(onlyLeaderless);
      return found !== undefined;
    });
    const list = found!.map(Number);
    expect(new Set(list).size, 'nothing twice').toBe(list.length);
    const have = new Set(list);
    expect(acknowledged.filter((n) => !have.has(n))).toEqual([]);
    const known = new Set([...acknowledged, ...unknown]);
    expect(list.filter((n) => !known.has(n))).toEqual([]);
    expect(list, 'in order').toEqual([...list].sort((a, b) => a - b));
    expect(acknowledged.length).toBeGreaterThan(10);
  }
});

test('a node that hung tells its clients what became of their writes', async () => {
  cluster = await PolyrowCluster.start(3);
  const { redisPorts } = cluster;
  let isOver = false;
  const writers: Promise<Written>[] = [];
  for (let i = 0; i < 30; i++) {
    writers.push(append(await connect(redisPorts[i % 3]!), i, () => isOver));
  }
  const other = await Promise.all(redisPorts.map((port) => connect(port)));
  for (const index of [0, 1, 2]) {
    await pause(500);
    cluster.pause(index);
    // Until another node leads.
    const next = other[(index + 1) % 3]!;
    await until(() => next.rpush('others', index).then(Boolean, () => false));
    cluster.resume(index);
    await until(() => other[index]!.rpush('others', index).then(Boolean, () => false));
  }
  isOver = true;
  const all = await Promise.all(writers);
  for (const [writer, { acknowledged, unknown }] of all.entries()) {
    const list = await other[0]!.lrange(`list:${writer}`, 0, -1);
    expect(list.map(Number)).toEqual(acknowledged);
    expect(unknown).toEqual([]);
  }
});

test('a stopped node is noticed, and reads nothing stale when it goes on', async () => {
  cluster = await PolyrowCluster.start(3);
  const { redisPorts } = cluster;
  const all = await Promise.all(redisPorts.map((port) => connect(port)));
  await all[0]!.set('x', '0');
  for (let round = 1; round <= 3; round++) {
    const stopped = round % 3;
    cluster.pause(stopped);
    const others = all.filter((_, i) => i !== stopped);
    let isSet = false;
    for (let tries = 0; !isSet && tries < 100; tries++) {
      isSet = await others[tries % 2]!.set('x', String(round)).then(
        () => true,
        () => pause(100).then(() => false),
      );
    }
    expect(isSet).toBe(true);
    cluster.resume(stopped);
    let value: string | null | undefined = undefined;
    for (let tries = 0; value === undefined && tries < 100; tries++) {
      value = await all[stopped]!.get('x').catch(() => pause(100).then(() => undefined));
    }
    expect(value).toBe(String(round));
  }
});
