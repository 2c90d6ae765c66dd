// The catalog of tables as the Redis plane uses it: the engines it needs, and the location of each table's rows.

import type { Route, Router } from '../../access/gateway/router.ts';
import type { RemoteExecutor } from '../../access/gateway/pods/remote-executor.ts';
import type { TableDefinition, TableModel } from '../../control/metadata/table-definition.ts';
import type { DatabaseInfo } from '../../control/monitor/database-info.ts';
import { isPartition } from '../../contracts/partition-map.ts';
import { isLibraryTable } from '../../contracts/tenancy/library-tables.ts';
import { isShadowTable } from '../../storage-node/backup/shadow.ts';
import type { ClusterRoutes } from './cluster-routes.ts';
import type { LoopbackPods } from './loopback-pods.ts';
import type { PlaneAdmission } from './plane-admission.ts';
import type { PlaneCache } from './plane-cache.ts';
import type { PlanePartitions } from './plane-partitions.ts';
import type { RedisPlaneMeter } from './redis-metering.ts';
import type { RedisPartitions } from './redis-partitions.ts';
import type { RedisPods } from './redis-pods.ts';
import type { RedisTables } from './redis-tables.ts';

interface RedisCatalogOptions {
  readonly tables: RedisTables;
  readonly pods: RedisPods;
  readonly router: Router;
  readonly divided: RedisPartitions;
  readonly clusterRoutes: ClusterRoutes;
  readonly meter: RedisPlaneMeter;
  readonly admission: PlaneAdmission;
  readonly partitions: PlanePartitions;
  readonly cache: PlaneCache;
  /** Pods behind TCP, where they are. */
  readonly loopback: LoopbackPods | undefined;
  /** There may be clients. */
  readonly isServing: () => boolean;
}

export class RedisCatalog {
  readonly #options: RedisCatalogOptions;
  /** Executors of pods behind TCP. */
  readonly #remotes = new Map<TableModel, RemoteExecutor>();

  constructor(options: RedisCatalogOptions) {
    this.#options = options;
  }

  /** Applies a catalog: opens the needed pods, and updates the pods and the router. */
  async adopt(definitions: readonly TableDefinition[]): Promise<void> {
    const { tables, pods, divided, partitions, cache } = this.#options;
    const { defaultModel } = tables;
    const models = definitions.flatMap(({ model, placement }) => [
      model,
      ...(placement?.partitions ?? []).map((partition) => partition.model as TableModel),
    ]);
    for (const model of new Set([defaultModel, ...models])) {
      await pods.openModel(model);
    }
    // Checked in the same tick in which the catalog comes into force: no write can slip in between.
    const refusal = !this.#options.isServing() ? undefined : divided.refusal(definitions);
    if (refusal !== undefined) throw new Error(refusal);
    for (const table of definitions) {
      if (table.placement !== undefined) continue;
      for (const { model, pod } of pods.named()) {
        const rows = model === table.model ? 0 : pod.tableSize(table.id).rows;
        if (rows > 0) {
          throw new Error(
            `database ${table.id} cannot be of model ${table.model}: it holds ${rows} rows in the ${model} engine; empty it first (FLUSHDB)`,
          );
        }
      }
    }
    tables.setDefinitions(definitions);
    const bypassing = definitions
      .filter(({ cacheBypass }) => cacheBypass)
      .flatMap(({ id }) => tables.partitionsOf(id).map(({ number }) => number));
    for (const pod of pods.local()) pod.parts.engine.setCacheBypass?.(new Set(bypassing));
    partitions.setTables([...tables.definitions]);
    cache.setTables(definitions);
    this.route();
  }

  /** Another engine for the tables without a definition. */
  async adoptDefault(model: TableModel): Promise<void> {
    const { pods, tables } = this.#options;
    await pods.openModel(model);
    const { defaultModel } = tables;
    const holders = [...pods.named()].filter((one) => one.model === defaultModel);
    const held = this.undefinedTables().find((table) =>
      holders.some(({ pod }) => pod.tableSize(table).rows > 0),
    );
    if (model !== defaultModel && held !== undefined) {
      throw new Error(`database ${held} holds rows in the ${defaultModel} engine`);
    }
    tables.defaultModel = model;
    this.route();
  }

  /** Tells the router where rows are. */
  route(): void {
    const { tables, pods, router, clusterRoutes, divided, admission } = this.#options;
    if (pods.cluster !== undefined) {
      router.setByTable(
        (table) => clusterRoutes.to(table),
        [pods.cluster.ticks],
        tables.tablesOfPartitions(),
      );
      clusterRoutes.mapsChanged();
      pods.cluster.setLeases(this.#leasedGroups());
      admission.gateway.quotaModesChanged();
      return;
    }
    const exceptions = new Map<number, Route>();
    for (const { id, model, quotaMode } of tables.definitions) {
      const usual = { ...this.#routeTo(model), quotaMode };
      const route = divided.routeOf(id, usual);
      if (route !== undefined) exceptions.set(id, route);
      else if (model !== tables.defaultModel || quotaMode !== 'server') exceptions.set(id, usual);
    }
    router.set(this.#routeTo(tables.defaultModel), exceptions, tables.tablesOfPartitions());
    admission.gateway.quotaModesChanged();
  }

  /** Those with a table whose strong reads go by leases: others of the same group gain by it. */
  #leasedGroups(): Set<number> {
    const { tables, clusterRoutes } = this.#options;
    const groups = new Set<number>();
    for (const { id, consistency } of tables.definitions) {
      if (consistency.kind !== 'lease') continue;
      for (const { number } of tables.partitionsOf(id)) {
        const group = clusterRoutes.groupOf(number);
        if (group !== undefined) groups.add(group);
      }
    }
    return groups;
  }

  #routeTo(model: TableModel): Route {
    const { pods, meter, loopback } = this.#options;
    const pod = pods.ofModel(model);
    const pricer = meter.pricerOf(model);
    if (loopback !== undefined) {
      let remote = this.#remotes.get(model);
      if (remote === undefined) this.#remotes.set(model, (remote = loopback.newExecutor()));
      return { executor: remote, pods: [remote], remote, mayWait: true, pricer };
    }
    return { executor: pod, pods: [pod], mayWait: pods.mayWait(model), pricer };
  }

  undefinedTables(): number[] {
    const { tables, pods } = this.#options;
    const numbers = [...pods.local()].flatMap((pod) => pod.heldTables());
    const held = new Set(numbers.map((number) => tables.tableOf(number)));
    return [...held]
      .filter(
        (table) =>
          !tables.isDefined(table) &&
          !isPartition(table) &&
          !isLibraryTable(table) &&
          !isShadowTable(table),
      )
      .sort((a, b) => a - b);
  }

  databasesOf(number: number): DatabaseInfo[] {
    const { tables, pods } = this.#options;
    const tenant = tables.tenant(number);
    const infos: DatabaseInfo[] = [];
    for (let n = 0; n < (tenant?.databases ?? 0); n++) {
      const { rows } = pods.sizeOf(tenant!.firstTable + n, true);
      if (rows > 0) infos.push({ name: n, rows });
    }
    return infos;
  }
}
