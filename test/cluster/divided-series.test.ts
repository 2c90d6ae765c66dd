// Time series of a cluster in four partitions: nodes killed in the middle of writes, backups, what operators see.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import type { ClusterReport, GroupReport } from '../../control/cluster/cluster-report.ts';
import type { SeriesPartitions } from '../../control/metadata/tables.ts';
import { BackupScene } from '../backup/backup-commands.ts';
import { PolyrowCluster } from '../support/polyrow-cluster.ts';

let cluster: PolyrowCluster | undefined;
let scene: BackupScene | undefined;
let set = '';
afterEach(async () => {
  await scene?.remove();
  scene = undefined;
  await cluster?.remove();
  cluster = undefined;
  if (set !== '') rmSync(set, { recursive: true, force: true });
  set = '';
});

async function start(...flags: string[]): Promise<PolyrowCluster> {
  cluster = await PolyrowCluster.start(3, ['--', '--influx.partitions', '4', ...flags]);
  return cluster;
}

/** Sent again, as clients do, until it is answered otherwise than by 5xx. */
async function influx(node: number, path: string, parameters: object, body = ''): Promise<string> {
  const query = new URLSearchParams(parameters as Record<string, string>).toString();
  for (;;) {
    try {
      const url = `${cluster!.nodes[node]!.influx}${path}?${query}`;
      const response = await fetch(url, { method: 'POST', body });
      const text = await response.text();
      if (response.ok && !text.includes('"error"')) return text;
      if (response.ok || response.status < 500) throw new Refused(text);
    } catch (error) {
      // A node that is killed is started again.
      if (error instanceof Refused) throw error;
    }
    await pause(100);
  }
}

class Refused extends Error {}

async function count(node: number): Promise<number> {
  const text = await influx(node, '/query', { db: 'd', epoch: 'ns', q: 'SELECT count(v) FROM m' });
  return Number(/\[0,(\d+)\]/.exec(text)?.[1] ?? 0);
}

/** The last line of a command's JSON, asked at a node. */
async function answer<T>(node: number, ...words: string[]): Promise<T> {
  const lines = (await cluster!.cliAt(node, ...words, '--json')).trim().split('\n');
  return JSON.parse(lines.at(-1)!) as T;
}

async function seriesGroups(): Promise<GroupReport[]> {
  const { groups } = await answer<ClusterReport>(0, 'cluster', 'status');
  return groups.filter(({ model }) => model === 'tsm');
}

test('leaders are killed in the middle of writes: all that was acknowledged is there, once', async () => {
  await start();
  const groups = await seriesGroups();
  expect(groups.map(({ series }) => series)).toEqual(
    [0, 1, 2, 3].map((partition) => ({ partition, of: 4 })),
  );
  await influx(0, '/query', { q: 'CREATE DATABASE d' });
  let written = 0;
  let isOver = false;
  // Points without a time are stamped once: a body that is sent again stores them again, so these have times.
  const writers = [0, 1, 2].map(async (node) => {
    while (!isOver) {
      const lines = Array.from({ length: 20 }, () => `m,s=${written % 50} v=1 ${++written}`);
      await influx(node, '/write', { db: 'd' }, lines.join('\n'));
    }
  });
  for (const { group } of groups.slice(0, 2)) {
    const { leader } = (await seriesGroups()).find((one) => one.group === group)!;
    cluster!.kill(leader - 1);
    await pause(3000);
  }
  isOver = true;
  await Promise.all(writers);
  await cluster!.settled();
  for (const node of [0, 1, 2]) expect(await count(node)).toBe(written);

  const { partitions } = await answer<SeriesPartitions>(1, 'partition', 'list', 'series:d');
  expect(partitions.map(({ number }) => number)).toEqual([1, 2, 3, 4]);
  expect(partitions.reduce((sum, { series = 0 }) => sum + series, 0)).toBe(50);
  expect(await cluster!.cli('cluster', 'status', '--groups')).toMatch(/tsm +4 of 4/);
  expect(await cluster!.cli('doctor')).not.toContain('error');
  const response = await fetch(`${cluster!.nodes[0]!.admin}/metrics`);
  expect(await response.text()).toMatch(/series_count\{[^}]*group="\d+",partition="3"[^}]*\}/);
}, 600_000);

test('a query at one node is shown and killed through another', async () => {
  await start();
  await influx(0, '/query', { q: 'CREATE DATABASE d' });
  const text = 'x'.repeat(1000);
  for (let body = 0; body < 10; body++) {
    const lines = Array.from({ length: 2000 }, (_, n) => `m s="${text}" ${body * 2000 + n + 1}`);
    await influx(0, '/write', { db: 'd' }, lines.join('\n'));
  }
  // Its answer is not read: it takes as long as its client likes.
  const reads = new URLSearchParams({ db: 'd', q: 'SELECT s FROM m', chunked: 'true' });
  const response = await fetch(`${cluster!.nodes[2]!.influx}/query?${reads.toString()}`);
  const shown = await influx(0, '/query', { q: 'SHOW QUERIES' });
  const { results } = JSON.parse(shown) as {
    results: [{ series: [{ columns: string[]; values: (string | number)[][] }] }];
  };
  const [{ columns, values }] = results[0].series;
  expect(columns.slice(0, 2)).toEqual(['qid', 'query']);
  const [id = 0] = values.find(([, query]) => query === 'SELECT s FROM m')!;
  expect(Math.floor(Number(id) / 2 ** 32)).toBe(cluster!.nodes[2]!.id);
  await influx(1, '/query', { q: `KILL QUERY ${id}` });
  expect(await response.text()).toContain('query interrupted');
  await expect(influx(1, '/query', { q: `KILL QUERY ${id}` })).rejects.toThrow('no such query id');
}, 600_000);

test('a backup through one node is restored through another, onto groups that lack a node', async () => {
  await start('--cluster.replicas', '2');
  set = mkdtempSync(join(tmpdir(), 'polyrow-divided-set-'));
  await influx(0, '/query', { q: 'CREATE DATABASE d' });
  const policy = 'CREATE RETENTION POLICY p ON d DURATION 0s REPLICATION 1';
  await influx(1, '/query', { q: policy });
  const lines = Array.from({ length: 500 }, (_, n) => `m,s=${n % 50} v=${n} ${n + 1}`);
  await influx(2, '/write', { db: 'd' }, lines.join('\n'));
  await influx(1, '/write', { db: 'd', rp: 'p' }, 'other v=1 1');
  const reads = { db: 'd', q: 'SELECT * FROM m; SELECT * FROM p.other' };
  const all = (node: number): Promise<string> => influx(node, '/query', reads);
  const pointsOf = async (url: string): Promise<string> => {
    const response = await fetch(`${url}/query?${new URLSearchParams(reads).toString()}`);
    return await response.text();
  };
  const before = await all(0);
  await answer(0, 'backup', '--to', set);
  await cluster!.cliAt(0, 'verify', set);
  await influx(2, '/query', { q: 'DROP DATABASE d' });
  await answer(1, 'restore', set);
  for (const node of [0, 1, 2]) expect(await all(node)).toBe(before);

  // To an undivided server, and back.
  scene = new BackupScene();
  const single = await scene.server();
  await scene.answer(single, 'restore', set);
  expect(await pointsOf(single.influx)).toBe(before);
  await scene.backup(single);
  await influx(2, '/query', { q: 'DROP DATABASE d' });
  await answer(1, 'restore', scene.set);
  for (const node of [0, 1, 2]) expect(await all(node)).toBe(before);
  const { partitions } = await answer<SeriesPartitions>(1, 'partition', 'list', 'series:d');
  // Of partitions without a replica at the node the number is not known.
  expect(partitions.some(({ series }) => series === 0)).toBe(false);

  // It can be changed as before.
  await influx(0, '/query', { db: 'd', q: 'DROP RETENTION POLICY p ON d' });
  await influx(2, '/write', { db: 'd' }, 'm,s=new v=1 1000');
  for (const node of [0, 1, 2]) expect(await count(node)).toBe(501);
}, 600_000);
