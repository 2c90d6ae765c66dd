// A cluster of the compiled server on loopback, as `polyrow cluster start` runs it: nodes can be killed, stopped and
// continued.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { fatalLines } from './fatal-lines.ts';

const dist = process.env['DIST_DIR'] ?? fileURLToPath(new URL('../../dist', import.meta.url));
const main = `${dist}/cli/main.js`;

export interface ClusterNode {
  readonly id: number;
  readonly pid: number;
  /** As redis://127.0.0.1:6379. */
  readonly redis: string;
  readonly influx: string;
  readonly admin: string;
}

/** A client that never sends a command again by itself: a test counts what was acknowledged. */
export function connectOnce(port: number): Redis {
  const client = new Redis(port, '127.0.0.1', {
    retryStrategy: () => 50,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    commandTimeout: 15_000,
  });
  client.on('error', () => undefined);
  return client;
}

interface GroupReport {
  group: number;
  leader: number;
  settled: boolean;
}

/** The controller looks at the groups once a second. */
const quietMs = 3000;

export class PolyrowCluster {
  nodes: ClusterNode[] = [];
  /** Output of all nodes. */
  output = '';
  /** What a node of this test may end with; it is started again in any case, so that nobody else would see it. */
  expectedFailure: RegExp | undefined;
  readonly dataDir = mkdtempSync(join(tmpdir(), 'polyrow-cluster-'));
  #child: ChildProcess | undefined;
  #exit: Promise<unknown[]> | undefined;

  /** Resolves when all nodes serve. */
  static async start(count: number, flags: readonly string[] = []): Promise<PolyrowCluster> {
    if (!existsSync(main)) throw new Error(`${main} is missing: run \`npm run build\` first`);
    const cluster = new PolyrowCluster();
    try {
      await cluster.#launch(count, flags);
      await cluster.settled();
    } catch (error) {
      await cluster.remove();
      throw error;
    }
    return cluster;
  }

  /** Resolves once all groups are whole and have had the same leaders for a while: those of new groups are spread. */
  async settled(): Promise<void> {
    const token = this.adminToken(0);
    let [known, since] = ['', performance.now()];
    while (performance.now() - since < quietMs) {
      const response = await fetch(`${this.nodes[0]!.admin}/v1/cluster`, {
        headers: { authorization: `Bearer ${token}` },
      });
      // A node that starts has no such page for a moment.
      const { groups = [] } = (await response.json()) as { groups?: GroupReport[] };
      const isWhole = groups.length > 0 && groups.every(({ settled }) => settled);
      const now = isWhole ? groups.map(({ group, leader }) => `${group}:${leader}`).join() : '';
      if (now === '' || now !== known) [known, since] = [now, performance.now()];
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }

  redisPort(index: number): number {
    return Number(new URL(this.nodes[index]!.redis).port);
  }

  get redisPorts(): number[] {
    return this.nodes.map((_, index) => this.redisPort(index));
  }

  /**
   * Ends a node without warning; it is started again after a second or so. Its process number from then on is another.
   * This and the two below are false where the node does not run just now.
   */
  kill(index: number): boolean {
    return this.#signal(index, 'SIGKILL');
  }

  /** A stopped process answers nothing until it is continued. */
  pause(index: number): boolean {
    return this.#signal(index, 'SIGSTOP');
  }

  resume(index: number): boolean {
    return this.#signal(index, 'SIGCONT');
  }

  #signal(index: number, signal: NodeJS.Signals): boolean {
    try {
      return process.kill(this.pidOf(index), signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
      throw error;
    }
  }

  /** The process that has the node's directory, or had it last. */
  pidOf(index: number): number {
    const file = readdirSync(this.dataDir, { recursive: true })
      .map(String)
      .find((name) => name.endsWith(`${index + 1}/lock`));
    if (file === undefined) return this.nodes[index]!.pid;
    return (JSON.parse(readFileSync(join(this.dataDir, file), 'utf8')) as { pid: number }).pid;
  }

  /** Output of `polyrow WORDS`, run against the first node. */
  cli(...words: string[]): Promise<string> {
    return this.cliAt(0, ...words);
  }

  async cliAt(index: number, ...words: string[]): Promise<string> {
    const directory = this.#nodeDirectory(index);
    // `verify` works on files alone.
    const where = words[0] === 'verify' ? [] : ['--data-dir', directory];
    const child = spawn(process.execPath, [main, ...words, ...where], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const [code] = (await once(child, 'close')) as [number | null];
    if (code !== 0) throw new Error(`polyrow ${words.join(' ')} ended with ${code}:\n${output}`);
    return output;
  }

  /** Token for the admin API of a node. */
  adminToken(index: number): string {
    return readFileSync(join(this.#nodeDirectory(index), 'admin-token'), 'utf8').trim();
  }

  #nodeDirectory(index: number): string {
    const name = readdirSync(this.dataDir).find((one) => one.endsWith(String(index + 1)));
    return join(this.dataDir, name ?? `node-${index + 1}`);
  }

  async #launch(count: number, flags: readonly string[]): Promise<void> {
    const words = ['cluster', 'start', '--nodes', String(count), '--json'];
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('POLYROW_'));
    const child = spawn(process.execPath, [main, ...words, '--data-dir', this.dataDir, ...flags], {
      env: Object.fromEntries(inherited),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child = child;
    this.#exit = once(child, 'close');
    child.stderr.on('data', (chunk: Buffer) => (this.output += chunk.toString()));
    const served = new Promise<void>((resolve) => {
      createInterface({ input: child.stdout }).on('line', (line) => {
        this.output += `${line}\n`;
        if (!line.startsWith('{"nodes"')) return;
        ({ nodes: this.nodes } = JSON.parse(line) as { nodes: ClusterNode[] });
        resolve();
      });
    });
    await Promise.race([served, this.#exit]);
    if (this.nodes.length === 0) throw new Error(`the cluster did not start:\n${this.output}`);
  }

  /** For `afterEach`: ends all of it and removes its data. Throws when a node has ended by a failure of its own. */
  async remove(): Promise<void> {
    await this.#stop();
    const failures = readdirSync(this.dataDir)
      .filter((name) => name.endsWith('.log'))
      .flatMap((name) => fatalLines(readFileSync(join(this.dataDir, name), 'utf8')));
    rmSync(this.dataDir, { recursive: true, force: true });
    const unexpected = failures.filter((line) => this.expectedFailure?.test(line) !== true);
    if (unexpected.length > 0) throw new Error(`nodes have failed:\n${unexpected.join('\n')}`);
  }

  async #stop(): Promise<void> {
    const child = this.#child;
    if (child !== undefined && child.exitCode === null && child.signalCode === null) {
      for (const index of this.nodes.keys()) this.resume(index);
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), 20_000);
      await this.#exit;
      clearTimeout(timer);
    }
  }
}
