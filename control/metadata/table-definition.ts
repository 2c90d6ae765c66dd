// Definition of a table in the catalog. The data plane gets the definitions at its start and on every change.

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
}

/** Properties of a database of InfluxDB. Databases without any are not in the catalog. */
export interface SeriesTableDefinition extends TableProperties {
  readonly model: typeof seriesModel;
  /** Number of the tenant whose it is. */
  readonly tenant: number;
  /** As its clients know it. */
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
