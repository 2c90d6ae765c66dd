// A whole cluster on this machine, started and stopped together.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type ClusterReport, isWhole } from '../../control/cluster/cluster-report.ts';
import { readNodeIdentity } from '../../server/cluster/node-identity.ts';
import { ClusterDirectory } from './cluster-directory.ts';
import { NodeProcess } from './node-process.ts';

interface LocalClusterOptions {
  dataDir: string;
  nodes: number | undefined;
  basePort: number | undefined;
  /** Settings for all nodes, as flags. */
  flags: readonly string[];
  restarts: boolean;
  remark: (message: string) => void;
}

/** As programs read it. */
interface NodeView {
  id: number;
  pid: number;
  redis: string;
  influx: string;
  admin: string;
  dataDir: string;
}

const pollMs = 100;
/**
 * Time for which a start waits for all replicas; then it reports the missing ones and continues.
 */
const wholeMs = 120_000;

export class LocalCluster {
  readonly directory: ClusterDirectory;
  readonly #nodes: NodeProcess[];
  readonly #remark: (message: string) => void;
  #stopping: Promise<unknown> | undefined;

  private constructor(
    directory: ClusterDirectory,
    { flags, restarts, remark }: Omit<LocalClusterOptions, 'dataDir' | 'nodes' | 'basePort'>,
  ) {
    this.directory = directory;
    this.#remark = remark;
    const onExit = (message: string): void => remark(message);
    this.#nodes = directory.nodes.map(
      (_, index) => new NodeProcess({ directory, index, flags, restarts, onExit }),
    );
  }

  /** Not started. */
  static async open(options: LocalClusterOptions): Promise<LocalCluster> {
    const { dataDir, nodes, basePort } = options;
    return new LocalCluster(await ClusterDirectory.open(dataDir, nodes, basePort), options);
  }

  /** Resolves when all nodes serve. Throws `ExitError` when one of them cannot start; the others are stopped then. */
  async start(): Promise<void> {
    try {
      await this.#start();
    } catch (error) {
      await this.stop();
      throw error;
    }
    await this.#untilWhole();
  }

  async #start(): Promise<void> {
    const [first, ...others] = this.#nodes;
    for (const node of this.#nodes) await node.check();
    first!.start();
    const path = this.directory.nodePath(0);
    const isFormed = existsSync(join(path, 'cluster')) && readNodeIdentity(path) !== undefined;
    if (!isFormed) {
      await first!.untilAnswers((reasons) => reasons.some((one) => one.includes('cluster init')));
      await first!.admin.request('POST', '/v1/cluster/init', {});
      await first!.untilAnswers((reasons) => reasons.length === 0);
    }
    for (const node of others) node.start();
    await Promise.all(
      this.#nodes.map((node) => node.untilAnswers((reasons) => reasons.length === 0)),
    );
  }

  async #untilWhole(): Promise<void> {
    const until = performance.now() + wholeMs;
    let last = 'the cluster does not answer';
    while (this.#stopping === undefined) {
      try {
        const there = this.#nodes.filter(({ isRemoved }) => !isRemoved);
        const report = await there[0]!.admin.get<ClusterReport>('/v1/cluster');
        const up = report.nodes.filter(({ reachable, state }) => reachable && state !== 'joining');
        if (up.length >= there.length && isWhole(report)) return;
        const missing = report.groups.filter(({ settled }) => !settled).map(({ group }) => group);
        last = `groups ${missing.join(', ')} do not have all their replicas`;
      } catch (error) {
        last = (error as Error).message;
      }
      if (performance.now() > until) {
        this.#remark(`the nodes serve, but after ${wholeMs / 1000} s ${last}: see polyrow doctor`);
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  }

  get nodes(): NodeView[] {
    return this.#nodes.flatMap((node, index) => {
      if (node.isRemoved) return [];
      const dataDir = this.directory.nodePath(index);
      return {
        id: readNodeIdentity(dataDir)?.node ?? 0,
        pid: node.pid,
        redis: `redis://127.0.0.1:${node.ports.redis}`,
        influx: `http://127.0.0.1:${node.ports.influx}`,
        admin: node.adminUrl,
        dataDir,
      };
    });
  }

  /** All nodes, in good order. */
  async stop(): Promise<void> {
    this.#stopping ??= Promise.all(this.#nodes.map((node) => node.stop()));
    await this.#stopping;
  }
}
