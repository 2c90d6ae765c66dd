// Splits, merges and conversions of a table in a cluster while clients of all nodes write, which are not to notice. By
// command also at random, and while nodes are killed:
//
//   CHANGES=n, KILLS=n      so many; prints the longest that a client has waited in each change, and what was lost or doubled
//   PARTITION_SEED=n        repeats the choices of a run

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import type { PartitionOrder, TablePartitions } from '../../control/metadata/partition-catalog.ts';
import { chooseChange, PartitionLoad } from '../partitions/partition-load.ts';
import { PolyrowCluster } from '../support/polyrow-cluster.ts';
import { Random } from '../support/random.ts';
import { RespClient } from '../support/resp-client.ts';
import { seedFrom } from '../support/seed.ts';

const rows = 3000;
const pollMs = 50;
const changes = Number(process.env['CHANGES'] ?? 0);
const kills = Number(process.env['KILLS'] ?? 0);
const seed = seedFrom('PARTITION_SEED');

let cluster: PolyrowCluster | undefined;
afterEach(async () => {
  await cluster?.remove();
  cluster = undefined;
});

async function ask(method: string, body?: PartitionOrder, node = 0): Promise<TablePartitions> {
  const response = await fetch(`${cluster!.nodes[node]!.admin}/v1/tables/0/partitions`, {
    method,
    headers: {
      authorization: `Bearer ${cluster!.adminToken(node)}`,
      ...(body && { 'content-type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  const answer = (await response.json()) as TablePartitions;
  expect(response.ok, JSON.stringify(answer)).toBe(true);
  return answer;
}

async function settled(node = 0): Promise<TablePartitions> {
  for (;;) {
    const found = await ask('GET', undefined, node);
    if (found.change === undefined) return found;
    await sleep(pollMs);
  }
}

async function change(order: PartitionOrder): Promise<TablePartitions> {
  await ask('POST', order);
  const found = await settled();
  expect(found.failure, JSON.stringify(order)).toBeUndefined();
  return found;
}

function numbers({ partitions }: TablePartitions): number[] {
  return partitions.map(({ number }) => number);
}

async function begin(random: Random): Promise<{ clients: RespClient[]; loads: PartitionLoad[] }> {
  cluster = await PolyrowCluster.start(3);
  const clients = await Promise.all(cluster.redisPorts.map((port) => RespClient.connect(port)));
  const written = await clients[0]!.pipeline(
    Array.from({ length: rows }, (_, i) => ['SET', `row:${i}`, 'x'.repeat(100)]),
  );
  expect(written.filter(({ type }) => type !== '+')).toEqual([]);
  const loads = clients.map((_, i) => new PartitionLoad(`w${i}`, random));
  for (const [i, load] of loads.entries()) await load.begin(clients[i]!);
  return { clients, loads };
}

async function verify(reader: RespClient, loads: readonly PartitionLoad[]): Promise<void> {
  for (const load of loads) await load.verify(reader, `seed ${seed}`);
  const lengths = await reader.pipeline(
    Array.from({ length: rows }, (_, i) => ['STRLEN', `row:${i}`]),
  );
  const expected = JSON.stringify(await reader.command('STRLEN', 'row:0'));
  expect(lengths.filter((one) => JSON.stringify(one) !== expected)).toEqual([]);
  expect(await reader.text('STRLEN', 'row:0')).toBe(':100');
}

function printPauses(what: string, pauses: number[]): void {
  if (pauses.length === 0) return;
  const sorted = pauses.toSorted((a, b) => a - b);
  const at = (part: number): string =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]!.toFixed(0);
  console.log(`${sorted.length} x ${what}: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`);
}

test('a table is split, converted and merged under load', async () => {
  const { clients, loads } = await begin(new Random(seed));
  const [reader] = clients;
  const blocked = await RespClient.connect(cluster!.redisPort(1));
  const popped = blocked.text('BLPOP', 'waited-for', '0');
  const running = loads.map((load, i) => load.run(clients[i]!));

  const split = await change({ kind: 'split', partition: 0 });
  expect(split.partitions).toHaveLength(2);
  const converted = await change({ kind: 'convert', model: 'kv' });
  expect(converted.partitions.map(({ model }) => model)).toEqual(['kv', 'kv']);
  const merged = await change({ kind: 'merge', partitions: numbers(converted) });
  expect(merged.partitions).toHaveLength(1);

  for (const load of loads) load.stop();
  await Promise.all(running);
  expect(Math.min(...loads.map(({ answered }) => answered))).toBeGreaterThan(0);
  await verify(reader!, loads);
  await reader!.text('RPUSH', 'waited-for', 'come');
  expect(await popped).toContain('come');
  await Promise.all([1, 2, 3].map((database) => divideWhileWritten(database)));
  for (const client of [...clients, blocked]) client.close();
});

/** An empty table is divided when the first rows are written to it: it has them all, divided or not. */
async function divideWhileWritten(database: number): Promise<void> {
  const writer = await RespClient.connect(cluster!.redisPort(database - 1));
  await writer.command('SELECT', database);
  const created = fetch(`${cluster!.nodes[0]!.admin}/v1/tables`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${cluster!.adminToken(0)}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify({ table: String(database), partitions: 4 }),
  });
  let isOver = false;
  const answer = created.then((response) => response.json());
  void answer.finally(() => (isOver = true));
  // Before its rows are counted, and between that and the change.
  await sleep(40 * (database - 1));
  let acknowledged = 0;
  while (!isOver) {
    expect(await writer.text('SET', `row:${acknowledged}`, 'x')).toBe('+OK');
    acknowledged++;
  }
  const { partitions, error } = (await answer) as { partitions?: number; error?: unknown };
  if (partitions === undefined) expect(JSON.stringify(error)).toContain('it holds');
  else expect(partitions).toBe(4);
  const values = await writer.pipeline(
    Array.from({ length: acknowledged }, (_, i) => ['GET', `row:${i}`]),
  );
  expect(values.filter(({ type }) => type !== '$').length).toBe(0);
  expect(await writer.text('DBSIZE')).toBe(`:${acknowledged}`);
  writer.close();
}

test.runIf(changes > 0)(
  `${changes} random changes under load`,
  { timeout: 3_600_000 },
  async () => {
    const random = new Random(seed);
    const { clients, loads } = await begin(random);
    const running = loads.map((load, i) => load.run(clients[i]!));
    const [pauses, calm]: [number[], number[]] = [[], []];
    const told: number[] = [];
    for (let n = 1; n <= changes; n++) {
      const order = chooseChange(await settled(), random);
      for (const load of loads) load.takeSlowest();
      const began = performance.now();
      await change(order);
      pauses.push(Math.max(...loads.map((load) => load.takeSlowest())));
      const ms = (performance.now() - began).toFixed(0);
      // As long without a change: what the machine itself takes.
      await sleep(Number(ms));
      calm.push(Math.max(...loads.map((load) => load.takeSlowest())));
      console.log(
        `${n} ${JSON.stringify(order)}: ${ms} ms, pause ${pauses.at(-1)!.toFixed(0)} ms, without a change ${calm.at(-1)!.toFixed(0)} ms`,
      );
    }
    for (const load of loads) load.stop();
    await Promise.all(running);
    await verify(clients[0]!, loads);
    console.log('lost 0, doubled 0');
    for (const [, ms] of cluster!.output.matchAll(/"pausedMs":(\d+)/g)) told.push(Number(ms));
    printPauses('longest answer in a change', pauses);
    printPauses('as long without one', calm);
    printPauses('told by the node that makes them', told);
    for (const client of clients) client.close();
  },
);

/** Of a node that may have been started again just now. */
async function connect(index: number): Promise<RespClient> {
  for (;;) {
    try {
      const client = await RespClient.connect(cluster!.redisPort(index));
      if ((await client.text('PING')) === '+PONG') return client;
    } catch {
      // It does not serve yet.
    }
    await sleep(pollMs);
  }
}

test.runIf(kills > 0)(`${kills} kills during changes`, { timeout: 7_200_000 }, async () => {
  const random = new Random(seed);
  const { clients, loads } = await begin(random);
  for (let n = 1; n <= kills; n++) {
    const running = loads.map((load, i) => load.run(clients[i]!));
    const killed = random.below(3);
    const other = (killed + 1) % 3;
    const order = chooseChange(await settled(other), random);
    await ask('POST', order, other);
    await sleep(random.below(3000));
    cluster!.kill(killed);
    await running[killed];
    clients[killed] = await connect(killed);
    const { failure } = await settled(other);
    for (const load of loads) load.stop();
    await Promise.all(running);
    await verify(clients[killed]!, loads);
    console.log(`${n} ${JSON.stringify(order)}, node ${killed + 1} killed: ${failure ?? 'made'}`);
  }
  console.log('lost 0, doubled 0');
  for (const client of clients) client.close();
});
