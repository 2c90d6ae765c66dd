// Client latency while a leader hands over, while a node with much data restarts, and while a
// replica is copied.

import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { request, RespClient } from '../support/resp-client.ts';
import { percentile } from '../support/statistics.ts';
import { type Figure, tell } from './figures.ts';
import { LocalNodes } from './local-nodes.ts';
import { Probe } from './probes.ts';

export const transferDefaults = { rounds: 20 };

const steadyMs = 300;
const moreWrites = 20;
const withinMs = 30_000;

export async function transferBench(
  { rounds }: { rounds: number },
  command: string,
): Promise<boolean> {
  const cluster = await LocalNodes.start({ nodes: 3 });
  const pauses: number[] = [];
  const first: number[] = [];
  const later: number[] = [];
  let errors = 0;
  let lost = 0;
  try {
    const admin = await cluster.admin(1);
    // Each node leads once before the rounds: the first time takes longer.
    for (let round = -cluster.numbers.length; round < rounds; round++) {
      const { group, leader } = await cluster.rows();
      const to = cluster.numbers.find((node) => node > leader) ?? cluster.numbers[0]!;
      const clients = cluster.numbers.map((node) => new Redis(cluster.redisPort(node)));
      const probes = clients.map((client, i) => new Probe(client, `probe:${round}:${i}`));
      await sleep(steadyMs);
      const moment = performance.now();
      await admin.request('POST', `/v1/cluster/groups/${group}/transfer`, { to });
      while ((await cluster.rows()).leader !== to) await sleep(20);
      const isOver = performance.now();
      await Promise.all(probes.map((probe) => probe.goesOn(moreWrites, withinMs)));
      // Gaps also occur without a transfer. One that begins after the new leader serves is not counted.
      (round < 0 ? first : pauses).push(
        ...probes.map((probe) => probe.longestGapSince(moment, isOver)),
      );
      if (round >= 0) later.push(...probes.map((probe) => probe.longestGapFrom(isOver)));
      for (const probe of probes) {
        lost += await probe.lost();
        for (const [error, count] of probe.errors) {
          errors += count;
          process.stderr.write(`\n${count} x ${error}\n`);
        }
      }
      for (const client of clients) client.disconnect();
      process.stderr.write(`\rtransfer: round ${Math.max(0, round + 1)} of ${rounds}   `);
    }
  } finally {
    await cluster.stop();
  }
  process.stderr.write('\n');
  return tell('transfer', command, [
    { name: 'write pause, p50', unit: 'ms', value: percentile(pauses, 0.5) },
    { name: 'write pause, p99', unit: 'ms', value: percentile(pauses, 0.99), atMost: 50 },
    { name: 'write pause, longest', unit: 'ms', value: Math.max(...pauses) },
    { name: 'first transfer to each node, longest', unit: 'ms', value: Math.max(...first) },
    { name: 'longest gap right after, p99', unit: 'ms', value: percentile(later, 0.99) },
    { name: 'errors', unit: '', value: errors, atMost: 0 },
    { name: 'acknowledged writes lost', unit: '', value: lost, atMost: 0 },
  ]);
}

export const movesDefaults = { megabytes: 1000, valueBytes: 1000 };

const keyAt = (i: number): string => `key:${String(i).padStart(10, '0')}`;

async function load(port: number, options: typeof movesDefaults): Promise<void> {
  const { megabytes, valueBytes } = options;
  const value = 'x'.repeat(valueBytes);
  const count = (megabytes * 1e6) / valueBytes;
  // A group refuses writes while more than 16 MiB of them wait for a majority.
  const atOnce = Math.max(1, Math.floor(4e6 / valueBytes));
  const client = await RespClient.connect(port);
  for (let from = 0; from < count; from += atOnce) {
    const some = Math.min(atOnce, count - from);
    await client.pipeline(some, (i) => request('SET', keyAt(from + i), value));
  }
  client.close();
}

/** Latencies in milliseconds of a GET and a SET in turn, one after the other, until `isOver`. */
async function foreground(port: number, isOver: () => boolean): Promise<number[]> {
  const client = await RespClient.connect(port);
  const latencies: number[] = [];
  for (let i = 0; !isOver(); i++) {
    const began = performance.now();
    if (i % 2 === 0) await client.call('GET', keyAt(i % 1000));
    else await client.call('SET', keyAt(i % 1000), 'y');
    latencies.push(performance.now() - began);
    await sleep(1);
  }
  client.close();
  return latencies;
}

/** Long enough for the nodes to end the checkpoints of what was loaded. */
const restMs = 20_000;

/** A node with so much data is killed and starts again: while all nodes still write checkpoints of it, and at rest. */
export async function restartNodeBench(
  options: typeof movesDefaults,
  command: string,
): Promise<boolean> {
  const cluster = await LocalNodes.start({ nodes: 3 });
  const figures: Figure[] = [];
  try {
    const { leader } = await cluster.rows();
    await load(cluster.redisPort(leader), options);
    const node = cluster.numbers.find((one) => one !== leader)!;
    for (const when of ['right after it was written', 'at rest']) {
      if (when === 'at rest') await sleep(restMs);
      await cluster.kill(node);
      const seconds = await cluster.restart(node);
      const began = performance.now();
      const client = await RespClient.connect(cluster.redisPort(node));
      const size = Number(await client.call('DBSIZE'));
      client.close();
      if (size < (options.megabytes * 1e6) / options.valueBytes) throw new Error(`${size} keys`);
      const first = (performance.now() - began) / 1000;
      const name = `a node with ${options.megabytes} MB serves, ${when}`;
      figures.push({ name, unit: 's', value: seconds + first, atMost: 5 });
      await cluster.settled();
      const until = (performance.now() - began) / 1000 + seconds;
      figures.push({ name: `its replica has caught up, ${when}`, unit: 's', value: until });
    }
  } finally {
    await cluster.stop();
  }
  return tell('restart', command, figures);
}

/** A replica with so much data is copied to a fourth node, while a client reads and writes: during checkpoints, and at rest. */
export async function snapshotBench(
  options: typeof movesDefaults,
  command: string,
): Promise<boolean> {
  const cluster = await LocalNodes.start({ nodes: 4 });
  const figures: Figure[] = [];
  try {
    const port = cluster.redisPort((await cluster.rows()).leader);
    await load(port, options);
    for (const when of ['right after it was written', 'at rest']) {
      if (when === 'at rest') await sleep(restMs);
      const { group, leader, replicas } = await cluster.rows();
      let isOver = false;
      const before = foreground(port, () => isOver);
      await sleep(5000);
      isOver = true;
      const quiet = percentile(await before, 0.99);
      const holders = replicas.map(({ node }) => node);
      const from = holders.find((node) => node !== leader)!;
      const to = cluster.numbers.find((node) => !holders.includes(node))!;
      isOver = false;
      const during = foreground(port, () => isOver);
      const began = performance.now();
      const admin = await cluster.admin(1);
      await admin.request('POST', `/v1/cluster/groups/${group}/move`, { from, to });
      for (;;) {
        const now = await cluster.rows();
        const nodes = now.replicas.map(({ node }) => node);
        if (now.settled && nodes.includes(to) && !nodes.includes(from)) break;
        await sleep(50);
      }
      const seconds = (performance.now() - began) / 1000;
      isOver = true;
      const busy = percentile(await during, 0.99);
      const speed = options.megabytes / seconds;
      figures.push(
        { name: `a replica is copied, ${when}`, unit: 'MB/s', value: speed, atLeast: 50 },
        { name: `foreground p99 before, ${when}`, unit: 'ms', value: quiet },
        { name: `foreground p99 meanwhile, ${when}`, unit: 'ms', value: busy },
        { name: `meanwhile over before, ${when}`, unit: '', value: busy / quiet, atMost: 2 },
      );
    }
  } finally {
    await cluster.stop();
  }
  return tell('snapshot', command, figures);
}
