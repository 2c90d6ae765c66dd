// Unmodified clients during fail-over: the leader of the rows is killed, stopped for a while, and restarted gracefully while
// each client writes. Reports their errors, their longest wait, and lost acknowledged writes.

import { setTimeout as sleep } from 'node:timers/promises';
import Table from 'cli-table3';
import { Cluster, Redis } from 'ioredis';
import { createClient, createCluster } from 'redis';
import { MissingToolError } from '../support/processes.ts';
import {
  type ClientKind,
  type ClientProgram,
  clientPrograms,
  RunningClient,
} from './client-programs.ts';
import { type Figure, tell } from './figures.ts';
import { LocalNodes } from './local-nodes.ts';
import { PointWriter } from './point-writer.ts';
import { Probe, type ProbeClient } from './probes.ts';

interface ClientsOptions {
  /** Names of clients contain one of these words; all for none. */
  only: string[];
  /** Milliseconds between one harm and the next. */
  steadyMs: number;
  /** Milliseconds that the leader is stopped. */
  stopMs: number;
}

export const clientsDefaults: ClientsOptions = { only: [], steadyMs: 4000, stopMs: 4000 };

const withinMs = 60_000;
const moreWrites = 5;

interface Outcome {
  name: string;
  written: number;
  lost: number;
  twice: number;
  longestGapMs: number;
  errors: [string, number][];
}

export async function clientsBench(options: ClientsOptions, command: string): Promise<boolean> {
  const outcomes: Outcome[] = [];
  for (const kind of ['plain', 'cluster'] as const) outcomes.push(...(await ofKind(kind, options)));
  const table = new Table({
    head: ['client', 'acknowledged', 'lost', 'twice', 'longest wait, ms', 'errors'],
    style: { head: [], border: [] },
  });
  for (const { name, written, lost, twice, longestGapMs, errors } of outcomes) {
    const texts = errors.map(([text, count]) => `${count} x ${text.slice(0, 90)}`).join('\n');
    table.push([name, written, lost, twice, Math.round(longestGapMs), texts || 'none']);
  }
  console.log(table.toString());
  const figures = outcomes.flatMap(({ name, written, lost, longestGapMs, errors }): Figure[] => [
    { name: `${name}: acknowledged`, unit: '', value: written, atLeast: 1 },
    { name: `${name}: lost`, unit: '', value: lost, atMost: 0 },
    { name: `${name}: errors`, unit: '', value: errors.reduce((sum, [, n]) => sum + n, 0) },
    { name: `${name}: longest wait`, unit: 'ms', value: longestGapMs },
  ]);
  return tell('clients', command, figures);
}

async function ofKind(kind: ClientKind, options: ClientsOptions): Promise<Outcome[]> {
  const isWanted = (name: string): boolean =>
    options.only.length === 0 || options.only.some((word) => name.includes(word));
  const programs = clientPrograms.filter((one) => one.kind === kind && isWanted(one.name));
  const flags = kind === 'cluster' ? ['--redis.cluster-mode', 'redirect'] : [];
  const cluster = await LocalNodes.start({ nodes: 3, flags });
  const running: RunningClient[] = [];
  const probes: { name: string; probe: Probe; client: ProbeClient }[] = [];
  try {
    // A client that knows only one address uses a node that is never harmed, as behind a load balancer.
    const stays = cluster.numbers.at(-1)!;
    await leaveTo(cluster, stays);
    const order = [stays, ...cluster.numbers.filter((node) => node !== stays)];
    const ports = order.map((node) => cluster.redisPort(node));
    for (const program of programs) {
      const client = await started(program, ports);
      if (client !== undefined) running.push(client);
    }
    for (const [name, connect] of nodeClients(kind).filter(([name]) => isWanted(name))) {
      const client = await connect(ports);
      probes.push({ name, client, probe: new Probe(client, `of:${name.replaceAll(' ', '-')}`) });
    }
    const points = await pointWriters(kind, cluster, isWanted);
    const began = performance.now();
    await harmAll(cluster, stays, options);
    const all = [...probes.map(({ probe }) => probe), ...points];
    await Promise.all(all.map((one) => one.goesOn(moreWrites, withinMs)));
    const outcomes: Outcome[] = [];
    for (const { name, probe } of probes) {
      outcomes.push({
        name,
        written: probe.acknowledged.length,
        longestGapMs: probe.longestGapSince(began),
        lost: await probe.lost(),
        twice: await probe.twice(),
        errors: [...probe.errors],
      });
    }
    for (const writer of points) {
      const lost = await writer.lost(cluster.influxUrl(stays));
      outcomes.push({
        ...{ name: 'InfluxDB lines over HTTP', written: writer.times.length, lost, twice: 0 },
        longestGapMs: writer.longestGapSince(began),
        errors: [...writer.errors],
      });
    }
    const leader = (await cluster.rows()).leader;
    const reader = new Redis(cluster.redisPort(leader), '127.0.0.1');
    for (const client of running.splice(0)) outcomes.push(await ended(client, reader));
    reader.disconnect();
    return outcomes;
  } finally {
    for (const client of running) client.kill();
    for (const { client } of probes) client.disconnect();
    await cluster.stop();
  }
}

async function started(
  program: ClientProgram,
  ports: readonly number[],
): Promise<RunningClient | undefined> {
  try {
    return await RunningClient.start(program, ports);
  } catch (error) {
    if (!(error instanceof MissingToolError)) throw error;
    process.stderr.write(`left out: ${program.name}: ${error.message}\n`);
    return undefined;
  }
}

async function ended(client: RunningClient, reader: Redis): Promise<Outcome> {
  const { name } = client.program;
  const told = await client.end().catch((error: Error) => error);
  if (told instanceof Error) {
    const errors: Outcome['errors'] = [[told.message, 1]];
    return { name, written: 0, lost: 0, twice: 0, longestGapMs: 0, errors };
  }
  const { acknowledged, errors, longestGapMs } = told;
  const there = await reader.lrange(client.key, 0, -1);
  const distinct = new Set(there);
  return {
    name,
    written: acknowledged.length,
    lost: acknowledged.filter((n) => !distinct.has(String(n))).length,
    twice: there.length - distinct.size,
    longestGapMs,
    errors: Object.entries(errors),
  };
}

/** One writer of points, at the node that stays. */
async function pointWriters(
  kind: ClientKind,
  cluster: LocalNodes,
  isWanted: (name: string) => boolean,
): Promise<PointWriter[]> {
  if (kind === 'cluster' || !isWanted('InfluxDB lines over HTTP')) return [];
  return PointWriter.all([cluster.influxUrl(cluster.numbers.at(-1)!)]);
}

type Connect = (ports: readonly number[]) => Promise<ProbeClient>;

function nodeClients(kind: ClientKind): [name: string, connect: Connect][] {
  const quiet = <T extends { on(event: 'error', listener: () => void): unknown }>(client: T): T => {
    // An error outside any command is a connection error; the client reconnects.
    client.on('error', () => undefined);
    return client;
  };
  const url = (port: number): string => `redis://127.0.0.1:${port}`;
  if (kind === 'plain') {
    return [
      ['ioredis', async (ports) => quiet(new Redis(ports[0]!, '127.0.0.1'))],
      [
        'node-redis',
        async (ports) => asProbe(await quiet(createClient({ url: url(ports[0]!) })).connect()),
      ],
    ];
  }
  return [
    [
      'ioredis Cluster',
      async (ports) => quiet(new Cluster(ports.map((port) => ({ host: '127.0.0.1', port })))),
    ],
    [
      'node-redis cluster',
      async (ports) => {
        const rootNodes = ports.map((port) => ({ url: url(port) }));
        const client = quiet(createCluster({ rootNodes }));
        return asProbe(await client.connect());
      },
    ],
  ];
}

interface NodeRedis {
  rPush(key: string, element: string): Promise<number>;
  lRange(key: string, from: number, to: number): Promise<string[]>;
  destroy(): void;
}

function asProbe(client: NodeRedis): ProbeClient {
  return {
    rpush: (key, element) => client.rPush(key, element),
    lrange: (key, from, to) => client.lRange(key, from, to),
    disconnect: () => client.destroy(),
  };
}

/** The leader is killed, stopped, and restarted in good order; it is never the node that stays. */
async function harmAll(
  cluster: LocalNodes,
  stays: number,
  { steadyMs, stopMs }: ClientsOptions,
): Promise<void> {
  const harms: [string, (leader: number) => Promise<unknown>][] = [
    ['killed', async (leader) => cluster.kill(leader).then(() => sleep(steadyMs))],
    [
      'stopped for a while',
      async (leader) => {
        cluster.signal(leader, 'SIGSTOP');
        await sleep(stopMs);
        cluster.signal(leader, 'SIGCONT');
      },
    ],
    ['restarted in good order', async (leader) => cluster.terminate(leader)],
  ];
  for (const [name, harm] of harms) {
    await sleep(steadyMs);
    const leader = await leaveTo(cluster, stays);
    process.stderr.write(`node ${leader}, which leads, is ${name}\n`);
    await harm(leader);
    if (!cluster.isUp(leader)) await cluster.restart(leader);
    await cluster.settled(stays);
    await sleep(steadyMs);
  }
}

/** Until another node than this one leads the rows: its number. */
async function leaveTo(cluster: LocalNodes, stays: number): Promise<number> {
  for (;;) {
    const { group, leader } = await cluster.rows(stays);
    if (leader !== 0 && leader !== stays) return leader;
    const to = cluster.numbers.find((node) => node !== stays)!;
    const admin = await cluster.admin(stays);
    // Refused while nobody leads: then it is asked again.
    await admin
      .request('POST', `/v1/cluster/groups/${group}/transfer`, { to })
      .catch(() => undefined);
    await sleep(200);
  }
}
