// A cluster under load goes from one build to another, node by node, while clients with ordinary retries write and read; and
// the data directory of a plain server of the one build is opened by the other.

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { RespClient } from '../support/resp-client.ts';
import { type Figure, tell } from './figures.ts';
import { LocalNodes } from './local-nodes.ts';
import { oldDirectory } from './old-directory.ts';
import { PointWriter } from './point-writer.ts';
import { Probe } from './probes.ts';

interface UpgradeOptions {
  /** The folder of the compiled build from which the cluster goes. */
  from: string;
  /** Milliseconds of load before each node is stopped. */
  steadyMs: number;
}

export const upgradeDefaults = { steadyMs: 2000 };

const thisBuild = join(import.meta.dirname, '..', '..');
const probesOfNode = 2;
const moreWrites = 20;
const withinMs = 60_000;
const refused = /not all nodes/;

/** A typical client: it reconnects, and retries unanswered requests. */
function connect(port: number): Redis {
  const client = new Redis(port, '127.0.0.1');
  client.on('error', () => undefined);
  return client;
}

export async function upgradeBench(options: UpgradeOptions, command: string): Promise<boolean> {
  const figures: Figure[] = [];
  const cluster = await LocalNodes.start({ nodes: 3, dist: options.from });
  try {
    figures.push(...(await upgrade(cluster, options.steadyMs)));
  } finally {
    await cluster.stop();
  }
  figures.push(...(await oldDirectory(options.from, thisBuild)));
  return tell('upgrade', command, figures);
}

async function upgrade(cluster: LocalNodes, steadyMs: number): Promise<Figure[]> {
  const { numbers } = cluster;
  const points = await PointWriter.all(numbers.map((node) => cluster.influxUrl(node)));
  const clients = numbers.flatMap((node) =>
    Array.from({ length: probesOfNode }, () => connect(cluster.redisPort(node))),
  );
  const probes = clients.map((client, i) => new Probe(client, `probe:${i}`));
  const began = performance.now();
  let early = 0;
  for (const node of numbers) {
    await sleep(steadyMs);
    await cluster.terminate(node);
    const seconds = await cluster.restart(node, thisBuild);
    process.stderr.write(`node ${node} is of the new build: ${seconds.toFixed(1)} s\n`);
    await cluster.settled(node);
    await Promise.all([...probes, ...points].map((one) => one.goesOn(moreWrites, withinMs)));
    if (node !== numbers.at(-1) && (await leaseIsTaken(cluster, node))) early++;
  }
  const late = await leaseIsTaken(cluster, numbers[0]!);
  const gaps = [...probes, ...points].map((one) => one.longestGapSince(began));
  let [lost, errors, twice] = [0, 0, 0];
  for (const probe of probes) {
    lost += await probe.lost();
    twice += await probe.twice();
  }
  for (const writer of points) lost += await writer.lost(cluster.influxUrl(numbers[0]!));
  for (const [error, count] of [...probes, ...points].flatMap((one) => [...one.errors])) {
    errors += count;
    process.stderr.write(`${count} x ${error}\n`);
  }
  const written = [...probes, ...points].reduce((sum, { times }) => sum + times.length, 0);
  const session = await sessionWorks(cluster);
  for (const client of clients) client.disconnect();
  return [
    { name: 'writes acknowledged', unit: '', value: written },
    { name: 'errors that clients with retries saw', unit: '', value: errors, atMost: 0 },
    { name: 'acknowledged writes lost', unit: '', value: lost, atMost: 0 },
    { name: 'writes there twice, sent again by the client', unit: '', value: twice },
    { name: 'longest wait of a client', unit: 'ms', value: Math.max(...gaps) },
    { name: 'new operation taken before all nodes know it', unit: '', value: early, atMost: 0 },
    { name: 'new operation taken at the end', unit: '', value: late ? 1 : 0, atLeast: 1 },
    { name: 'sessions across nodes at the end', unit: '', value: session, atLeast: 1 },
  ];
}

/** Only the new build has leases: a table may ask for them once all nodes run that build. */
async function leaseIsTaken(cluster: LocalNodes, node: number): Promise<boolean> {
  const admin = await cluster.admin(node);
  try {
    await admin.request('PATCH', '/v1/tables/0', { consistency: 'lease' });
    return true;
  } catch (error) {
    if (refused.test((error as Error).message)) return false;
    throw error;
  }
}

async function sessionWorks(cluster: LocalNodes): Promise<number> {
  const [one, other] = await Promise.all(
    cluster.numbers.slice(0, 2).map((node) => RespClient.connect(cluster.redisPort(node))),
  );
  await one!.call('CONSISTENCY', 'SESSION');
  await one!.call('SET', 'session', 'x');
  const token = (await one!.call('CONSISTENCY', 'TOKEN')).split('\r\n').at(-1)!;
  await other!.call('CONSISTENCY', 'SESSION', token);
  const seen = await other!.call('GET', 'session');
  one!.close();
  other!.close();
  return seen === 'x' ? 1 : 0;
}
