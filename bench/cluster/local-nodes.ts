// A cluster of processes on loopback whose nodes can be killed, stopped, and cut off from each other.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { AdminClient } from '../../cli/commands/admin-client.ts';
import type { ClusterReport, GroupReport } from '../../control/cluster/cluster-report.ts';
import { adminAccess } from '../support/admin.ts';
import { mainOf } from '../support/processes.ts';
import { Proxies } from './proxies.ts';
import { freePort } from '../../test/support/free-port.ts';

export interface LocalNodesOptions {
  nodes: number;
  /** Settings for all nodes, as flags. */
  flags?: readonly string[];
  /** The flag `--roles` of each node, from the first; all roles unless given. */
  roles?: readonly string[];
  /** Of each group, when the cluster has settled; 3 unless given. */
  replicas?: number;
  /** The nodes speak to each other through proxies. */
  proxied?: boolean;
  /** The folder of the build to start; this one unless given. */
  dist?: string;
}

const startMs = 120_000;
const pollMs = 100;
/** For so long nothing has changed in a cluster that has settled. */
const quietMs = 3000;
const peerPorts = [0, 1, 2];

class LocalNode {
  readonly number: number;
  readonly directory: string;
  readonly listen: number;
  readonly redisPort: number;
  readonly influxPort: number;
  child: ChildProcess | undefined;

  constructor(
    number: number,
    directory: string,
    ports: { listen: number; redis: number; influx: number },
  ) {
    this.number = number;
    this.directory = directory;
    this.listen = ports.listen;
    this.redisPort = ports.redis;
    this.influxPort = ports.influx;
  }
}

export class LocalNodes {
  readonly proxies: Proxies;
  readonly #options: LocalNodesOptions;
  readonly #directory = mkdtempSync(join(tmpdir(), 'polyrow-bench-cluster-'));
  readonly #nodes: LocalNode[] = [];
  /** Messages of nodes that failed. */
  readonly #failures: string[] = [];
  #isKept = false;

  private constructor(options: LocalNodesOptions) {
    this.#options = options;
    this.proxies = new Proxies(
      () => new Map(this.#nodes.map(({ number, child }) => [number, child?.pid ?? 0])),
    );
  }

  /** Resolves when all groups have their replicas, and leaders that stay. */
  static async start(options: LocalNodesOptions): Promise<LocalNodes> {
    const cluster = new LocalNodes(options);
    try {
      await cluster.#form();
      await cluster.settled();
    } catch (error) {
      await cluster.stop();
      throw error;
    }
    return cluster;
  }

  get numbers(): number[] {
    return this.#nodes.map(({ number }) => number);
  }

  redisPort(node: number): number {
    return this.#node(node).redisPort;
  }

  influxUrl(node: number): string {
    return `http://127.0.0.1:${this.#node(node).influxPort}`;
  }

  directory(node: number): string {
    return this.#node(node).directory;
  }

  isUp(node: number): boolean {
    const { child } = this.#node(node);
    return child?.pid !== undefined && child.exitCode === null && child.signalCode === null;
  }

  pid(node: number): number {
    if (!this.isUp(node)) throw new Error(`node ${node} does not run`);
    return this.#node(node).child!.pid!;
  }

  signal(node: number, signal: 'SIGSTOP' | 'SIGCONT'): void {
    process.kill(this.pid(node), signal);
  }

  async kill(node: number): Promise<void> {
    await this.#end(node, 'SIGKILL');
  }

  /** Stops a node in good order. */
  async terminate(node: number): Promise<void> {
    await this.#end(node, 'SIGTERM');
  }

  async #end(node: number, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const { child } = this.#node(node);
    const gone = once(child!, 'exit');
    process.kill(this.pid(node), signal);
    await gone;
  }

  /** Nothing gets from or to this node any more; connections stay. */
  cutOff(node: number): void {
    for (const other of this.numbers) {
      if (other === node) continue;
      this.proxies.hold(node, other);
      this.proxies.hold(other, node);
    }
  }

  /** Starts a node that has ended, of another build if one is named, and resolves to the seconds until it serves. */
  async restart(node: number, dist = this.#options.dist): Promise<number> {
    const began = performance.now();
    this.#spawn(this.#node(node), dist);
    await this.#until(node, ({ ok }) => ok);
    return (performance.now() - began) / 1000;
  }

  async admin(node: number): Promise<AdminClient> {
    return new AdminClient(await adminAccess(this.directory(node)));
  }

  async report(by = this.numbers[0]!): Promise<ClusterReport> {
    return (await this.admin(by)).request('GET', '/v1/cluster') as Promise<ClusterReport>;
  }

  /** The group of the default tenant's memory databases, as the node `by` reports it. */
  async rows(by?: number): Promise<GroupReport> {
    const { groups } = await this.report(by);
    const found = groups.find(({ model, tenant }) => model === 'memory' && tenant === 0);
    if (found === undefined) throw new Error('there is no group of rows');
    return found;
  }

  /** Switches database 0 to lease reads, and waits a second for the leader to get its leases. */
  async keepLeases(): Promise<void> {
    const admin = await this.admin(this.numbers[0]!);
    await admin.request('PATCH', '/v1/tables/0', { consistency: 'lease' });
    await sleep(1000);
  }

  /** Until all groups are whole and have had the same leaders for a while. */
  async settled(by?: number): Promise<void> {
    let [known, since] = ['', performance.now()];
    const end = performance.now() + startMs;
    const least = this.#options.replicas ?? 3;
    while (performance.now() - since < quietMs) {
      if (performance.now() > end) throw new Error(`the cluster does not settle: ${known}`);
      const { groups } = await this.report(by).catch(() => ({ groups: [] as GroupReport[] }));
      const isWhole =
        groups.length > 0 &&
        groups.every(
          ({ settled, replicas }) =>
            settled && replicas.length >= least && replicas.every(({ role }) => role !== 'unknown'),
        );
      const now = isWhole ? groups.map(({ group, leader }) => `${group}:${leader}`).join() : '';
      if (now === '' || now !== known) [known, since] = [now, performance.now()];
      await sleep(pollMs);
    }
  }

  /** The nodes' directories stay when they are stopped. Returns where they are. */
  keep(): string {
    this.#isKept = true;
    return this.#directory;
  }

  /** Throws when a node has ended by a failure of its own. */
  async stop(): Promise<void> {
    for (const { child } of this.#nodes) {
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) continue;
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    }
    this.proxies.close();
    if (!this.#isKept) rmSync(this.#directory, { recursive: true, force: true });
    const failures = this.#failures.splice(0);
    if (failures.length > 0) throw new Error(`nodes have failed:\n${failures.join('\n')}`);
  }

  async #form(): Promise<void> {
    for (let number = 1; number <= this.#options.nodes; number++) {
      const directory = join(this.#directory, `node-${number}`);
      mkdirSync(directory);
      const ports = {
        listen: await threePorts(),
        redis: await freePort(),
        influx: await freePort(),
      };
      const node = new LocalNode(number, directory, ports);
      this.#nodes.push(node);
      if (this.#options.proxied) {
        await this.proxies.listen(
          number,
          peerPorts.map((at) => node.listen + at),
        );
      }
      if (number > 1) copyFileSync(this.#secret(1), this.#secret(number));
      this.#spawn(node);
      if (number === 1) {
        await this.#until(1, ({ reasons }) => reasons.some((one) => one.includes('cluster init')));
        await (await this.admin(1)).request('POST', '/v1/cluster/init', {});
      }
      // One after the other: their numbers are given in the order in which they join.
      await this.#until(number, ({ ok }) => ok);
    }
  }

  #secret(node: number): string {
    return join(this.directory(node), 'cluster-secret');
  }

  #node(number: number): LocalNode {
    return this.#nodes[number - 1]!;
  }

  #spawn(node: LocalNode, dist = this.#options.dist): void {
    const { number, directory, listen, redisPort, influxPort } = node;
    const first = this.#nodes[0]!;
    const host = this.#options.proxied ? Proxies.host(number) : '127.0.0.1';
    const seed = this.#options.proxied ? Proxies.host(1) : '127.0.0.1';
    const settings = {
      'redis.port': redisPort,
      'influx.port': influxPort,
      'admin.port': 0,
      'cluster.listen': `127.0.0.1:${listen}`,
      'cluster.advertise': host,
      'log.level': 'error',
      ...(number > 1 ? { 'cluster.seeds': `${seed}:${first.listen}` } : {}),
    };
    const words = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
    const { flags = [], roles } = this.#options;
    const ownFlags = roles === undefined ? [] : ['--roles', roles[number - 1]!];
    rmSync(join(directory, 'admin-endpoint'), { force: true });
    node.child = spawn(
      process.execPath,
      [
        mainOf(dist === undefined ? {} : { dist }),
        'start',
        '--data-dir',
        directory,
        ...words,
        ...flags,
        ...ownFlags,
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    );
    createInterface({ input: node.child.stderr! }).on('line', (line) => {
      process.stderr.write(`${line}\n`);
      if (line.includes('"level":60')) this.#failures.push(`node ${number}: ${line}`);
    });
  }

  async #until(
    node: number,
    isReady: (answer: { ok: boolean; reasons: string[] }) => boolean,
  ): Promise<void> {
    const end = performance.now() + startMs;
    let why = 'it does not listen';
    for (; performance.now() < end; await sleep(20)) {
      const { child } = this.#node(node);
      if (child!.exitCode !== null) throw new Error(`node ${node} ended with ${child!.exitCode}`);
      try {
        const { url } = await adminAccess(this.directory(node));
        const answer = await fetch(`${url}/readyz`);
        const { reasons = [] } = (await answer.json()) as { reasons?: string[] };
        if (isReady({ ok: answer.ok, reasons })) return;
        why = reasons.join('; ');
      } catch {
        // The node does not listen yet.
      }
    }
    throw new Error(`node ${node} does not serve within ${startMs / 1000} s: ${why}`);
  }
}

/** The first of three free ports in a row. */
async function threePorts(): Promise<number> {
  for (;;) {
    const first = await freePort();
    const isFree = await Promise.all([1, 2].map((at) => canListen(first + at)));
    if (isFree.every(Boolean)) return first;
  }
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
