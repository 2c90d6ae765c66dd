// A cluster of processes with one role each: one keeps the metadata, one the data, and one serves clients of both protocols.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';

const dist = process.env['DIST_DIR'] ?? fileURLToPath(new URL('../../dist', import.meta.url));
const main = `${dist}/cli/main.js`;
const root = mkdtempSync(join(tmpdir(), 'polyrow-roles-'));
const roles = ['control', 'node', 'gateway'] as const;
type Role = (typeof roles)[number];

const children = new Map<Role, ChildProcess>();
const outputs = new Map<Role, string>();
/** Below those that the system gives away. Of each process: three for the others, and three after them. */
const firstPort = 10_000 + Math.floor(Math.random() * 9_000);
const ports = roles.map((_, i) => firstPort + 6 * i);
let redis: Redis;
let influx: string;

const directoryOf = (role: Role): string => join(root, role);

function start(role: Role): void {
  mkdirSync(directoryOf(role), { recursive: true });
  const listen = ports[roles.indexOf(role)]!;
  const seeds = role === 'control' ? [] : ['--cluster.seeds', `127.0.0.1:${ports[0]}`];
  const flags = [
    ...['--roles', role, '--data-dir', directoryOf(role), ...seeds],
    ...['--cluster.listen', `127.0.0.1:${listen}`, '--admin.port', String(listen + 3)],
    ...['--redis.port', String(listen + 4), '--influx.port', String(listen + 5)],
  ];
  const child = spawn(process.execPath, [main, 'start', ...flags], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.set(role, child);
  outputs.set(role, '');
  const hear = (chunk: Buffer): void =>
    void outputs.set(role, outputs.get(role)! + chunk.toString());
  child.stdout.on('data', hear);
  child.stderr.on('data', hear);
}

async function said(role: Role, text: string): Promise<void> {
  while (!outputs.get(role)!.includes(text)) {
    if (children.get(role)!.exitCode !== null) throw new Error(outputs.get(role)!);
    await pause(50);
  }
}

async function cli(role: Role, ...words: string[]): Promise<string> {
  const directory = ['--data-dir', directoryOf(role)];
  const { stdout } = await promisify(execFile)(process.execPath, [main, ...words, ...directory]);
  return stdout;
}

async function ask(path: string, body: string): Promise<string> {
  const response = await fetch(`${influx}${path}`, { method: 'POST', body });
  return `${response.status} ${await response.text()}`;
}

beforeAll(async () => {
  start('control');
  await said('control', 'polyrow cluster init');
  await cli('control', 'cluster', 'init');
  for (const role of ['node', 'gateway'] as const) {
    mkdirSync(directoryOf(role), { recursive: true });
    const secret = 'cluster-secret';
    copyFileSync(join(directoryOf('control'), secret), join(directoryOf(role), secret));
    start(role);
  }
  for (const role of roles) await said(role, 'Ready.');
  redis = new Redis(ports[2]! + 4, '127.0.0.1');
  influx = `http://127.0.0.1:${ports[2]! + 5}`;
});

afterAll(async () => {
  redis?.disconnect();
  for (const role of ['gateway', 'node', 'control'] as const) {
    const child = children.get(role);
    if (child === undefined || child.exitCode !== null) continue;
    const gone = once(child, 'close');
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), 20_000);
    await gone;
    clearTimeout(timer);
  }
  rmSync(root, { recursive: true, force: true });
});

interface Report {
  nodes: { roles: string[]; votes: boolean; replicas: number; addresses: Record<string, string> }[];
}

/** Retries while the gateway answers CLUSTERDOWN because the groups have no leaders yet. */
async function patient<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!String(error).includes('CLUSTERDOWN')) throw error;
      await pause(100);
    }
  }
}

test('the gateway forwards commands of Redis clients', async () => {
  expect(await patient(() => redis.set('a', '1'))).toBe('OK');
  expect(await redis.multi().incr('a').get('a').exec()).toEqual([
    [null, 2],
    [null, '2'],
  ]);
  const piped = redis.pipeline();
  for (let i = 0; i < 100; i++) piped.rpush('list', String(i));
  await piped.exec();
  expect(await redis.llen('list')).toBe(100);
  expect(await redis.eval("return redis.call('get', KEYS[1])", 1, 'a')).toBe('2');
  const waiting = redis.duplicate();
  const popped = waiting.blpop('queue', 0);
  await redis.rpush('queue', 'x');
  expect(await popped).toEqual(['queue', 'x']);
  waiting.disconnect();
});

test('the gateway forwards writes and queries of InfluxDB clients', async () => {
  const create = '/query?q=CREATE+DATABASE+d';
  while (!(await ask(create, '')).startsWith('200')) await pause(100);
  const points = Array.from({ length: 50 }, (_, i) => `m,host=h${i % 5} v=${i}i ${i + 1}`);
  while (!(await ask('/write?db=d', points.join('\n'))).startsWith('204')) await pause(100);
  const query = encodeURIComponent('SELECT count(v), sum(v) FROM m');
  expect(await ask(`/query?db=d&q=${query}`, '')).toContain(',50,1225]');
});

test('each process has its part, and no other', async () => {
  const report = JSON.parse(await cli('gateway', 'cluster', 'status', '--json')) as Report;
  // Which of the two that join is the second node, is left to chance.
  const nodes = roles.map((role) => report.nodes.find(({ roles: has }) => has.includes(role))!);
  expect(
    nodes.map(({ roles: has, votes, replicas }) => ({ has, votes, data: replicas > 0 })),
  ).toEqual([
    { has: ['control'], votes: true, data: false },
    { has: ['node'], votes: false, data: true },
    { has: ['gateway'], votes: false, data: false },
  ]);
  // Only gateways have ports for clients.
  expect(nodes.map(({ addresses }) => addresses['redisClients'] !== '')).toEqual([
    false,
    false,
    true,
  ]);
  for (const role of ['control', 'node'] as const) {
    const client = new Redis(ports[roles.indexOf(role)]! + 4, '127.0.0.1', {
      lazyConnect: true,
      retryStrategy: () => null,
    });
    client.on('error', () => undefined);
    await expect(client.connect()).rejects.toThrow();
  }
  expect(await cli('node', 'doctor').catch((error: Error) => error.message)).not.toContain('port');
});

test('rows of partitions are counted where they are, whichever node is asked', async () => {
  await cli('gateway', 'table', 'create', '2', '--partitions', '4');
  const client = redis.duplicate({ db: 2 });
  for (let i = 0; i < 40; i++) await patient(() => client.set(`key:${i}`, 'x'));
  for (const role of roles) {
    const { partitions } = JSON.parse(await cli(role, 'partition', 'list', '2', '--json')) as {
      partitions: { rows: number }[];
    };
    expect(partitions).toHaveLength(4);
    expect(partitions.reduce((sum, { rows }) => sum + rows, 0)).toBe(40);
  }
  client.disconnect();
});

test('data outlive a kill of the process that has them', async () => {
  const node = children.get('node')!;
  const gone = once(node, 'close');
  node.kill('SIGKILL');
  await gone;
  start('node');
  await said('node', 'Ready.');
  expect(await redis.get('a')).toBe('2');
});
