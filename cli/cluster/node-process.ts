// A node of a cluster on this machine, with a log file and ports of its own.

import { closeSync, openSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { adminTokenFile } from '../../server/lifecycle/admin-token.ts';
import { lockHolder } from '../../server/lifecycle/data-directory.ts';
import { ExitError } from '../../server/lifecycle/exit-error.ts';
import { AdminClient } from '../commands/admin-client.ts';
import type { ClusterDirectory, NodePorts } from './cluster-directory.ts';
import { KeptProcess } from './kept-process.ts';

const pollMs = 100;
/** In a node's directory while its admin port serves; one that was killed leaves it there. */
const endpointFile = 'admin-endpoint';

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
        this.#forgetEndpoint();
        const log = openSync(directory.logFile(index), 'a', 0o600);
        return { stdio: ['ignore', log, log], opened: () => closeSync(log) };
      },
      // Settings meant for a server of the user's must not reach this one.
      takesEnvironment: false,
      ...{ restarts, onExit },
      isOver: () =>
        wasRemoved(directory.logFile(index)) ? 'was removed from the cluster' : undefined,
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

  /** Throws `ExitError` when it cannot be started, as its directory or one of its ports is in use. */
  async check(): Promise<void> {
    const { directory, index } = this.#options;
    const path = directory.nodePath(index);
    const holder = lockHolder(path);
    if (holder !== undefined) {
      throw new ExitError(`node ${index + 1} runs already: process ${holder} has ${path}`);
    }
    const port = wasRemoved(directory.logFile(index)) ? undefined : await directory.usedPort(index);
    if (port === undefined) return;
    throw new ExitError(
      `port ${port} of node ${index + 1} is in use by another program: stop that one, as the ports of a cluster stay the same, or start another cluster by --data-dir`,
    );
  }

  start(): void {
    this.#process.start();
  }

  /** Before a start. A process that runs keeps the file. */
  #forgetEndpoint(): void {
    const { directory, index } = this.#options;
    const path = directory.nodePath(index);
    if (lockHolder(path) === undefined) rmSync(join(path, endpointFile), { force: true });
  }

  /** Whether this node serves its admin port, which another program may have taken. */
  get #serves(): boolean {
    const { directory, index } = this.#options;
    const path = directory.nodePath(index);
    if (lockHolder(path) !== this.pid) return false;
    const url = textOf(join(path, endpointFile)).trim();
    return URL.canParse(url) && new URL(url).port === String(this.ports.admin);
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
      if (!this.#serves) return undefined;
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

function wasRemoved(log: string): boolean {
  return lastLine(log).includes('was removed from the cluster');
}

function lastLine(file: string): string {
  return textOf(file).trim().split('\n').at(-1) ?? '';
}

/** '' where there is no such file. */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}
