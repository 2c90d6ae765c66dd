// A node of a history: its Redis server, its gateway, its replicas of groups of rows in memory, and its part in the cluster's control
// plane, all as in the server, one life after the other over its disk. Sockets, the disk, the clock, the consensus of the metadata and the
// threads of a process are simulated.

import { Router } from '../../access/gateway/router.ts';
import type { LinkContext } from '../../cluster-links/cluster-link.ts';
import type { ClusterView, ReplicaStatus } from '../../contracts/cluster.ts';
import type { TenantDefinition } from '../../contracts/tenancy/definitions.ts';
import { noLimits } from '../../contracts/tenancy/definitions.ts';
import { PartitionCatalog } from '../../control/metadata/partition-catalog.ts';
import { TableCatalog } from '../../control/metadata/table-catalog.ts';
import type { TableDefinition } from '../../control/metadata/table-definition.ts';
import { MemoryEngine } from '../../engines/memory/memory-engine.ts';
import { ClusterViewFeed } from '../../server/cluster/cluster-view.ts';
import { Controller } from '../../server/cluster/controller.ts';
import { answerGroupQuestions } from '../../server/cluster/group-questions.ts';
import { PartitionChanges } from '../../server/cluster/partition-changes.ts';
import { ClusterPartitions, type PartitionOrders } from '../../server/planes/cluster-partitions.ts';
import { ClusterRoutes } from '../../server/planes/cluster-routes.ts';
import { ClusterRows } from '../../server/planes/cluster-rows.ts';
import type { PlaneHost, Planes } from '../../server/planes/plane-host.ts';
import type { PlaneMachine } from '../../server/planes/plane-machine.ts';
import { RedisTables } from '../../server/planes/redis-tables.ts';
import { FaultyDisk } from '../../storage-node/disk/faulty-disk.ts';
import type { FsyncPolicy } from '../../storage-node/replicator/partition-log.ts';
import type { RaftGroupLimits } from '../../storage-node/replicator/raft/raft-group-parts.ts';
import type { EnginePool } from '../../storage-node/replicator/simulation/engine-pool.ts';
import { Random } from '../../storage-node/replicator/simulation/timeline.ts';
import { systemClock } from '../../universal-row/environment.ts';
import type { MetadataService, NodeMetadata } from './metadata.ts';
import type { OwnedTimeline, Owner } from './owned-timeline.ts';
import { type FrontClient, RedisFront, registry } from './redis-front.ts';
import type { Host, Wires } from './wires.ts';

const databases = 3;
/** Replicas of each group. */
export const copies = 3;

export interface NodesWorld {
  readonly seed: number;
  readonly timeline: OwnedTimeline;
  readonly wires: Wires;
  readonly metadata: MetadataService;
  readonly engines: EnginePool;
  readonly random: Random;
  readonly limits: Partial<RaftGroupLimits>;
  readonly fsync: FsyncPolicy;
  /** Leaders of table 0 answer reads by leases. */
  readonly leases: boolean;
  /** Milliseconds after which replicas of a node that is away are made on others. */
  readonly rebuildAfterMs: number;
  readonly breach: (error: Error) => void;
}

/** What serves clients in one life. */
interface Life {
  readonly owner: Owner;
  readonly metadata: NodeMetadata;
  readonly rows: ClusterRows;
  readonly catalog: TableCatalog;
  readonly partitions: PartitionCatalog;
  readonly redis: RedisFront;
}

const leaderWaitMs = 4000;
const secret = Buffer.alloc(32, 7);
const model = 'memory';

const tenant: TenantDefinition = {
  ...{ name: 'default', number: 0, state: 'active', firstTable: 0, databases, limits: noLimits },
};

/** The tables that all nodes find, before the first of them starts. */
export async function layTables(metadata: MetadataService): Promise<void> {
  await TableCatalog.open(metadata.store, { databases, defaultModel: model });
}

export class GatewayNode {
  readonly number: number;
  /** Starts so far. */
  lives = 0;
  /** Boots of its machine. */
  #boots = 1;
  readonly #world: NodesWorld;
  #disk: FaultyDisk;
  #owner: Owner | undefined;
  #host: Host | undefined;
  #isListening = false;
  #life: Life | undefined;
  #inbox: (() => void)[] = [];
  #isScheduled = false;

  constructor(world: NodesWorld, number: number) {
    this.#world = world;
    this.number = number;
    const { timeline, random } = world;
    const syncTime = (): Promise<void> => timeline.sleep(0.1 + random.next() * 6);
    this.#disk = new FaultyDisk({ rng: new Random(random.below(2 ** 32)), syncTime });
  }

  get life(): Life | undefined {
    return this.#life;
  }

  /** Where others connect to; undefined while the node does not listen. */
  get host(): Host | undefined {
    return this.#isListening ? this.#host : undefined;
  }

  start(): void {
    if (this.#owner !== undefined) return;
    const owner: Owner = { isAlive: true, pausedUntil: 0, immediateAt: 0 };
    this.#owner = owner;
    this.#inbox = [];
    this.#isScheduled = false;
    const { timeline, breach } = this.#world;
    const failed = (error: Error): void => {
      if (owner.isAlive) breach(error);
    };
    timeline.as(owner, () => timeline.after(0, () => void this.#start(owner).catch(failed)));
  }

  async #start(owner: Owner): Promise<void> {
    const { metadata: service, timeline, breach, rebuildAfterMs, fsync, leases } = this.#world;
    const lives = ++this.lives;
    const disk = this.#disk;
    const metadata = service.enter(this.number, lives, owner);
    const fatal = (error: unknown): void => {
      if (owner.isAlive) breach(error as Error);
    };
    const report = (level: string, message: string, fields?: object): void => {
      const why = (fields as { err?: Error } | undefined)?.err;
      if (level === 'error') fatal(why ?? new Error(message));
    };
    const note = (): void => {};
    const host = this.#newHost(owner, lives);
    this.#host = host;
    const catalog = await TableCatalog.open(metadata.store, { databases, defaultModel: model });
    const feed = await ClusterViewFeed.open(metadata, fatal);
    const tables = new RedisTables(model, () => rows.localPods(), true);
    const none = { tenants: [], users: [], tokens: [] };
    tables.follow({ whole: true, revision: 1, ...none, tenants: [tenant], gone: none });
    const router = new Router();
    // Clients come once the node serves.
    const served: { redis?: RedisFront } = {};
    const routes = new ClusterRoutes({
      ...{ tables, router, rows: () => rows },
      entries: new Map(registry.entries().map((entry) => [entry.fullName, entry])),
      divided: (of) => served.redis?.server.changes.missed(of),
      pricerOf: () => undefined,
      quotaModeOf: () => undefined,
      consistencyOf: () => undefined,
      asksOf: undefined,
    });
    const rules = tables.rulesOf(model);
    const rows = await ClusterRows.open({
      data: {
        ...{ id: 1, node: this.number, incarnation: lives, secret, host: '', port: this.number },
        ...{ view: feed.view, maxWriteBytes: 2 ** 24, silenceMs: undefined },
      },
      ...{ machine: this.#machine(host, disk), directory: '/rows', fsync },
      ...{ segmentBytes: 256 * 1024, acceptLoss: false, keepLogBytes: 0, admission: undefined },
      newEngine: async (_, directory) => new MemoryEngine({ directory, disk, clock: systemClock }),
      podOptions: () => ({
        ...{ tables: rules, clock: systemClock, rng: { next: () => 0.5 } },
        ...{ maxMemoryBytes: Infinity, checkpointBytes: Infinity },
      }),
      pricerOf: () => ({ price: () => 0 }) as never,
      groupOf: (table) => routes.groupOf(table),
      knows: (number) => tables.knows(number),
      successorOf: (number) => routes.successorOf(number),
      answerPartition: (question) => changing.answer(question),
      refusalOf: () => undefined,
      leaderWaitMs,
      loadedScripts: () => [],
      scriptsOf: () => undefined,
      nodeIsThere: note,
      leaderMoved: note,
      answer: note,
      changes: () => served.redis?.server.changes,
      heard: () => true,
      monitors: { heard: note, watched: note },
      ...{ report, fatal },
    });
    const route = (): void => {
      router.setByTable((table) => routes.to(table), [rows.ticks], tables.tablesOfPartitions());
      routes.mapsChanged();
      if (!leases) return;
      const groups = tables.partitionsOf(0).map(({ number }) => routes.groupOf(number) ?? 0);
      rows.setLeases(new Set(groups));
    };
    const changing = new ClusterPartitions({
      podOf: (number, of) => rows.podOfGroup(routes.groupOfModel(number, of) ?? 0),
      pods: () => rows.localPods(),
      askLeader: (number, question) => rows.askLeader(number, question),
      adopt: (definition) => {
        tables.divide(definition);
        route();
      },
      report,
    });
    const adopt = async (view: ClusterView): Promise<void> => {
      routes.setGroups(view.groups);
      await rows.setView(view);
      route();
    };
    tables.setDefinitions(catalog.definitions());
    await adopt(feed.view);
    const redis = (served.redis = new RedisFront({ timeline, host, router, report, breach }));
    redis.server.elsewhere = rows;
    redis.server.changes.elsewhere = rows.changes;

    const planes = planesOf({
      partitionStep: (orders) => changing.step(orders as PartitionOrders),
      groupStatus: async () => rows.status(),
      transferGroup: async (order) => {
        const { group, to } = order as { group: number; to: number };
        rows.transfer(group, to);
      },
    });
    await catalog.attach({
      isCluster: true,
      rowCount: async () => undefined,
      setTables: async (definitions: readonly TableDefinition[]) => {
        tables.setDefinitions(definitions);
        route();
      },
      undefinedTables: async () => [],
      setDefaultModel: async () => {},
    });
    const partitions = new PartitionCatalog(catalog, note);
    partitions.attach(
      new PartitionChanges({
        ...{ metadata, planes, tables: catalog, level: () => Infinity, report: note, made: note },
        sizes: async () => [],
      }),
    );
    catalog.follow(note);
    answerGroupQuestions(metadata.handlers, planes);
    feed.onChange((view) => void adopt(view).catch(fatal));
    await adopt(feed.view);
    new Controller({
      metadata,
      catalogs: () => ({
        ...{ tenants: [0], tables: catalog.definitions(), defaultModel: model },
        ...{ ownerOf: () => 0, seriesPartitions: 0 },
      }),
      policy: () => ({ replicas: copies, leastNodes: copies, rebuildAfterMs }),
      report: note,
    }).start();
    this.#life = { owner, metadata, rows, catalog, partitions, redis };
  }

  #newHost(owner: Owner, lives: number): Host {
    const context: LinkContext = {
      identity: { cluster: '1', node: String(this.number), incarnation: lives, level: 1 },
      secret,
    };
    return {
      ...{ number: this.number, owner, context, services: new Map() },
      // Another interval for each life of a process: links with the same one share a timer.
      pingMs: 250 + (this.#world.seed * 1000 + this.number * 100 + lives) / 1e9,
      soon: (act) => {
        if (!owner.isAlive) return;
        this.#inbox.push(act);
        this.#schedule(owner);
      },
    };
  }

  #machine(host: Host, disk: FaultyDisk): PlaneMachine {
    const { engines, random, limits, wires } = this.#world;
    return {
      disk,
      dial: wires.dialFor(host),
      listen: async () => {
        if (this.#host === host) this.#isListening = true;
        return {
          serve: (purpose, service) => {
            if (service === undefined) host.services.delete(purpose);
            else host.services.set(purpose, service);
          },
          close: async () => {},
        };
      },
      raftOptions: () => ({
        ...{ rng: new Random(random.below(2 ** 32)), boot: String(this.#boots), ballastBytes: 0 },
        engine: engines.take(new Random(random.below(2 ** 32))),
        payloadCacheBytes: 16 * 1024,
        limits: { ...limits, maxMessageBytes: 8 * 1024 },
      }),
    };
  }

  /** The process ends at once: what it has written stays. If its machine loses power, what it has synced does. */
  kill(losesPower: boolean): void {
    const owner = this.#owner;
    if (owner === undefined) return;
    owner.isAlive = false;
    this.#world.metadata.left(this.number);
    if (this.#host !== undefined) this.#world.wires.ended(this.#host);
    this.#owner = undefined;
    this.#host = undefined;
    this.#isListening = false;
    this.#life?.redis.ended();
    this.#life = undefined;
    this.#inbox = [];
    if (losesPower) this.#boots++;
    this.#disk = losesPower ? this.#disk.crash() : this.#disk.kill();
  }

  /** The process stands still for so long. */
  pause(ms: number): void {
    if (this.#owner !== undefined) this.#owner.pausedUntil = this.#world.timeline.now + ms;
  }

  /** Has the node do something, while it serves. */
  do(act: (life: Life) => unknown): void {
    const life = this.#life;
    if (life !== undefined) this.#world.timeline.as(life.owner, () => act(life));
  }

  status(group: number): ReplicaStatus | undefined {
    return this.#life?.rows.status().find((one) => one.group === group);
  }

  /** Undefined while the node does not serve. */
  connect(): FrontClient | undefined {
    const { timeline } = this.#world;
    const life = this.#life;
    return life && timeline.as(life.owner, () => life.redis.connect());
  }

  #schedule(owner: Owner): void {
    if (this.#isScheduled || !owner.isAlive) return;
    this.#isScheduled = true;
    const { timeline } = this.#world;
    timeline.as(owner, () =>
      timeline.after(0, () => {
        this.#isScheduled = false;
        this.#turn();
      }),
    );
  }

  /** What the sockets of the process have. */
  #turn(): void {
    try {
      for (const act of this.#inbox.splice(0)) act();
    } catch (error) {
      this.#world.breach(error as Error);
    }
  }
}

/** The Redis plane of a node, as its control plane calls it. */
function planesOf(calls: Record<string, (body: unknown) => Promise<unknown>>): Planes {
  const call = async (what: string, body: unknown): Promise<unknown> => {
    const answer = calls[what];
    if (answer === undefined) throw new Error(`no answer to ${what}`);
    return await answer(body);
  };
  const redis = { name: 'redis', isUp: true, call } as unknown as PlaneHost;
  return { redis, influx: { name: 'influx', isUp: false } as unknown as PlaneHost };
}
