// Which group has a table's rows in a cluster, and the way there.

import { GroupExecutor } from '../../access/gateway/pods/group-executor.ts';
import type { Route, Router } from '../../access/gateway/router.ts';
import type { CommandEntry } from '../../access/redis/commands/registry.ts';
import { PartitionedTable } from '../../access/redis/partitions/partitioned-table.ts';
import type { GroupDefinition } from '../../contracts/cluster.ts';
import { isPartition, type Partition, undivided } from '../../contracts/partition-map.ts';
import { boundsOf, type Consistency, type QuotaMode } from '../../contracts/table-properties.ts';
import { type TableModel, tableModels } from '../../control/metadata/table-definition.ts';
import type { RowCommands } from '../../universal-row/executor.ts';
import type { RowPricer } from '../../request-units/row-pricer.ts';
import { type ClusterRows, groupKey, type GroupScope } from './cluster-rows.ts';
import type { RedisTables } from './redis-tables.ts';

interface ClusterRoutesOptions {
  readonly tables: RedisTables;
  /** All commands, by full name. */
  readonly entries: ReadonlyMap<string, CommandEntry>;
  readonly rows: () => ClusterRows;
  readonly router: Router;
  /** A table of the tenant is divided otherwise. */
  readonly divided: (tenant: number | undefined) => void;
  readonly pricerOf: (model: TableModel) => RowPricer | undefined;
  readonly quotaModeOf: (table: number) => QuotaMode | undefined;
  readonly consistencyOf: (table: number) => Consistency | undefined;
  /** Whether commands about a whole table ask a partition's pod; all of them when undefined. */
  readonly asksOf: ((pod: RowCommands) => boolean) | undefined;
}

export class ClusterRoutes {
  readonly #options: ClusterRoutesOptions;
  /** By `groupKey`. */
  readonly #groups = new Map<string, number>();
  readonly #ofPartitions = new Map<number, number>();
  readonly #divided = new Map<number, PartitionedTable>();
  /** Of each table that is divided, or about to be: its partitions as of the last look. */
  readonly #maps = new Map<number, readonly Partition[]>();
  /** Tables of partitions that have given way to others. */
  readonly #tablesOfFormer = new Map<number, number>();
  /** Groups that had the rows of tables before these were divided. */
  readonly #formerGroups = new Map<number, number>();

  constructor(options: ClusterRoutesOptions) {
    this.#options = options;
  }

  setGroups(groups: readonly GroupDefinition[]): void {
    this.#groups.clear();
    this.#ofPartitions.clear();
    for (const definition of groups) {
      const { group, partition } = definition;
      this.#groups.set(groupKey(definition), group);
      if (partition !== undefined) this.#ofPartitions.set(partition, group);
    }
  }

  #scopeOf(number: number): GroupScope {
    const { tables } = this.#options;
    return scopeOf(number, tables.modelOf(number), tables.ownerOf(number)?.number);
  }

  /** Group of a table or partition; undefined when the controller has made none yet. */
  groupOf(number: number): number | undefined {
    // Called for each command of another process: no key is built for tables that are not divided.
    if (isPartition(number)) return this.#ofPartitions.get(number);
    // The closed group informs gateways that do not know the change yet.
    if (this.#options.tables.isDivided(number)) return this.#formerGroups.get(number);
    return this.#groups.get(groupKey(this.#scopeOf(number)));
  }

  /** Of a table or partition whose rows are of this model. */
  groupOfModel(number: number, model: string): number | undefined {
    if (isPartition(number)) return this.#ofPartitions.get(number);
    const tenant = this.#options.tables.ownerOf(number)?.number ?? -1;
    return this.#groups.get(groupKey({ tenant, model: model as TableModel }));
  }

  /** Executor that has the rows of a table or partition which its group has closed; undefined while unknown. */
  successorOf(number: number): RowCommands | undefined {
    const { tables, router } = this.#options;
    if (!isPartition(number)) {
      return tables.isDivided(number) ? router.to(number).executor : undefined;
    }
    const table = this.#tablesOfFormer.get(number);
    // A group of an undivided table would take the partition's number for that of a table.
    return table !== undefined && tables.isDivided(table) ? router.to(table).executor : undefined;
  }

  /** Definitions have changed: commands that wait for replaced partitions, and observers of their rows, move to the new ones. */
  mapsChanged(): void {
    const { tables } = this.#options;
    for (const { id, placement } of tables.definitions) {
      const before = this.#maps.get(id);
      if (placement === undefined && before === undefined) continue;
      const now = tables.partitionsOf(id);
      this.#maps.set(id, now);
      const kept = new Set(now.map(({ number }) => number));
      for (const number of kept) this.#tablesOfFormer.delete(number);
      const gone = (before ?? undividedBefore(id)).filter(({ number }) => !kept.has(number));
      if (gone.length > 0) this.#replaced(id, gone, before !== undefined);
    }
  }

  /** `isKnown`: the table was divided so. Otherwise it may have been. */
  #replaced(table: number, gone: readonly Partition[], isKnown: boolean): void {
    const { rows, router, tables, divided } = this.#options;
    const observe: RowCommands['observe'] = (_, key, observer) => {
      router.to(table).executor.observe(table, key, observer);
    };
    const tenant = tables.ownerOf(table)?.number;
    // As the table was divided before.
    const lanes = this.#divided.get(table)?.lanes ?? [];
    for (const { number, model } of gone) {
      const group = this.groupOfModel(number, model);
      if (isPartition(number)) this.#tablesOfFormer.set(number, table);
      else if (isKnown && group !== undefined) this.#formerGroups.set(number, group);
      const scope = scopeOf(number, model as TableModel, tenant);
      // This node may have heard that the group is gone already. Or it does not know it yet, and has clients that wait for it.
      const lane = lanes.find(({ partition }) => partition.number === number)?.partition.pod;
      const before = lane instanceof GroupExecutor ? lane : rows().waitingFor(scope);
      const executor = rows().executor(group ?? 0) ?? before;
      executor?.replaced(number, observe);
    }
    divided(tenant);
  }

  #executorOf(number: number): GroupExecutor {
    const rows = this.#options.rows();
    const scope = this.#scopeOf(number);
    return rows.executor(this.#groups.get(groupKey(scope)) ?? 0) ?? rows.awaited(scope);
  }

  /** The way to a table, for as long as neither tables nor groups change. */
  to(table: number): Route {
    const { tables, pricerOf, quotaModeOf, consistencyOf } = this.#options;
    const model = tables.modelOf(table);
    const usual = {
      mayWait: true,
      isReplicated: true,
      bounds: boundsOf(consistencyOf(table)),
      pods: [this.#options.rows().ticks],
      pricer: pricerOf(model),
      quotaMode: quotaModeOf(table),
    };
    if (!tables.isDivided(table)) {
      const group = this.#executorOf(table);
      return { ...usual, executor: group, group };
    }
    const { entries, asksOf } = this.#options;
    let divided = this.#divided.get(table);
    if (divided === undefined) {
      divided = new PartitionedTable({ table, entries, asksOf });
      this.#divided.set(table, divided);
    }
    const map = tables.mapOf(table);
    divided.setMap(map, ({ number }) => this.#executorOf(number));
    return { ...usual, executor: divided };
  }
}

/** Where the rows may have been of a table that this node first sees divided: it may have missed the change. */
function undividedBefore(table: number): readonly Partition[] {
  return tableModels.flatMap((model) => undivided(table, model).partitions);
}

/** Scope of the group of a table or partition. */
function scopeOf(number: number, model: TableModel, tenant = -1): GroupScope {
  return isPartition(number) ? { tenant, model, partition: number } : { tenant, model };
}
