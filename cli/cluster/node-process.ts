// A node of a cluster on this machine, with a log file and ports of its own.

import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { adminTokenFile } from '../../server/lifecycle/admin-token.ts';
import { ExitError } from '../../server/lifecycle/exit-error.ts';
import { AdminClient } from '../commands/admin-client.ts';
import type { ClusterDirectory, NodePorts } from './cluster-directory.ts';
import { KeptProcess } from './kept-process.ts';

const pollMs = 100;

interface NodeProcessOptions {
  directory: ClusterDirectory;
  /** From 0 on. */
  index: number;
  /** Settings for all nodes, as flags. */
  flags: readonly string[];
  restarts: boolean;
  /** The process ended by itself. */
  onExit: (message: string) => void;
}

export class NodeProcess {
  readonly ports: NodePorts;
  readonly #options: NodeProcessOptions;
  readonly #process: KeptProcess;

  constructor(options: NodeProcessOptions) {
    const { directory, index, flags, restarts, onExit } = options;
    this.#options = options;
    this.ports = directory.nodes[index]!;
    this.#process = new KeptProcess({
      name: `node ${index + 1}`,
      words: [...this.#settings(), ...flags],
      stdio: () => {
        const log = openSync(directory.logFile(index), 'a', 0o600);
        return { stdio: ['ignore', log, log], opened: () => closeSync(log) };
      },
      // Settings meant for a server of the user's must not reach this one.
      takesEnvironment: false,
      ...{ restarts, onExit },
      isOver: () =>
        lastLine(directory.logFile(index)).includes('was removed from the cluster')
          ? 'was removed from the cluster'
          : undefined,
    });
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** The cluster has taken it out permanently: it does not start any more. */
  get isRemoved(): boolean {
    return this.#process.isOver;
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
    this.#process.start();
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

  /** Reasons the node does not serve; [] when it serves; undefined while it does not answer. */
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
   * Resolves when its admin port answers, with the reasons why it does not serve. Throws
   * `ExitError` when it has ended. Does not wait for one that was removed.
   */
  async untilAnswers(accept: (reasons: readonly string[]) => boolean): Promise<string[]> {
    const { directory, index } = this.#options;
    for (;;) {
      if (this.isRemoved) return [];
      const { ended } = this.#process;
      if (ended !== '') {
        throw new ExitError(
          `node ${index + 1} did not start (${ended}): ${lastLine(directory.logFile(index))}`,
        );
      }
      const reasons = await this.reasons();
      if (reasons !== undefined && accept(reasons)) return reasons;
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  }

  /** In good order. */
  async stop(): Promise<void> {
    await this.#process.stop();
  }
}

function lastLine(file: string): string {
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  return lines.at(-1) ?? '';
}
