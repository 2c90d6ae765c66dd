// A group of three beside a single server, in one run: redis-benchmark at the leader, the same fsync policy. And puts of 64
// clients beside etcd, each put on disk before it is answered.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { runRedisBenchmark } from '../redis-benchmark.ts';
import { goProgram } from '../support/go-program.ts';
import { output } from '../support/output.ts';
import { cpuSeconds } from '../support/process-usage.ts';
import { type Fsync, requireProgram, type Running, startPolyrow } from '../support/processes.ts';
import { median, medianWithin, pairsToJudge } from '../support/statistics.ts';
import { type Figure, tell } from './figures.ts';
import { LocalNodes } from './local-nodes.ts';
import { freePort } from '../../test/support/free-port.ts';

interface ThroughputOptions {
  /** Pairs of turns of each cell. */
  rounds: number;
  requests: number;
  policies: Fsync[];
}

export const throughputDefaults: ThroughputOptions = {
  rounds: pairsToJudge,
  requests: 400_000,
  policies: ['everysec', 'always'],
};

const pipelines = [1, 16];
const keys = 100_000;
/** Throughput of three copies over that of one. */
const leastWrites = 0.25;
const leastReads = 0.5;
const leastReadsByLease = 0.9;

export async function throughputBench(
  { rounds, requests, policies }: ThroughputOptions,
  command: string,
): Promise<boolean> {
  requireProgram('redis-benchmark', 'package redis-tools');
  const figures: Figure[] = [];
  for (const fsync of policies) {
    const single = await startPolyrow(fsync);
    const cluster = await LocalNodes.start({ nodes: 3, flags: ['--wal.fsync', fsync] });
    try {
      for (const way of ['SET', 'GET', 'GET by lease']) {
        const test = way.slice(0, 3).toLowerCase();
        if (way === 'GET by lease') await cluster.keepLeases();
        for (const pipeline of pipelines) {
          const [one, three]: [number[], number[]] = [[], []];
          const count = pipeline === 1 ? Math.ceil(requests / 4) : requests;
          const load = { test, pipeline, keys };
          // A pause of the machine may have made another node the leader.
          const { leader } = await cluster.rows();
          const leading = { port: cluster.redisPort(leader) } as Running;
          // The first pair, with which code is compiled, does not count.
          for (let round = -1; round < rounds; round++) {
            for (const isOne of round % 2 === 0 ? [true, false] : [false, true]) {
              const server = isOne ? single : leading;
              const { throughput } = await runRedisBenchmark(server, load, count);
              if (round >= 0) (isOne ? one : three).push(throughput);
            }
          }
          const name = `${way} P=${pipeline} ${fsync}`;
          const leastRead = way === 'GET' ? leastReads : leastReadsByLease;
          const least = way === 'SET' ? leastWrites : leastRead;
          figures.push({ name: `${name}, one`, unit: 'commands/s', value: median(one) });
          figures.push({ name: `${name}, three`, unit: 'commands/s', value: median(three) });
          const { middle, low, high } = medianWithin(three.map((value, i) => value / one[i]!));
          const isJudgedByInterval = way === 'GET by lease' && rounds >= pairsToJudge;
          figures.push({
            name: `${name}, three over one`,
            unit: '',
            value: middle,
            // The limit of reads by lease is a few per cent below those of a single server.
            ...(isJudgedByInterval ? { interval: { low, high } } : {}),
            // The throughput of single writes on three copies is shown without a threshold.
            ...(way === 'SET' && pipeline === 1 ? {} : { atLeast: least }),
          });
        }
      }
    } finally {
      await single.stop();
      await cluster.stop();
    }
  }
  return tell('throughput', command, figures);
}

interface EtcdOptions {
  rounds: number;
  seconds: number;
  clients: number;
  bytes: number[];
}

export const etcdDefaults: EtcdOptions = {
  rounds: 3,
  seconds: 10,
  clients: 64,
  bytes: [100, 10_000],
};

interface Puts {
  puts: number;
  seconds: number;
  p50: number;
  p99: number;
  clientCpuSeconds: number;
}

interface Subject {
  kind: 'redis' | 'etcd';
  addresses: readonly string[];
  pids: readonly number[];
}

export async function etcdBench(options: EtcdOptions, command: string): Promise<boolean> {
  const program = await goProgram(join('cluster', 'put-load'));
  const figures: Figure[] = [];
  const etcd = await startEtcd();
  try {
    const cluster = await LocalNodes.start({ nodes: 3, flags: ['--wal.fsync', 'always'] });
    try {
      const ours: Subject = {
        kind: 'redis',
        addresses: cluster.numbers.map((node) => `127.0.0.1:${cluster.redisPort(node)}`),
        pids: cluster.numbers.map((node) => cluster.pid(node)),
      };
      for (const bytes of options.bytes) {
        figures.push(...(await comparePuts(program, [ours, etcd.subject], bytes, options)));
      }
    } finally {
      await cluster.stop();
    }
  } finally {
    await etcd.stop();
  }
  return tell('etcd', command, figures);
}

async function comparePuts(
  program: string,
  subjects: readonly [Subject, Subject],
  bytes: number,
  options: EtcdOptions,
): Promise<Figure[]> {
  const rates: number[][] = [[], []];
  const figures: Figure[] = [];
  // The first round of both is a warm-up and does not count.
  for (let round = 0; round <= options.rounds; round++) {
    for (const [i, { kind, addresses, pids }] of subjects.entries()) {
      const before = pids.map(cpuSeconds);
      const load = ['-kind', kind, '-addresses', addresses.join(','), '-bytes', String(bytes)];
      const size = ['-clients', String(options.clients), '-seconds', String(options.seconds)];
      const puts = JSON.parse(await output(program, [...load, ...size])) as Puts;
      if (round > 0) rates[i]!.push(puts.puts / puts.seconds);
      if (round < options.rounds) continue;
      const servers = pids.reduce((sum, pid, at) => sum + cpuSeconds(pid) - before[at]!, 0);
      const name = `${bytes} B, ${i === 0 ? 'polyrow' : 'etcd'}`;
      figures.push(
        { name: `${name}: puts`, unit: '/s', value: median(rates[i]!) },
        { name: `${name}: p99`, unit: 'ms', value: puts.p99 },
        { name: `${name}: servers`, unit: 'us/put', value: (servers / puts.puts) * 1e6 },
        {
          name: `${name}: client`,
          unit: 'us/put',
          value: (puts.clientCpuSeconds / puts.puts) * 1e6,
        },
      );
    }
  }
  const [mine, peer] = rates as [number[], number[]];
  const value = median(mine.map((rate, i) => rate / peer[i]!));
  return [...figures, { name: `${bytes} B, polyrow over etcd`, unit: '', value, atLeast: 5 }];
}

async function startEtcd(): Promise<{ subject: Subject; stop: () => Promise<void> }> {
  const program = requireProgram('etcd', 'package etcd-server');
  const directory = mkdtempSync(join(tmpdir(), 'polyrow-bench-etcd-'));
  const nodes = await Promise.all(
    ['a', 'b', 'c'].map(async (name) => ({
      name,
      client: await freePort(),
      peer: await freePort(),
    })),
  );
  const url = (port: number): string => `http://127.0.0.1:${port}`;
  const members = nodes.map(({ name, peer }) => `${name}=${url(peer)}`).join(',');
  const children = nodes.map(({ name, client, peer }) => {
    const where = ['--name', name, '--data-dir', join(directory, name), '--log-level', 'error'];
    const ends = ['--listen-client-urls', url(client), '--advertise-client-urls', url(client)];
    const peers = ['--listen-peer-urls', url(peer), '--initial-advertise-peer-urls', url(peer)];
    const all = [...where, ...ends, ...peers, '--initial-cluster', members];
    return spawn(program, all, { stdio: 'ignore' });
  });
  const stop = async (): Promise<void> => {
    for (const child of children) {
      const gone = once(child, 'exit');
      if (child.exitCode === null) child.kill('SIGKILL');
      await gone;
    }
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    for (const { client } of nodes) {
      const isHealthy = (): Promise<boolean> =>
        fetch(`${url(client)}/health`).then(
          ({ ok }) => ok,
          () => false,
        );
      for (let tries = 0; !(await isHealthy()); tries++) {
        if (tries > 300) throw new Error('etcd is not healthy within 30 s');
        await sleep(100);
      }
    }
  } catch (error) {
    await stop();
    throw error;
  }
  const addresses = nodes.map(({ client }) => `127.0.0.1:${client}`);
  return { subject: { kind: 'etcd', addresses, pids: children.map(({ pid }) => pid!) }, stop };
}
