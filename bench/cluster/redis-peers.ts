// Redis Cluster with three masters and three replicas, and a master with two replicas under three Sentinels, of the
// installed redis-server with its defaults, appended to a file each second as ours.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster, Redis } from 'ioredis';
import { output } from '../support/output.ts';
import { requireProgram } from '../support/processes.ts';
import type { ProbeClient } from './probes.ts';
import { freePort } from '../../test/support/free-port.ts';

export interface RedisPeer {
  readonly name: string;
  /** A client that finds new masters by itself, and keys of the master that `kill` ends and `repair` starts again. */
  prepare(round: number): Promise<{
    client: ProbeClient;
    key: string;
    kill: () => Promise<void>;
    repair: () => Promise<void>;
  }>;
  stop(): Promise<void>;
}

const pollMs = 100;
const repairMs = 120_000;

class Servers {
  readonly #directory = mkdtempSync(join(tmpdir(), 'polyrow-bench-redis-peer-'));
  readonly #children = new Map<number, ChildProcess>();
  readonly #words = new Map<number, string[]>();

  async start(port: number, words: readonly string[], file = ''): Promise<void> {
    const directory = join(this.#directory, String(port));
    mkdirSync(directory, { recursive: true });
    const path = join(directory, 'redis.conf');
    writeFileSync(path, `port ${port}\nbind 127.0.0.1\ndir ${directory}\n${file}`);
    this.#words.set(port, [path, ...words]);
    await this.again(port);
  }

  /** On the directory and the file of its last start. */
  async again(port: number): Promise<void> {
    const child = spawn('redis-server', this.#words.get(port)!, { stdio: 'ignore' });
    this.#children.set(port, child);
    await until(async () => (await ask(port, 'PING')).includes('PONG'));
  }

  async kill(port: number): Promise<void> {
    const child = this.#children.get(port)!;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  }

  async stop(): Promise<void> {
    for (const port of this.#children.keys()) await this.kill(port);
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

function ask(port: number, ...words: string[]): Promise<string> {
  return output('redis-cli', ['-p', String(port), ...words]).catch(() => '');
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + repairMs;
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error('redis-server does not come to rest');
    await sleep(pollMs);
  }
}

async function ports(count: number): Promise<number[]> {
  const found = new Set<number>();
  while (found.size < count) {
    const port = await freePort();
    // A cluster's bus is 10,000 above.
    if (port < 55_000) found.add(port);
  }
  return [...found];
}

const durable = ['--save', '', '--appendonly', 'yes', '--appendfsync', 'everysec'];
const replicaOn = /role:slave[\s\S]*master_link_status:up/;

export async function redisClusterPeer(): Promise<RedisPeer> {
  requireProgram('redis-server', 'package redis-server');
  const servers = new Servers();
  const all = await ports(6);
  for (const port of all) await servers.start(port, ['--cluster-enabled', 'yes', ...durable]);
  const addresses = all.map((port) => `127.0.0.1:${port}`);
  const create = ['--cluster', 'create', ...addresses, '--cluster-replicas', '1', '--cluster-yes'];
  await output('redis-cli', create);
  const isStable = async (): Promise<boolean> => {
    const infos = await Promise.all(all.map((port) => ask(port, 'INFO', 'replication')));
    const states = await Promise.all(all.map((port) => ask(port, 'CLUSTER', 'INFO')));
    const replicas = infos.filter((info) => replicaOn.test(info));
    return replicas.length === 3 && states.every((one) => one.includes('cluster_state:ok'));
  };
  return {
    name: 'Redis Cluster',
    async prepare(round) {
      await until(isStable);
      const client = new Cluster(
        all.map((port) => ({ host: '127.0.0.1', port })),
        { clusterRetryStrategy: () => 20, redisOptions: { maxRetriesPerRequest: 0 } },
      );
      client.on('error', () => undefined);
      const key = `{probe:${round}}`;
      const slot = await ask(all[0]!, 'CLUSTER', 'KEYSLOT', key);
      const line = (await ask(all[0]!, 'CLUSTER', 'NODES'))
        .split('\n')
        .find((one) => one.includes('master') && hasSlot(one, Number(slot)))!;
      const port = Number(/:(\d+)@/.exec(line)![1]);
      return {
        client,
        key,
        kill: () => servers.kill(port),
        repair: async () => {
          await servers.again(port);
          await until(isStable);
        },
      };
    },
    stop: () => servers.stop(),
  };
}

function hasSlot(line: string, slot: number): boolean {
  return line
    .trim()
    .split(' ')
    .slice(8)
    .some((range) => {
      const [from, to = from] = range.split('-').map(Number);
      return slot >= from! && slot <= to!;
    });
}

export async function sentinelPeer(): Promise<RedisPeer> {
  requireProgram('redis-server', 'package redis-server');
  const servers = new Servers();
  const [first, ...others] = await ports(6);
  const data = [first!, ...others.slice(0, 2)];
  const sentinels = others.slice(2);
  for (const port of data) {
    const words = port === first ? [] : ['--replicaof', '127.0.0.1', String(first)];
    await servers.start(port, [...durable, ...words]);
  }
  for (const port of sentinels) {
    await servers.start(port, ['--sentinel'], `sentinel monitor m 127.0.0.1 ${first} 2\n`);
  }
  const isStable = async (): Promise<boolean> => {
    const infos = await Promise.all(data.map((port) => ask(port, 'INFO', 'replication')));
    const knows = await Promise.all(
      sentinels.map((port) => ask(port, 'SENTINEL', 'CKQUORUM', 'm')),
    );
    const replicas = infos.filter((info) => replicaOn.test(info));
    return replicas.length === 2 && knows.every((one) => one.includes('OK 3 usable'));
  };
  return {
    name: 'Redis Sentinel',
    async prepare(round) {
      await until(isStable);
      const client = new Redis({
        name: 'm',
        sentinels: sentinels.map((port) => ({ host: '127.0.0.1', port })),
        sentinelRetryStrategy: () => 20,
        retryStrategy: () => 20,
        maxRetriesPerRequest: 0,
        enableOfflineQueue: false,
      });
      client.on('error', () => undefined);
      const infos = await Promise.all(data.map((port) => ask(port, 'INFO', 'replication')));
      const master = data[infos.findIndex((info) => info.includes('role:master'))]!;
      return {
        client,
        key: `probe:${round}`,
        kill: () => servers.kill(master),
        repair: async () => {
          await servers.again(master);
          await until(isStable);
        },
      };
    },
    stop: () => servers.stop(),
  };
}
