// A node of a cluster on this machine: a server in a process of its own, which is started again when it ends by itself.

import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { adminTokenFile } from '../../server/lifecycle/admin-token.ts';
import { ExitError } from '../../server/lifecycle/exit-error.ts';
import { AdminClient } from '../commands/admin-client.ts';
import type { ClusterDirectory, NodePorts } from './cluster-directory.ts';

const main = fileURLToPath(new URL('../main.js', import.meta.url));
const pollMs = 100;
const firstRestartMs = 1000;
const longestRestartMs = 30_000;
/** One that ran for so long is started again at once, as at the first time. */
const steadyMs = 60_000;

export interface NodeProcessOptions {
  directory: ClusterDirectory;
  /** From 0 on. */
  index: number;
  /** Settings for all nodes, as flags. */
  flags: readonly string[];
  restarts: boolean;
  /** It has ended by itself. */
  onExit: (message: string) => void;
}

export class NodeProcess {
  readonly ports: NodePorts;
  readonly #options: NodeProcessOptions;
  #child: ChildProcess | undefined;
  #exit: Promise<void> = Promise.resolve();
  #restartMs = firstRestartMs;
  #timer: NodeJS.Timeout | undefined;
  #stopping = false;
  #isRemoved = false;
  #ended = '';

  constructor(options: NodeProcessOptions) {
    this.#options = options;
    this.ports = options.directory.nodes[options.index]!;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  /** The cluster has taken it out for good: it does not start any more. */
  get isRemoved(): boolean {
    return this.#isRemoved;
  }

  get adminUrl(): string {
    return `http://127.0.0.1:${this.ports.admin}`;
  }

  /** As an operator; its token is there from its first start on. */
  get admin(): AdminClient {
    const { directory, index } = this.#options;
    const token = readFileSync(join(directory.nodePath(index), adminTokenFile), 'utf8').trim();
    return new AdminClient({ url: this.adminUrl, token });
  }

  start(): void {
    const { directory, index, flags } = this.#options;
    const log = openSync(directory.logFile(index), 'a', 0o600);
    const startedAt = performance.now();
    // Settings meant for a server of the user's must not reach this one.
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('POLYROW_'));
    const child = spawn(process.execPath, [main, 'start', ...this.#settings(), ...flags], {
      env: Object.fromEntries(inherited),
      stdio: ['ignore', log, log],
      // Ctrl-C is for this process, which stops the nodes in good order.
      detached: true,
    });
    closeSync(log);
    this.#child = child;
    this.#ended = '';
    this.#exit = new Promise((resolve) => {
      const end = (reason: string): void => {
        this.#ended = reason;
        resolve();
        if (!this.#stopping) this.#endedAlone(reason, performance.now() - startedAt);
      };
      child.once('error', (error) => end(error.message));
      child.once('exit', (code, signal) => end(signal ?? `exit code ${code}`));
    });
  }

  #settings(): string[] {
    const { directory, index } = this.#options;
    const { redis, influx, admin, cluster } = this.ports;
    // The first node forms the cluster, and never joins one.
    const seeds = directory.nodes.map((node) => `127.0.0.1:${node.cluster}`).join(',');
    return [
      ...['--data-dir', directory.nodePath(index)],
      ...['--redis.port', String(redis), '--influx.port', String(influx)],
      ...['--admin.port', String(admin), '--cluster.listen', `127.0.0.1:${cluster}`],
      ...['--cluster.secret-file', directory.secretFile],
      ...(index === 0 ? [] : ['--cluster.seeds', seeds]),
    ];
  }

  #endedAlone(reason: string, ranMs: number): void {
    const { index, restarts, onExit, directory } = this.#options;
    if (lastLine(directory.logFile(index)).includes('was removed from the cluster')) {
      this.#isRemoved = true;
      onExit(`node ${index + 1} was removed from the cluster`);
      return;
    }
    if (ranMs >= steadyMs) this.#restartMs = firstRestartMs;
    const waitMs = this.#restartMs;
    const next = restarts ? `; it is started again in ${waitMs / 1000} s` : '';
    onExit(`node ${index + 1} has ended (${reason})${next}`);
    if (!restarts) return;
    this.#restartMs = Math.min(longestRestartMs, waitMs * 2);
    this.#timer = setTimeout(() => this.start(), waitMs);
  }

  /** What keeps it from serving; [] when it serves; undefined while it does not answer. */
  async reasons(): Promise<string[] | undefined> {
    try {
      const answer = await fetch(`${this.adminUrl}/readyz`, { signal: AbortSignal.timeout(2000) });
      const { status, reasons = [] } = (await answer.json()) as {
        status: string;
        reasons?: string[];
      };
      return status === 'ready' ? [] : reasons;
    } catch {
      return undefined;
    }
  }

  /**
   * Resolves when its admin port answers, with what keeps it from serving. Throws `ExitError` when it
   * has ended. Does not wait for one that was removed.
   */
  async untilAnswers(accept: (reasons: readonly string[]) => boolean): Promise<string[]> {
    const { directory, index } = this.#options;
    for (;;) {
      if (this.#isRemoved) return [];
      if (this.#ended !== '') {
        throw new ExitError(
          `node ${index + 1} did not start (${this.#ended}): ${lastLine(directory.logFile(index))}`,
        );
      }
      const reasons = await this.reasons();
      if (reasons !== undefined && accept(reasons)) return reasons;
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  }

  /** In good order. */
  async stop(): Promise<void> {
    this.#stopping = true;
    clearTimeout(this.#timer);
    this.#child?.kill('SIGTERM');
    await this.#exit;
  }
}

function lastLine(file: string): string {
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  return lines.at(-1) ?? '';
}
