// redis-benchmark against Polyrow and redis-server in one run: for every test and pipeline depth, rounds
// that alternate between the two, and the ratio of the medians.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { output } from './support/output.ts';
import {
  requireProgram,
  startPolyrow,
  startRedis,
  type Fsync,
  type Running,
} from './support/processes.ts';
import { commandTests, quickTests } from './redis-tests.ts';
import { cpuNanoseconds } from './support/process-usage.ts';
import { RespClient } from './support/resp-client.ts';
import { median } from './support/statistics.ts';
import { machine, printTable, save, type Report, type Row } from './support/report.ts';
import type { SteadyLoad } from './support/switched.ts';

/** More requests than any measurement completes. */
const endless = 2_000_000_000;

interface RedisBenchOptions {
  rounds: number;
  fsync: Fsync;
  pipelines: number[];
  tests: string[];
  /** Seconds that one round of one test should take, about. */
  seconds: number;
  keys: number;
  /** Name of the files of results. */
  name: string;
}

export const redisBenchDefaults: Omit<RedisBenchOptions, 'name'> = {
  rounds: 5,
  fsync: 'everysec',
  pipelines: [1, 16, 64],
  tests: quickTests,
  seconds: 1.5,
  keys: 100_000,
};

interface Measured {
  throughput: number;
  p50Ms: number;
  p99Ms: number;
}

export interface RedisLoad {
  /** A test of redis-benchmark, or a command in whose words `__rand_int__` stands for a random number. */
  test: string | readonly string[];
  pipeline: number;
  /** Number of random keys. */
  keys: number;
  /** User whose password is its name; the default user if not given. */
  user?: string;
  /** 50 if not given. */
  clients?: number;
}

function argumentsOf(
  server: Running,
  { test, pipeline, keys, user, clients = 50 }: RedisLoad,
  requests: number,
): string[] {
  const args = ['-p', String(server.port), '-c', String(clients), '-d', '100'];
  args.push('-P', String(pipeline), '-n', String(requests), '-r', String(keys), '--csv');
  if (user !== undefined) args.push('--user', user, '-a', user);
  if (typeof test === 'string') args.push('-t', test);
  else args.push(...test);
  return args;
}

/** Runs one test of redis-benchmark with 50 clients and values of 100 B. */
export async function runRedisBenchmark(
  server: Running,
  load: RedisLoad,
  requests: number,
): Promise<Measured> {
  const text = await output('redis-benchmark', argumentsOf(server, load, requests));
  const line = text.split('\n').find((one) => /^"(?!test)/.test(one));
  if (line === undefined) throw new Error(`redis-benchmark said: ${text}`);
  const cells = line.split(',').map((cell) => cell.replaceAll('"', ''));
  return { throughput: Number(cells[1]), p50Ms: Number(cells[4]), p99Ms: Number(cells[6]) };
}

/** The same, without an end of its own. */
export async function steadyRedisBenchmark(server: Running, load: RedisLoad): Promise<SteadyLoad> {
  const counter = await RespClient.connect(server.port);
  if (load.user !== undefined) await counter.call('AUTH', load.user, load.user);
  const child = spawn('redis-benchmark', argumentsOf(server, load, endless), { stdio: 'ignore' });
  const gone = once(child, 'exit');
  return {
    async answered() {
      if (child.exitCode !== null) throw new Error(`redis-benchmark ended with ${child.exitCode}`);
      const stats = await counter.call('INFO', 'stats');
      return Number(/^total_commands_processed:(\d+)/m.exec(stats)?.[1]);
    },
    async end() {
      counter.close();
      child.kill();
      await gone;
    },
  };
}

/** Measurements of a round for one of the two servers. */
interface Round extends Measured {
  /** Processor time of the server a command, in microseconds. */
  cpuMicros: number;
}

/** One round of a test of `commandTests`, or of one that redis-benchmark has. */
async function runRound(
  server: Running,
  test: string,
  load: Omit<RedisLoad, 'test'>,
  requests: number,
): Promise<Round> {
  const made = commandTests.get(test);
  await setUp(server, test);
  if (made?.filler !== undefined) {
    await runRedisBenchmark(server, { test: made.filler, ...load, pipeline: 64 }, requests);
  }
  const before = cpuNanoseconds(server.pid);
  const all = [runRedisBenchmark(server, { test: made?.words ?? test, ...load }, requests)];
  if (made?.feeder !== undefined) {
    all.push(runRedisBenchmark(server, { test: made.feeder, ...load }, requests));
  }
  const [measured] = await Promise.all(all);
  const cpuMicros = (cpuNanoseconds(server.pid) - before) / 1000 / requests / all.length;
  return { ...measured!, cpuMicros };
}

async function setUp(server: Running, test: string): Promise<void> {
  const client = await RespClient.connect(server.port);
  for (const words of commandTests.get(test)?.setup ?? []) await client.call(...words);
  client.close();
}

/** The rows of one test: ours and the peer's, from alternating rounds. */
async function measureTest(
  ours: Running,
  peer: Running,
  test: string,
  pipeline: number,
  options: RedisBenchOptions,
): Promise<Row[]> {
  const load = { pipeline, keys: options.keys };
  // A first round warms both up and tells how many requests fill the time asked for.
  const first = 20_000 * Math.min(pipeline, 8);
  const probe = await runRound(peer, test, load, first);
  await runRound(ours, test, load, first);
  const requests = Math.max(20_000, Math.round(probe.throughput * options.seconds));
  const mine: Round[] = [];
  const theirs: Round[] = [];
  for (let round = 0; round < options.rounds; round++) {
    mine.push(await runRound(ours, test, load, requests));
    theirs.push(await runRound(peer, test, load, requests));
    process.stderr.write(`\r${test} P=${pipeline}: round ${round + 1} of ${options.rounds}   `);
  }
  const name = `${test.toUpperCase()} P=${pipeline}`;
  const row = (
    what: keyof Round,
    label: string,
    unit: string,
    better: Row['better'],
    target?: number,
  ): Row => {
    const [a, b] = [median(mine.map((one) => one[what])), median(theirs.map((one) => one[what]))];
    const values = { name: label, unit, ours: a, peer: b, ratio: a / b, better };
    return target === undefined ? values : { ...values, target };
  };
  const rows = [
    row('throughput', name, 'req/s', 'higher', pipeline === 1 ? 0.95 : 0.8),
    row('p99Ms', `${name} p99`, 'ms', 'lower'),
    row('cpuMicros', `${name} processor time`, 'µs', 'lower', pipeline === 1 ? 1.1 : 1),
  ];
  const [throughput, , cpu] = rows;
  process.stderr.write(
    `\r${name}: ${throughput!.ratio.toFixed(3)}, processor time ${cpu!.ratio.toFixed(3)}\n`,
  );
  return rows;
}

export async function redisBench(options: RedisBenchOptions, command: string): Promise<Report> {
  requireProgram('redis-server', 'package redis-server');
  requireProgram('redis-benchmark', 'package redis-tools');
  const peer = await startRedis(options.fsync);
  const ours = await startPolyrow(options.fsync);
  const rows: Row[] = [];
  try {
    for (const pipeline of options.pipelines) {
      for (const test of options.tests) {
        rows.push(...(await measureTest(ours, peer, test, pipeline, options)));
      }
    }
  } finally {
    await ours.stop();
    await peer.stop();
  }
  const report: Report = {
    bench: 'redis-benchmark',
    command,
    date: new Date().toISOString().slice(0, 10),
    machine: machine(),
    peer: 'redis-server',
    rounds: options.rounds,
    settings: { clients: 50, valueBytes: 100, fsync: options.fsync, keys: options.keys },
    rows,
  };
  printTable(report);
  save(report, options.name);
  return report;
}
