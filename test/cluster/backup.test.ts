// Backups and restores of a cluster through any of its nodes. Groups have two replicas on three nodes, so every node lacks
// some: their parts go to, and come from, the directory of the node that was asked.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterEach, expect, test } from 'vitest';
import type { BackupResult } from '../../server/backup/backup-run.ts';
import type { RestoreResult } from '../../server/backup/restore-run.ts';
import { PolyrowCluster } from '../support/polyrow-cluster.ts';

let cluster: PolyrowCluster | undefined;
let set = '';
const clients: Redis[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) client.disconnect();
  await cluster?.remove();
  cluster = undefined;
  rmSync(set, { recursive: true, force: true });
});

function connect(node: number, db: number): Redis {
  const client = new Redis(cluster!.redisPort(node), '127.0.0.1', { db });
  clients.push(client);
  return client;
}

/** The last line of a command's JSON, asked at a node. */
async function answer<T>(node: number, ...words: string[]): Promise<T> {
  const lines = (await cluster!.cliAt(node, ...words, '--json')).trim().split('\n');
  return JSON.parse(lines.at(-1)!) as T;
}

async function influx(node: number, path: string, parameters: object, body = ''): Promise<unknown> {
  const query = new URLSearchParams(parameters as Record<string, string>).toString();
  const method = { method: 'POST', body };
  for (;;) {
    const response = await fetch(`${cluster!.nodes[node]!.influx}${path}?${query}`, method);
    const text = await response.text();
    if (response.ok) return text === '' ? undefined : JSON.parse(text);
    // A tenant's series have no leader for a moment.
    if (response.status < 500) throw new Error(text);
    await pause(100);
  }
}

async function fill(tag: string, count: number): Promise<void> {
  for (const db of [0, 1]) {
    const client = connect(0, db);
    const writes = client.pipeline();
    for (let i = 0; i < count; i++) writes.set(`${tag}:${i}`, `${db} ${i} ${'x'.repeat(500)}`);
    writes.rpush(`${tag}:list`, ...Array.from({ length: 100 }, (_, i) => i));
    for (const [error] of (await writes.exec())!) if (error !== null) throw error;
  }
  const lines = Array.from({ length: count }, (_, i) => `m,h=${i % 5} ${tag}=${i} ${1e18 + i}`);
  await influx(1, '/write', { db: 'd' }, lines.join('\n'));
}

/** All rows of both tables and all points, as a node serves them. */
async function contents(node: number): Promise<unknown[]> {
  const all: unknown[] = [await influx(node, '/query', { db: 'd', q: 'SELECT * FROM m' })];
  for (const db of [0, 1]) {
    const client = connect(node, db);
    const keys = (await client.keys('*')).sort();
    for (const key of keys) {
      const isList = key.endsWith('list');
      all.push([db, key, isList ? await client.lrange(key, 0, -1) : await client.get(key)]);
    }
  }
  return all;
}

test('a backup is made through one node, gone on with through another, and restored through a third', async () => {
  set = mkdtempSync(join(tmpdir(), 'polyrow-cluster-set-'));
  cluster = await PolyrowCluster.start(3, ['--', '--cluster.replicas', '2']);
  await cluster.cliAt(0, 'table', 'create', '1', '--model', 'kv', '--partitions', '4');
  await influx(0, '/query', { q: 'CREATE DATABASE d' });
  await cluster.settled();
  await fill('a', 200);

  const full = await answer<BackupResult>(0, 'backup', '--to', set);
  expect(full.kind).toBe('full');
  expect(full.parts.reduce((sum, { rows = 0 }) => sum + rows, 0)).toBe(402);
  await fill('b', 100);
  const before = await contents(1);
  const next = await answer<BackupResult>(1, 'backup', '--to', set, '--incremental');
  expect(next).toMatchObject({ kind: 'incremental', parent: full.id });
  // Every replica has kept the log since.
  expect(new Set(next.parts.map(({ kind }) => kind))).toEqual(new Set(['entries', 'shards']));
  await cluster.cliAt(0, 'verify', set);

  await connect(2, 0).flushall();
  await influx(2, '/query', { q: 'DROP DATABASE d' });
  const { tenants } = await answer<RestoreResult>(2, 'restore', set);
  expect(tenants[0]!.tables.map(({ database, rows }) => [database, rows])).toEqual([
    [0, 302],
    [1, 302],
  ]);
  for (const node of [0, 1, 2]) expect(await contents(node)).toEqual(before);

  // The log does not tell of what was restored.
  const again = await answer<BackupResult>(1, 'backup', '--to', set, '--incremental');
  expect(again.parts.find(({ model }) => model === 'memory')).toMatchObject({ kind: 'all' });
});
