// Reads of a kv table that is much larger than its cache, with the I/O scheduler and without it:
// its cost for a tenant without competitors, and the latency of a tenant with occasional reads
// beside one that reads as fast as it can.

import { setTimeout as sleep } from 'node:timers/promises';
import { steadyRedisBenchmark, type RedisLoad } from './redis-benchmark.ts';
import { adminOf } from './support/admin.ts';
import { requireProgram, startPolyrow, type Running } from './support/processes.ts';
import { seededRandom } from './support/random.ts';
import { machine, printTable, save, type Report, type Row } from './support/report.ts';
import { request, RespClient } from './support/resp-client.ts';
import { median, percentile } from './support/statistics.ts';
import { compareSwitched } from './support/switched.ts';

interface KvReadsOptions {
  /** Pairs of windows of a tenant that is alone, and their length. */
  rounds: number;
  seconds: number;
  /** The same of two tenants. */
  besideRounds: number;
  besideSeconds: number;
  /** Keys of each tenant. */
  keys: number;
  valueBytes: number;
}

export const kvReadsDefaults: KvReadsOptions = {
  rounds: 100,
  seconds: 0.2,
  besideRounds: 10,
  besideSeconds: 3,
  keys: 200_000,
  valueBytes: 1000,
};

const setting = 'admission.fair-scheduling';
const cacheBytes = 16 * 1024 * 1024;
const values = 1000;
const [busy, quiet] = ['busy', 'quiet'];
const clients = 16;
const pauseMs = 1;
const settleMs = 200;
const target = 0.98;

/** Load of a busy tenant. */
const loads: readonly { name: string; load: Pick<RedisLoad, 'test' | 'pipeline'> }[] = [
  { name: 'GET P=1', load: { test: 'get', pipeline: 1 } },
  { name: 'GET P=16', load: { test: 'get', pipeline: 16 } },
  { name: 'MGET of 100', load: { test: manyKeys(100), pipeline: 1 } },
  { name: 'MGET of 2,000', load: { test: manyKeys(2000), pipeline: 1 } },
];

function manyKeys(count: number): string[] {
  return ['MGET', ...Array.from({ length: count }, () => 'key:__rand_int__')];
}

export async function kvReadsBench(options: KvReadsOptions, command: string): Promise<Report> {
  requireProgram('redis-benchmark', 'package redis-tools');
  const flags = ['--redis.default-model', 'kv', '--kv.cache-bytes', String(cacheBytes)];
  const server = await startPolyrow('no', flags);
  const rows: Row[] = [];
  try {
    const admin = await adminOf(server);
    for (const name of [busy, quiet]) {
      await admin.request('POST', '/v1/tenants', { name, password: name });
      await fill(server, name, options);
    }
    for (const load of loads) rows.push(...(await alone(server, load, options)));
    for (const load of loads) rows.push(...(await beside(server, load, options)));
  } finally {
    await server.stop();
  }
  const report: Report = {
    bench: 'kv-reads',
    command,
    date: new Date().toISOString().slice(0, 10),
    machine: machine(),
    peer: 'without the line',
    rounds: options.rounds,
    settings: { ...options, clients, cacheBytes },
    rows,
  };
  printTable(report);
  save(report, 'kv-reads');
  return report;
}

async function fill(
  server: Running,
  tenant: string,
  { keys, valueBytes }: KvReadsOptions,
): Promise<void> {
  const random = seededRandom(7);
  const some = Array.from({ length: values }, () => incompressible(valueBytes, random));
  const client = await login(server, tenant);
  await client.pipeline(keys, (i) => request('SET', keyName(i), some[i % values]!));
  client.close();
}

async function login(server: Running, tenant: string): Promise<RespClient> {
  const client = await RespClient.connect(server.port);
  await client.call('AUTH', tenant, tenant);
  return client;
}

/** As redis-benchmark names them. */
function keyName(i: number): string {
  return `key:${String(i).padStart(12, '0')}`;
}

function incompressible(bytes: number, random: () => number): string {
  return Array.from({ length: bytes }, () => String.fromCharCode(random() * 256)).join('');
}

async function alone(
  server: Running,
  { name, load }: (typeof loads)[number],
  { rounds, seconds, keys }: KvReadsOptions,
): Promise<Row[]> {
  return compareSwitched({
    name: `alone, ${name}`,
    unit: 'req/s',
    server,
    load: await steadyRedisBenchmark(server, { ...load, keys, clients, user: busy }),
    settings: [setting],
    rounds,
    seconds,
    target,
  });
}

interface Window {
  readMs: number[];
  /** Requests of the busy tenant. */
  perSecond: number;
}

async function beside(
  server: Running,
  { name, load }: (typeof loads)[number],
  { besideRounds, besideSeconds, keys }: KvReadsOptions,
): Promise<Row[]> {
  const admin = await adminOf(server);
  const flood = await steadyRedisBenchmark(server, { ...load, keys, clients, user: busy });
  const client = await login(server, quiet);
  const random = seededRandom(11);
  const windows: Record<'on' | 'off', Window[]> = { on: [], off: [] };
  try {
    for (let round = 0; round < besideRounds; round++) {
      for (const value of round % 2 === 0 ? (['on', 'off'] as const) : (['off', 'on'] as const)) {
        await admin.request('PATCH', '/v1/config', { [setting]: value });
        await sleep(settleMs);
        const [began, before] = [performance.now(), await flood.answered()];
        const readMs: number[] = [];
        while (performance.now() - began < besideSeconds * 1000) {
          const sentAt = performance.now();
          await client.call('STRLEN', keyName(Math.floor(random() * keys)));
          readMs.push(performance.now() - sentAt);
          await sleep(pauseMs);
        }
        const answered = (await flood.answered()) - before;
        const perSecond = (answered * 1000) / (performance.now() - began);
        windows[value].push({ readMs, perSecond });
      }
    }
  } finally {
    client.close();
    await flood.end();
  }
  const row = (
    what: string,
    unit: string,
    better: Row['better'],
    of: (run: Window) => number,
  ): Row => {
    const [ours, peer] = [median(windows.on.map(of)), median(windows.off.map(of))];
    return { name: `beside ${name}: ${what}`, unit, ours, peer, ratio: ours / peer, better };
  };
  return [
    row('p50', 'ms', 'lower', ({ readMs }) => percentile(readMs, 0.5)),
    row('p99', 'ms', 'lower', ({ readMs }) => percentile(readMs, 0.99)),
    row('what it does', 'req/s', 'higher', ({ perSecond }) => perSecond),
  ];
}
