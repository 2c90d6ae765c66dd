// Which groups there should be, as the catalogs of tenants and tables have it.

import type { GroupModel } from '../../contracts/cluster.ts';
import { isPartition } from '../../contracts/partition-map.ts';
import {
  partitionMapOf,
  type TableDefinition,
  type TableModel,
} from '../metadata/table-definition.ts';
import { type GroupPurpose, purposeKey } from './cluster-state.ts';

export interface Catalogs {
  /** Numbers of all tenants. */
  readonly tenants: readonly number[];
  readonly tables: readonly Pick<TableDefinition, 'id' | 'model' | 'placement'>[];
  /** Model of the tables without a definition. */
  readonly defaultModel: TableModel;
  /** Number of the tenant that owns a table; undefined when it has no owner any more. */
  readonly ownerOf: (table: number) => number | undefined;
  /** Partitions of each tenant's time series; one when left out. */
  readonly seriesPartitions?: number;
}

/** Each tenant has a group for each model of its undivided tables, and one of time series; each partition has its own. */
export function purposesOf(catalogs: Catalogs): GroupPurpose[] {
  const { tenants, tables, defaultModel, ownerOf, seriesPartitions: of = 1 } = catalogs;
  const found = new Map<string, GroupPurpose>();
  const add = (purpose: GroupPurpose): void => void found.set(purposeKey(purpose), purpose);
  for (const tenant of tenants) {
    add({ tenant, model: defaultModel });
    if (of === 1) add({ tenant, model: 'tsm' });
    for (let partition = 0; of > 1 && partition < of; partition++) {
      add({ tenant, model: 'tsm', series: { partition, of } });
    }
  }
  for (const table of tables) {
    const tenant = ownerOf(table.id);
    if (tenant === undefined) continue;
    // Targets of a change are filled before they are in the map.
    const targets = table.placement?.change?.targets ?? [];
    for (const { number, model } of [...partitionMapOf(table).partitions, ...targets]) {
      const partition = isPartition(number) ? { partition: number } : {};
      add({ tenant, model: model as GroupModel, ...partition });
    }
  }
  return [...found.values()];
}
