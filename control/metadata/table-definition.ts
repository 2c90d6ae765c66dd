// What the catalog knows of a table. The data plane gets these at its start and on every change.

export const tableModels = ['memory', 'kv'] as const;
export type TableModel = (typeof tableModels)[number];

export interface TableDefinition {
  /** The number clients name it by (Redis: the database number). */
  id: number;
  name: string;
  /** The engine that holds its rows. */
  model: TableModel;
  /** Writes are refused. */
  readOnly: boolean;
  /** Milliseconds a new row lives when the command gives no expiry; 0 is for ever. */
  ttlDefaultMs: number;
  /** Bytes a row may have; 0 is no limit. */
  maxRowBytes: number;
}
