// Which group has a table's rows in a cluster, and the way there.

import type { GroupExecutor } from '../../access/gateway/pods/group-executor.ts';
import type { Route } from '../../access/gateway/router.ts';
import type { CommandEntry } from '../../access/redis/commands/registry.ts';
import { PartitionedTable } from '../../access/redis/partitions/partitioned-table.ts';
import type { GroupDefinition } from '../../contracts/cluster.ts';
import { isPartition } from '../../contracts/partition-map.ts';
import type { Consistency, QuotaMode } from '../../contracts/table-properties.ts';
import type { TableModel } from '../../control/metadata/table-definition.ts';
import type { ReadBounds } from '../../universal-row/command.ts';
import type { RowCommands } from '../../universal-row/executor.ts';
import type { RowPricer } from '../../request-units/row-pricer.ts';
import { type ClusterRows, groupKey, type GroupScope } from './cluster-rows.ts';
import type { RedisTables } from './redis-tables.ts';

export interface ClusterRoutesOptions {
  readonly tables: RedisTables;
  /** All commands, by full name. */
  readonly entries: ReadonlyMap<string, CommandEntry>;
  readonly rows: () => ClusterRows;
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
  readonly #divided = new Map<number, PartitionedTable>();

  constructor(options: ClusterRoutesOptions) {
    this.#options = options;
  }

  setGroups(groups: readonly GroupDefinition[]): void {
    this.#groups.clear();
    for (const definition of groups) this.#groups.set(groupKey(definition), definition.group);
  }

  #scopeOf(number: number): GroupScope {
    const { tables } = this.#options;
    const scope = { tenant: tables.ownerOf(number)?.number ?? -1, model: tables.modelOf(number) };
    return isPartition(number) ? { ...scope, partition: number } : scope;
  }

  /** Of a table or partition; undefined when the controller has made none yet. */
  groupOf(number: number): number | undefined {
    return this.#groups.get(groupKey(this.#scopeOf(number)));
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
      pods: [this.#options.rows().turns],
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

function boundsOf(consistency: Consistency | undefined): ReadBounds | undefined {
  switch (consistency?.kind) {
    case 'bounded':
      return consistency;
    case 'eventual':
      return { maxStalenessMs: Infinity, maxLagEntries: Infinity };
    default:
      return undefined;
  }
}
