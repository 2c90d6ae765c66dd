// How long clients of the nodes that are left wait when a leader is killed, stopped or cut off, and how many acknowledged
// writes are lost; beside a Redis Cluster of six and a Sentinel setup, both with their defaults.

import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { percentile } from '../support/statistics.ts';
import { type Figure, tell } from './figures.ts';
import { LocalNodes } from './local-nodes.ts';
import { Probe } from './probes.ts';
import { type RedisPeer, redisClusterPeer, sentinelPeer } from './redis-peers.ts';

export const harms = ['kill', 'stop', 'black-hole', 'kill-with-leases'] as const;
type Harm = (typeof harms)[number];

interface FailOverOptions {
  rounds: number;
  harms: string[];
  /** Rounds with each peer, which take half a minute each; 0 for none. */
  peerRounds: number;
}

export const failOverDefaults: FailOverOptions = { rounds: 20, harms: [...harms], peerRounds: 20 };

const thresholds: Record<Harm, { p50: number; p99: number }> = {
  kill: { p50: 600, p99: 2500 },
  stop: { p50: 1800, p99: 3500 },
  'black-hole': { p50: 1800, p99: 3500 },
  // The others wait for the lease to run out.
  'kill-with-leases': { p50: 1800, p99: 3500 },
};
const probesOfNode = 2;
const steadyMs = 500;
const recoversWithinMs = 60_000;
const moreWrites = 20;

interface Outcome {
  gaps: number[];
  lost: number;
  staleReads: number;
}

function connect(port: number): Redis {
  const client = new Redis(port, '127.0.0.1', {
    retryStrategy: () => 20,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
  });
  client.on('error', () => undefined);
  return client;
}

export async function failOverBench(options: FailOverOptions, command: string): Promise<boolean> {
  const figures: Figure[] = [];
  const p99 = new Map<string, number>();
  for (const harm of harms.filter((one) => options.harms.includes(one))) {
    const outcome = await ours(harm, options.rounds);
    p99.set(harm, percentile(outcome.gaps, 0.99));
    figures.push(...figuresOf(harm, outcome));
  }
  if (options.peerRounds > 0) {
    for (const start of [redisClusterPeer, sentinelPeer]) {
      const peer = await start();
      const outcome = await theirs(peer, options.peerRounds);
      const unit = 'ms';
      const ofPeer = percentile(outcome.gaps, 0.5);
      figures.push({ name: `${peer.name}: gap after SIGKILL, p50`, unit, value: ofPeer });
      figures.push({ name: `${peer.name}: p99`, unit, value: percentile(outcome.gaps, 0.99) });
      figures.push({
        name: `${peer.name}: acknowledged writes lost`,
        unit: '',
        value: outcome.lost,
      });
      if (!p99.has('kill') || peer.name !== 'Redis Cluster') continue;
      figures.push({
        name: 'gap after SIGKILL, p99, over Redis Cluster p50',
        unit: '',
        value: p99.get('kill')! / ofPeer,
        atMost: 1,
      });
    }
  }
  return tell('fail-over', command, figures);
}

function figuresOf(harm: Harm, { gaps, lost, staleReads }: Outcome): Figure[] {
  const { p50, p99 } = thresholds[harm];
  const gap = (share: number): number => percentile(gaps, share);
  return [
    { name: `gap after ${harm}, p50`, unit: 'ms', value: gap(0.5), atMost: p50 },
    { name: `gap after ${harm}, p99`, unit: 'ms', value: gap(0.99), atMost: p99 },
    { name: `acknowledged writes lost, ${harm}`, unit: '', value: lost, atMost: 0 },
    ...(harm === 'stop'
      ? [{ name: 'stale reads after SIGCONT', unit: '', value: staleReads, atMost: 0 }]
      : []),
  ];
}

async function ours(harm: Harm, rounds: number): Promise<Outcome> {
  const outcome: Outcome = { gaps: [], lost: 0, staleReads: 0 };
  const cluster = await LocalNodes.start({ nodes: 3, proxied: true });
  const isKill = harm === 'kill' || harm === 'kill-with-leases';
  try {
    if (harm === 'kill-with-leases') await cluster.keepLeases();
    for (let round = 0; round < rounds; round++) {
      const { leader } = await cluster.rows();
      const others = cluster.numbers.filter((node) => node !== leader);
      const clients = others.flatMap((node) =>
        Array.from({ length: probesOfNode }, () => connect(cluster.redisPort(node))),
      );
      const probes = clients.map((client, i) => new Probe(client, `probe:${round}:${i}`));
      const old = connect(cluster.redisPort(leader));
      await sleep(steadyMs);
      const moment = performance.now();
      if (isKill) await cluster.kill(leader);
      else if (harm === 'stop') cluster.signal(leader, 'SIGSTOP');
      else cluster.cutOff(leader);
      await sleep(steadyMs);
      await Promise.all(probes.map((probe) => probe.goesOn(moreWrites, recoversWithinMs)));
      outcome.gaps.push(...probes.map((probe) => probe.longestGapSince(moment)));
      if (isKill) await cluster.restart(leader);
      else if (harm === 'stop') {
        const known = probes[0]!.times.length;
        const read = old.llen(probes[0]!.key).catch(() => Infinity);
        cluster.signal(leader, 'SIGCONT');
        if ((await read) < known) outcome.staleReads++;
      } else cluster.proxies.heal();
      for (const probe of probes) outcome.lost += await probe.lost();
      for (const client of [...clients, old]) client.disconnect();
      await cluster.settled();
      process.stderr.write(`\r${harm}: round ${round + 1} of ${rounds}   `);
    }
  } finally {
    await cluster.stop();
  }
  process.stderr.write('\n');
  return outcome;
}

async function theirs(peer: RedisPeer, rounds: number): Promise<Outcome> {
  const outcome: Outcome = { gaps: [], lost: 0, staleReads: 0 };
  try {
    for (let round = 0; round < rounds; round++) {
      const { client, key, kill, repair } = await peer.prepare(round);
      const probes = Array.from(
        { length: 2 * probesOfNode },
        (_, i) => new Probe(client, `${key}:${i}`),
      );
      await sleep(steadyMs);
      const moment = performance.now();
      await kill();
      await sleep(steadyMs);
      await Promise.all(probes.map((probe) => probe.goesOn(moreWrites, 2 * recoversWithinMs)));
      outcome.gaps.push(...probes.map((probe) => probe.longestGapSince(moment)));
      await repair();
      for (const probe of probes) outcome.lost += await probe.lost();
      client.disconnect();
      process.stderr.write(`\r${peer.name}: round ${round + 1} of ${rounds}   `);
    }
  } finally {
    await peer.stop();
  }
  process.stderr.write('\n');
  return outcome;
}
