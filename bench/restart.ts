// How long a server with data on disk takes from the start of its process to its first answer, after an
// orderly end and after a kill, beside redis-server with AOF.

import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import {
  requireProgram,
  startPolyrow,
  startRedis,
  type Fsync,
  type Running,
  type StartOptions,
} from './support/processes.ts';
import { machine, printTable, save, type Report, type Row } from './support/report.ts';
import { request, RespClient } from './support/resp-client.ts';
import { median } from './support/statistics.ts';

interface RestartOptions {
  rounds: number;
  keys: number;
  fsync: Fsync;
}

export const restartDefaults: RestartOptions = { rounds: 5, keys: 1_000_000, fsync: 'everysec' };

const signals = ['SIGTERM', 'SIGKILL'] as const;
type Signal = (typeof signals)[number];
type Start = (options: StartOptions) => Promise<Running>;

const valueBytes = 100;
// A server that was killed says so when it starts again.
const quiet = ['--log.level', 'error'];
// Time for the last writes, and for a server's background work after a load, such as rewriting its
// log.
const settleMs = 1500;

interface Measured {
  /** Seconds to the first answer of a server without data, and of one with it. */
  emptySeconds: number;
  seconds: number;
  /** Megabytes read from disk for each second that the data made the start longer. */
  recoveryMegabytes: number;
}

function keyAt(i: number): string {
  return `key:${String(i).padStart(12, '0')}`;
}

function valueAt(i: number): string {
  return String(i).padStart(valueBytes, '0');
}

async function timed(start: () => Promise<Running>): Promise<{ server: Running; seconds: number }> {
  const startedAt = performance.now();
  const server = await start();
  return { server, seconds: (performance.now() - startedAt) / 1000 };
}

async function measure(start: Start, keys: number, signal: Signal): Promise<Measured> {
  const empty = await timed(() => start({ probe: { request: 'GET none', isReady: isAnswered } }));
  const { directory } = empty.server;
  try {
    await load(empty.server, keys);
  } catch (error) {
    await empty.server.stop();
    throw error;
  }
  await empty.server.end(signal);
  const bytes = dataBytes(directory);
  const probe = { request: `GET ${keyAt(keys - 1)}`, isReady: isAnswered };
  const restarted = await timed(() => start({ directory, probe }));
  try {
    await expectKeys(restarted.server, keys);
  } finally {
    await restarted.server.stop();
  }
  const recoverySeconds = Math.max(0.001, restarted.seconds - empty.seconds);
  return {
    emptySeconds: empty.seconds,
    seconds: restarted.seconds,
    recoveryMegabytes: bytes / 1e6 / recoverySeconds,
  };
}

/** A value or the lack of one, but not the error of a server that is still loading. */
function isAnswered(answer: string): boolean {
  return answer.startsWith('$');
}

async function load(server: Running, keys: number): Promise<void> {
  const client = await RespClient.connect(server.port);
  await client.pipeline(keys, (i) => request('SET', keyAt(i), valueAt(i)));
  do {
    await new Promise((resolve) => setTimeout(resolve, settleMs));
  } while (/^aof_rewrite_in_progress:1/m.test(await client.call('INFO', 'persistence')));
  client.close();
}

async function expectKeys(server: Running, keys: number): Promise<void> {
  const client = await RespClient.connect(server.port);
  const found = Number(await client.call('DBSIZE'));
  const last = await client.call('GET', keyAt(keys - 1));
  client.close();
  if (last !== valueAt(keys - 1)) throw new Error(`${server.name} has lost the last key`);
  if (found !== keys) throw new Error(`${server.name} has ${found} of ${keys} keys back`);
}

/** Logs and snapshots, without the room that a log keeps for a full disk. */
function dataBytes(directory: string): number {
  let bytes = 0;
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || entry.name.includes('ballast')) continue;
    bytes += statSync(join(entry.parentPath, entry.name)).size;
  }
  return bytes;
}

function rowsOf(signal: Signal, mine: readonly Measured[], theirs: readonly Measured[]): Row[] {
  const row = (
    name: string,
    unit: string,
    better: Row['better'],
    of: (m: Measured) => number,
  ): Row => {
    const ours = median(mine.map(of));
    const peer = median(theirs.map(of));
    return { name: `${name} after ${signal}`, unit, ours, peer, ratio: ours / peer, better };
  };
  return [
    row('first answer', 's', 'lower', (m) => m.seconds),
    row('recovery', 'MB/s', 'higher', (m) => m.recoveryMegabytes),
  ];
}

export async function restartBench(options: RestartOptions, command: string): Promise<Report> {
  requireProgram('redis-server', 'package redis-server');
  const { rounds, keys, fsync } = options;
  const startOurs: Start = (start) => startPolyrow(fsync, quiet, [], start);
  const startPeer: Start = (start) => startRedis(fsync, start);
  const rows: Row[] = [];
  const emptyOurs: number[] = [];
  const emptyPeer: number[] = [];
  for (const signal of signals) {
    const mine: Measured[] = [];
    const theirs: Measured[] = [];
    for (let round = 0; round < rounds; round++) {
      mine.push(await measure(startOurs, keys, signal));
      theirs.push(await measure(startPeer, keys, signal));
      process.stderr.write(`\r${signal}: round ${round + 1} of ${rounds}   `);
    }
    emptyOurs.push(...mine.map(({ emptySeconds }) => emptySeconds));
    emptyPeer.push(...theirs.map(({ emptySeconds }) => emptySeconds));
    const added = rowsOf(signal, mine, theirs);
    rows.push(...added);
    process.stderr.write(`\r${signal}: ${added[0]!.ratio.toFixed(3)}                    \n`);
  }
  const ours = median(emptyOurs);
  const peer = median(emptyPeer);
  const name = 'first answer, no data';
  rows.push({ name, unit: 's', ours, peer, ratio: ours / peer, better: 'lower' });
  const report: Report = {
    bench: 'restart',
    command,
    date: new Date().toISOString().slice(0, 10),
    machine: machine(),
    peer: 'redis-server',
    rounds,
    settings: { keys, valueBytes, fsync },
    rows,
  };
  printTable(report);
  save(report, 'restart');
  return report;
}
