// Definition of a table in the catalog. The data plane gets the definitions at its start and on every change.

import { type Partition, type PartitionMap, undivided } from '../../contracts/partition-map.ts';
import type { TableProperties } from '../../contracts/table-properties.ts';

export const tableModels = ['memory', 'kv'] as const;
export type TableModel = (typeof tableModels)[number];

/** Model of tables that are InfluxDB databases. */
export const seriesModel = 'series';

export interface TableDefinition extends TableProperties {
  /** The number clients name it by (Redis: the database number). */
  readonly id: number;
  readonly name: string;
  /** The engine that holds its rows. */
  readonly model: TableModel;
  /** Absent for a table that was never divided: its rows are under its own number. */
  readonly placement?: TablePlacement | undefined;
}

/** Where the partitions of a table are. */
export interface TablePlacement extends PartitionMap {
  /** A change that is under way: begun again when the server starts. */
  readonly change?: PartitionChange | undefined;
  /** Why the last change in a cluster came to nothing, if it did. */
  readonly failure?: string | undefined;
}

/** The partitions of a table, without the change under way. */
export function partitionMapOf({
  id,
  model,
  placement,
}: Pick<TableDefinition, 'id' | 'model' | 'placement'>): PartitionMap {
  const { epoch, partitions } = placement ?? undivided(id, model);
  return { epoch, partitions };
}

/** Partitions that are copied to others, which then take their place. */
export interface PartitionChange {
  readonly sources: readonly number[];
  readonly targets: readonly Partition[];
  /** In a cluster: which attempt is under way. Numbers of a table only grow, from one change to the next as well. */
  readonly attempt?: number | undefined;
  /** In a cluster: the change must be abandoned. */
  readonly isCancelled?: boolean | undefined;
}

/** Maximum number of attempts of a change. Further numbers belong to the next change. */
const mostAttempts = 1024;

/** The change as a cluster carries it out, in numbered attempts. */
export function inCluster({ sources, targets }: PartitionChange): PartitionChange {
  return {
    sources,
    targets: targets.map((target) => ({ ...target, isCopy: true })),
    attempt: targets[0]!.number * mostAttempts,
  };
}

/** The definition with its partitions so. When all of them are of one model the table is. */
export function placedAs(definition: TableDefinition, placement: TablePlacement): TableDefinition {
  const { partitions } = placement;
  const [first, ...others] = new Set(partitions.map(({ model }) => model as TableModel));
  const model = others.length === 0 ? first! : definition.model;
  return { ...definition, model, placement, partitions: partitions.length };
}

/** Properties of a database of InfluxDB. Databases without any are not in the catalog. */
export interface SeriesTableDefinition extends TableProperties {
  readonly model: typeof seriesModel;
  /** Number of the tenant whose it is. */
  readonly tenant: number;
  /** Name as its clients know it. */
  readonly name: string;
}

/** A change of a table's properties. A consistency without bounds has the default ones. */
export type TableChange = Partial<
  Omit<TableProperties, 'model' | 'consistency'> & {
    name: string;
    model: TableModel | typeof seriesModel;
    consistency: TableProperties['consistency'] | TableProperties['consistency']['kind'];
  }
>;
