// The directory of a single server becomes that of a cluster's first node: its rows, points and tenants are the cluster's,
// also when the node is killed at each step of taking them over.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterEach, expect, test } from 'vitest';

const dist = process.env['DIST_DIR'] ?? fileURLToPath(new URL('../../dist', import.meta.url));
const directory = mkdtempSync(join(tmpdir(), 'polyrow-take-over-'));

const first = 20_000 + Math.floor(Math.random() * 10_000);
// The command asks the same port after the cluster was formed.
const ports = ['redis', 'influx', 'admin'].flatMap((part, i) => [
  `--${part}.port`,
  String(first + 3 + i),
]);

/** 1 is of model kv, 2 is divided. */
const databases = [0, 1, 2];

let server: ChildProcess | undefined;
let output = '';
afterEach(() => {
  server?.kill('SIGKILL');
  rmSync(directory, { recursive: true, force: true });
});

function polyrow(...words: string[]): ChildProcess {
  const child = spawn(
    process.execPath,
    [`${dist}/cli/main.js`, ...words, '--data-dir', directory],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  return child;
}

function start(...flags: string[]): void {
  output = '';
  server = polyrow('start', ...ports, ...flags);
}

/** Resolves when the server serves: to where. */
async function served(): Promise<{ redis: number; influx: string }> {
  while (!output.includes('Ready.')) {
    if (server!.exitCode !== null) throw new Error(output);
    await pause(50);
  }
  const [, redis] = /redis:\/\/127\.0\.0\.1:(\d+)/.exec(output)!;
  return { redis: Number(redis), influx: /influx\s+(http:\S+)/.exec(output)![1]! };
}

async function stop(signal: NodeJS.Signals): Promise<void> {
  const gone = once(server!, 'close');
  server!.kill(signal);
  await gone;
}

async function run(...words: string[]): Promise<number> {
  const [code] = (await once(polyrow(...words), 'close')) as [number];
  return code;
}

async function influx(url: string, query: string): Promise<string> {
  const response = await fetch(`${url}/query?db=d&q=${encodeURIComponent(query)}`, {
    method: 'POST',
  });
  return await response.text();
}

async function contents(port: number, url: string): Promise<unknown> {
  const clients = databases.map((db) => new Redis(port, '127.0.0.1', { db }));
  const rows = clients.map(async (client) => {
    const keys = (await client.keys('*')).sort();
    // Keys of several partitions are asked for one by one.
    const reads = client.pipeline();
    for (const key of keys) if (key !== 'list') reads.get(key);
    return [keys, await reads.exec()];
  });
  const all = [...(await Promise.all(rows)), await clients[0]!.lrange('list', 0, -1)];
  for (const client of clients) client.disconnect();
  return [all, await influx(url, 'SELECT * FROM m')];
}

const isTaken = (): boolean => !existsSync(join(directory, 'cluster/take-over'));
/** The cluster is formed; the backup is being made; it is whole; all is the cluster's. A quick node may be at a later one. */
const steps: (() => boolean)[] = [
  () => true,
  () => backups().length > 0 || isTaken(),
  () => backups().some((name) => !name.endsWith('.partial')) || isTaken(),
  isTaken,
];

/** Whole ones, and those that are being made. */
function backups(): string[] {
  const set = join(directory, 'cluster/carried');
  return existsSync(set) ? readdirSync(set) : [];
}

test('a single server becomes the first node, killed at each step on its way', async () => {
  start();
  let at = await served();
  expect(await run('table', 'create', '1', '--model', 'kv')).toBe(0);
  expect(await run('table', 'create', '2', '--partitions', '3')).toBe(0);
  expect(await run('tenant', 'create', 'shop')).toBe(0);
  for (const db of databases) {
    const client = new Redis(at.redis, '127.0.0.1', { db });
    const writes = client.pipeline();
    for (let i = 0; i < 2000; i++) writes.set(`key:${i}`, `${db} ${i}`);
    if (db === 0) writes.rpush('list', 'a', 'b', 'c');
    await writes.exec();
    client.disconnect();
  }
  await influx(at.influx, 'CREATE DATABASE d');
  const lines = Array.from({ length: 500 }, (_, i) => `m,h=${i % 5} v=${i} ${1e18 + i}`);
  await fetch(`${at.influx}/write?db=d`, { method: 'POST', body: lines.join('\n') });
  const before = await contents(at.redis, at.influx);
  await stop('SIGTERM');

  start('--cluster.listen', `127.0.0.1:${first}`);
  // The answer may be lost on a busy machine; then the node says that it is in one.
  while (
    (await run('cluster', 'init', '--no-wait')) !== 0 &&
    !output.includes('in a cluster already')
  ) {
    await pause(100);
  }
  for (const isReached of steps) {
    while (!isReached()) {
      if (server!.exitCode !== null) throw new Error(output);
      await pause(5);
    }
    await stop('SIGKILL');
    start('--cluster.listen', `127.0.0.1:${first}`);
  }
  at = await served();
  expect(await contents(at.redis, at.influx)).toEqual(before);
  expect(existsSync(join(directory, 'cluster/carried'))).toBe(false);
  expect(existsSync(join(directory, 'redis/memory'))).toBe(false);
  const headers = {
    authorization: `Bearer ${readFileSync(join(directory, 'admin-token'), 'utf8').trim()}`,
  };
  const admin = readFileSync(join(directory, 'admin-endpoint'), 'utf8').trim();
  expect(await (await fetch(`${admin}/v1/tenants`, { headers })).text()).toContain('"shop"');
});
