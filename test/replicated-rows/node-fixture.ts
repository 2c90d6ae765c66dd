// Nodes of a cluster in one process: each has a Redis server, and some a replica of the one group that has all tables.

import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { GroupExecutor } from '../../access/gateway/pods/group-executor.ts';
import { GroupTicks } from '../../access/gateway/pods/group-ticks.ts';
import { PodLink } from '../../access/gateway/pods/pod-link.ts';
import { RemoteExecutor } from '../../access/gateway/pods/remote-executor.ts';
import { Principals } from '../../access/gateway/principals.ts';
import { Router } from '../../access/gateway/router.ts';
import { allCommands } from '../../access/redis/commands/all.ts';
import { CommandRegistry } from '../../access/redis/commands/registry.ts';
import { RedisServer } from '../../access/redis/server.ts';
import { ClusterListener } from '../../cluster-links/cluster-listener.ts';
import { MemoryEngine } from '../../engines/memory/memory-engine.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import { Pod } from '../../storage-node/pod.ts';
import { PodServer } from '../../storage-node/pod-server/pod-server.ts';
import {
  loadEngineModule,
  WasmRaftEngine,
} from '../../storage-node/replicator/engine/wasm-engine.ts';
import { firstPosition } from '../../storage-node/replicator/raft/log-position.ts';
import type { RaftGroupLimits } from '../../storage-node/replicator/raft/raft-group-parts.ts';
import { RaftHost } from '../../storage-node/replicator/raft/raft-host.ts';
import { RaftLog } from '../../storage-node/replicator/raft/raft-log.ts';
import { replicaId } from '../../storage-node/replicator/raft/replica-id.ts';
import { Links } from '../../storage-node/replicator/transport/links-fixture.ts';
import { noRules } from '../../storage-node/table-rules.ts';
import { systemClock, systemRng } from '../../universal-row/environment.ts';
import type { ReadBounds } from '../../universal-row/command.ts';
import { RespClient } from '../support/resp-client.ts';

const module = loadEngineModule();
const group = 20;
const secret = Buffer.from('the secret of the test');
const unlimited = { hardBytes: 0, softBytes: 0, softSeconds: 0 };
const tables = new Map(Array.from({ length: 16 }, (_, table) => [table, noRules]));

interface Replica {
  readonly pod: Pod;
  readonly log: RaftLog;
  readonly host: RaftHost;
}

export class ClusterNode {
  readonly number: number;
  readonly group: GroupExecutor;
  readonly redis: RedisServer;
  readonly failures: string[] = [];
  replica: Replica | undefined;
  readonly #cluster: ReplicatedRows;
  readonly #listener: ClusterListener;
  readonly #pods: PodServer;
  readonly #links = new Map<number, PodLink>();
  readonly #remotes = new Map<number, RemoteExecutor>();
  readonly #clients: RespClient[] = [];

  constructor(number: number, cluster: ReplicatedRows) {
    this.number = number;
    this.#cluster = cluster;
    const identity = { cluster: 'test', node: String(number), incarnation: 1, level: 1 };
    const report = (level: string, message: string, fields?: object): void => {
      if (level === 'error') this.#failed(message, fields);
    };
    this.#listener = new ClusterListener({ identity, secret }, report);
    this.#pods = new PodServer({
      podOf: () => this.replica && { executor: this.replica.pod, mayWait: true },
      answer: () => undefined,
      report,
      failed: (error) => this.#failed('the log', { err: error }),
    });
    this.#listener.serve('pods', this.#pods);
    const ticks = new GroupTicks();
    this.group = new GroupExecutor({
      group: () => group,
      node: number,
      incarnation: 1,
      ticks,
      local: () => this.replica?.pod,
      log: () => this.replica?.log,
      remoteOf: (node) => this.#remotes.get(node),
      waitMs: 5000,
      refusalOf: () => undefined,
      mayWait: false,
      numbersTransactions: () => true,
    });
    this.group.setReplicas(cluster.replicas);
    const router = new Router();
    router.set({
      ...{ executor: this.group, group: this.group, pods: [ticks], mayWait: true },
      isReplicated: true,
      bounds: cluster.bounds,
    });
    this.redis = this.#newServer(router, report);
  }

  #failed(message: string, fields: object | undefined): void {
    const { err } = (fields ?? {}) as { err?: Error };
    this.failures.push(`${message} ${String(err?.stack)}`);
  }

  #newServer(
    router: Router,
    report: (level: 'info' | 'warn' | 'error', message: string, fields?: object) => void,
  ): RedisServer {
    return new RedisServer({
      host: '127.0.0.1',
      port: 0,
      backlog: 511,
      maxClients: 1000,
      idleTimeout: 0,
      loginTimeoutMs: 0,
      tcpKeepAliveSeconds: 0,
      principals: new Principals({ databases: 16 }),
      maxBulkBytes: 2 ** 24,
      maxQueryBytes: 2 ** 26,
      slowlogMs: Infinity,
      busyReplyMs: 5000,
      slowlogLength: 128,
      outputLimits: { normal: unlimited, pubsub: unlimited },
      registry: new CommandRegistry(allCommands),
      router,
      config: [],
      report,
      facts: {
        version: 'test',
        runId: 'f'.repeat(40),
        startedAt: Date.now(),
        executable: '',
        configFile: '',
        dataDirectory: '',
        memory: () => ({ used: 1, peak: 1, startup: 0, uncounted: 0, held: 1 }),
        persistence: () => ({}),
        tableSize: () => ({ rows: 0, expiring: 0 }),
        lookups: () => ({ hits: 0, misses: 0 }),
        evictedRows: () => 0,
        expiredRows: () => 0,
        checkpoint: async () => {},
        synced: async () => {},
        lastCheckpointAt: () => 0,
        checkpointInProgress: () => false,
        shutdown: () => {},
      },
    });
  }

  get port(): number {
    return this.#listener.port;
  }

  async start(): Promise<void> {
    await this.#listener.listen('127.0.0.1', 0);
    await this.redis.listen();
    if (this.#cluster.replicas.includes(this.number)) await this.openReplica();
  }

  async openReplica(): Promise<void> {
    const { replicas, root, links } = this.#cluster;
    const directory = join(root, String(this.number));
    const engine = new MemoryEngine({ directory: join(directory, 'rows'), disk: realDisk });
    await engine.open();
    const host = await RaftHost.open({
      disk: realDisk,
      directory: join(directory, 'wal'),
      ids: { cluster: 1, node: this.number },
      transport: links.of(this.number),
      onFatal: (error) => this.#failed('the replica', { err: error }),
      tickMs: 20,
      electionTicks: 10,
      heartbeatTicks: 2,
      engine: new WasmRaftEngine(module),
      limits: this.#cluster.limits,
    });
    const log = new RaftLog({
      pod: host.pod,
      group,
      replica: replicaId(this.number),
      first: firstPosition(replicas.map((number) => replicaId(number))),
      durableIndex: engine.appliedIndexOf(group),
    });
    const pod = new Pod({
      ...{ engine, log, group, tables, clock: systemClock, rng: systemRng },
      maxMemoryBytes: Infinity,
      checkpointBytes: Infinity,
      report: (_level, message, fields) => this.#failed(message, fields),
    });
    pod.start();
    this.replica = { pod, log, host };
    this.group.localChanged();
  }

  /** Cluster information: addresses of the other nodes. */
  connect(nodes: readonly ClusterNode[]): void {
    const identity = { cluster: 'test', node: String(this.number), incarnation: 1, level: 1 };
    for (const { number, port } of nodes) {
      if (number === this.number) continue;
      const link = new PodLink({
        host: '127.0.0.1',
        port,
        context: { identity, secret },
        report: () => {},
      });
      void link.start();
      this.#links.set(number, link);
      this.#remotes.set(number, new RemoteExecutor(link, () => undefined));
    }
  }

  /** All links of others to this node end; they come back by themselves. */
  breakLinks(): void {
    this.#pods.close();
  }

  async client(): Promise<RespClient> {
    const client = await RespClient.connect(this.redis.port);
    this.#clients.push(client);
    return client;
  }

  async closeReplica(): Promise<void> {
    const { replica } = this;
    this.replica = undefined;
    this.group.localChanged();
    await replica?.pod.close();
    await replica?.host.close();
  }

  async close(): Promise<void> {
    for (const client of this.#clients) client.close();
    await this.redis.drain(0);
    this.group.close();
    for (const link of this.#links.values()) link.close();
    this.#pods.close();
    await this.#listener.close();
    await this.closeReplica();
  }
}

/** Nodes 1 to 3 have replicas, 4 has none. */
export class ReplicatedRows {
  readonly root: string;
  readonly links = new Links();
  readonly replicas = [1, 2, 3];
  readonly nodes: ClusterNode[];

  /** How old reads may be. */
  readonly bounds: ReadBounds | undefined;
  readonly limits: Partial<RaftGroupLimits>;

  constructor(root: string, bounds?: ReadBounds, limits: Partial<RaftGroupLimits> = {}) {
    this.root = root;
    this.bounds = bounds;
    this.limits = limits;
    this.nodes = [1, 2, 3, 4].map((number) => new ClusterNode(number, this));
  }

  async start(): Promise<void> {
    for (const node of this.nodes) await node.start();
    for (const node of this.nodes) node.connect(this.nodes);
    await this.leader();
  }

  node(number: number): ClusterNode {
    return this.nodes[number - 1]!;
  }

  /** The node that leads, once one does. */
  async leader(other = 0): Promise<ClusterNode> {
    for (let left = 1000; left > 0; left--) {
      const leads = this.nodes.find(
        ({ number, replica }) => number !== other && replica?.pod.role === 'leader',
      );
      if (leads !== undefined) return leads;
      await pause(10);
    }
    throw new Error('nobody leads');
  }

  /** Has another node lead, by asking for it. */
  async transfer(to?: number): Promise<ClusterNode> {
    const old = await this.leader();
    const target = to ?? (old.number % 3) + 1;
    while (this.node(target).replica!.pod.role !== 'leader') {
      const now = await this.leader();
      now.replica!.pod.parts.log.transfer(replicaId(target));
      await pause(20);
    }
    return this.node(target);
  }

  /** Cuts the leader off from the other replicas until another one leads. */
  async depose(): Promise<ClusterNode> {
    const old = await this.leader();
    this.links.cut.add(old.number);
    const next = await this.leader(old.number);
    this.links.cut.clear();
    return next;
  }

  get failures(): string[] {
    return this.nodes.flatMap(({ failures }) => failures);
  }

  async close(): Promise<void> {
    for (const node of this.nodes) await node.close();
  }
}
