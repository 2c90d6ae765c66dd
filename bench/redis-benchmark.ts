// redis-benchmark against Polyrow and redis-server in one run: for every test and pipeline depth, rounds
// that alternate between the two, and the ratio of the medians.

import { createHash } from 'node:crypto';
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
import { RespClient } from './support/resp-client.ts';
import { median } from './support/statistics.ts';
import { machine, printTable, save, type Report, type Row } from './support/report.ts';
import type { SteadyLoad } from './support/switched.ts';

/** Requests that no measurement comes to the end of. */
const endless = 2_000_000_000;

/** Tests that redis-benchmark does not have. */
const commands: Readonly<Record<string, readonly string[]>> = {
  xadd: ['XADD', 'stream:bench', '*', 'field', 'value:__rand_int__'],
};

const quickTests = ['set', 'get', 'incr', 'lpush', 'rpop', 'sadd', 'hset', 'zadd', 'xadd'];

/** Tests that redis-benchmark does not have: what is run first on both servers, and the command. */
const commandTests = new Map<string, { setup: readonly string[][]; words: readonly string[] }>([
  ['pfadd', { setup: [['DEL', 'sketch']], words: ['PFADD', 'sketch', '__rand_int__'] }],
  ['bitcount', { setup: [['SETRANGE', 'bits', '65535', 'x']], words: ['BITCOUNT', 'bits'] }],
  [
    'eval',
    scriptTest(
      `redis.call('set', KEYS[1], ARGV[1]) redis.call('get', KEYS[1]) redis.call('incr', 'n')
      redis.call('hset', 'h', 'f', ARGV[1]) redis.call('hget', 'h', 'f') redis.call('zadd', 'z', 1, 'm')
      redis.call('zscore', 'z', 'm') redis.call('sadd', 's', 'm') redis.call('sismember', 's', 'm')
      return redis.call('get', KEYS[1])`,
    ),
  ],
  ['eval-loop', scriptTest('local x = 0 for i = 1, 10000 do x = x + i end return x')],
  [
    'geosearch',
    {
      setup: [['GEOADD', 'places', ...placesAround(10_000)]],
      words: 'GEOSEARCH places FROMLONLAT 15 37 BYRADIUS 20 km ASC'.split(' '),
    },
  ],
]);

/** A test that runs a script by its digest: redis-benchmark's output has the words in it, which commas would break. */
function scriptTest(script: string): { setup: string[][]; words: string[] } {
  const sha = createHash('sha1').update(script).digest('hex');
  return { setup: [['SCRIPT', 'LOAD', script]], words: ['EVALSHA', sha, '1', 'key', 'value'] };
}

/** Longitudes, latitudes and names, evenly over 10 by 10 degrees around Sicily. */
function placesAround(count: number): string[] {
  const side = Math.sqrt(count);
  return Array.from({ length: count }, (_, i) => {
    const longitude = 10 + (10 * (i % side)) / side;
    const latitude = 32 + (10 * Math.floor(i / side)) / side;
    return [longitude.toFixed(6), latitude.toFixed(6), `place ${i}`];
  }).flat();
}

async function setUp(server: Running, test: string): Promise<void> {
  const client = await RespClient.connect(server.port);
  for (const words of commandTests.get(test)?.setup ?? []) await client.call(...words);
  client.close();
}

interface RedisBenchOptions {
  rounds: number;
  fsync: Fsync;
  pipelines: number[];
  tests: string[];
  /** Seconds that one round of one test should take, about. */
  seconds: number;
  keys: number;
}

export const redisBenchDefaults: RedisBenchOptions = {
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
  /** Of the random keys. */
  keys: number;
  /** Whose password is its name; the default user if not given. */
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
  const words = typeof test === 'string' ? commands[test] : test;
  if (words === undefined) args.push('-t', String(test));
  else args.push(...words);
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

export async function redisBench(options: RedisBenchOptions, command: string): Promise<Report> {
  requireProgram('redis-server', 'package redis-server');
  requireProgram('redis-benchmark', 'package redis-tools');
  const peer = await startRedis(options.fsync);
  const ours = await startPolyrow(options.fsync);
  const rows: Row[] = [];
  try {
    for (const pipeline of options.pipelines) {
      for (const test of options.tests) {
        // A first round warms both up and tells how many requests fill the time asked for.
        const words = commandTests.get(test)?.words;
        const load = { test: words ?? test, pipeline, keys: options.keys };
        await setUp(peer, test);
        await setUp(ours, test);
        const first = 20_000 * Math.min(pipeline, 8);
        const probe = await runRedisBenchmark(peer, load, first);
        await runRedisBenchmark(ours, load, first);
        const requests = Math.max(20_000, Math.round(probe.throughput * options.seconds));
        const mine: Measured[] = [];
        const theirs: Measured[] = [];
        for (let round = 0; round < options.rounds; round++) {
          mine.push(await runRedisBenchmark(ours, load, requests));
          theirs.push(await runRedisBenchmark(peer, load, requests));
          process.stderr.write(
            `\r${test} P=${pipeline}: round ${round + 1} of ${options.rounds}   `,
          );
        }
        const a = median(mine.map((m) => m.throughput));
        const b = median(theirs.map((m) => m.throughput));
        const name = `${test.toUpperCase()} P=${pipeline}`;
        rows.push({
          name,
          unit: 'req/s',
          ours: a,
          peer: b,
          ratio: a / b,
          better: 'higher',
          target: pipeline === 1 ? 0.95 : 0.8,
        });
        const p99a = median(mine.map((m) => m.p99Ms));
        const p99b = median(theirs.map((m) => m.p99Ms));
        rows.push({
          name: `${name} p99`,
          unit: 'ms',
          ours: p99a,
          peer: p99b,
          ratio: p99a / p99b,
          better: 'lower',
        });
        process.stderr.write(`\r${name}: ${(a / b).toFixed(3)}                      \n`);
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
  save(report, `redis-${options.fsync}`);
  return report;
}
