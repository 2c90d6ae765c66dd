// A node of a history with its Redis server, its gateway and its replicas of groups of rows in memory, all as in the server.

import { Router } from '../../access/gateway/router.ts';
import type { ClusterView } from '../../contracts/cluster.ts';
import type { TenantDefinition } from '../../contracts/tenancy/definitions.ts';
import { noLimits } from '../../contracts/tenancy/definitions.ts';
import { PartitionCatalog, type PartitionOrder } from '../../control/metadata/partition-catalog.ts';
import { TableCatalog } from '../../control/metadata/table-catalog.ts';
import type { TableDefinition } from '../../control/metadata/table-definition.ts';
import { MemoryEngine } from '../../engines/memory/memory-engine.ts';
import { PartitionChanges } from '../../server/cluster/partition-changes.ts';
import { ClusterPartitions, type PartitionOrders } from '../../server/planes/cluster-partitions.ts';
import { ClusterRoutes } from '../../server/planes/cluster-routes.ts';
import { ClusterRows } from '../../server/planes/cluster-rows.ts';
import { RedisTables } from '../../server/planes/redis-tables.ts';
import { systemClock } from '../../universal-row/environment.ts';
import type { MetadataService } from '../histories/metadata.ts';
import {
  attempt,
  type Life,
  NodeProcess,
  note,
  planesOf,
  secret,
  type Start,
} from '../histories/process.ts';
import { type FrontClient, RedisFront, registry } from './redis-front.ts';

const databases = 3;

/** What serves clients in one life. */
export interface RowsLife extends Life {
  readonly rows: ClusterRows;
  readonly catalog: TableCatalog;
  readonly partitions: PartitionCatalog;
  readonly redis: RedisFront;
}

const leaderWaitMs = 4000;
const model = 'memory';

const tenant: TenantDefinition = {
  ...{ name: 'default', number: 0, state: 'active', firstTable: 0, databases, limits: noLimits },
};

/** The tables that all nodes find, before the first of them starts. */
export async function layTables(metadata: MetadataService): Promise<void> {
  await TableCatalog.open(metadata.store, { databases, defaultModel: model });
}

export class GatewayNode extends NodeProcess<RowsLife> {
  protected override async open(start: Start): Promise<RowsLife> {
    const { owner, lives, host, disk, machine, metadata, feed, report, fatal } = start;
    const { timeline, breach, fsync, leases } = this.world;
    const catalog = await TableCatalog.open(metadata.store, { databases, defaultModel: model });
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
      ...{ machine, directory: '/rows', fsync },
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

    const planes = planesOf('redis', {
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
    feed.onChange((view) => void adopt(view).catch(fatal));
    await adopt(feed.view);
    this.control(start, planes, () => ({
      ...{ tenants: [0], tables: catalog.definitions(), defaultModel: model },
      ...{ ownerOf: () => 0, seriesPartitions: 0 },
    }));
    return {
      ...{ owner, metadata, rows, catalog, partitions, redis },
      status: () => rows.status(),
      transfer: (group, to) => rows.transfer(group, to),
      ended: () => redis.ended(),
    };
  }

  /** Undefined while the node does not serve. */
  connect(): FrontClient | undefined {
    const { life } = this;
    return life && this.world.timeline.as(life.owner, () => life.redis.connect());
  }

  // ---- orders of operators, which may be refused

  /** Has table 0 be split or merged. */
  reshape(order: PartitionOrder): void {
    this.do(({ partitions }) => attempt(() => partitions.order('0', order)));
  }

  cancel(): void {
    this.do(({ partitions }) => attempt(() => partitions.cancel('0')));
  }
}
