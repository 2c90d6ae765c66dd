// The tables of a server, for commands: through its admin API when it runs, else from its data directory.

import { resolve } from 'node:path';
import { SeriesTableCatalog } from '../../control/metadata/series-table-catalog.ts';
import { TableCatalog, TableError } from '../../control/metadata/table-catalog.ts';
import type { TableChange } from '../../control/metadata/table-definition.ts';
import { type TableDescription, Tables } from '../../control/metadata/tables.ts';
import { defaultTenant } from '../../contracts/tenancy/definitions.ts';
import type { Config } from '../../server/settings/schema.ts';
import { DataDirectory } from '../../server/lifecycle/data-directory.ts';
import { ExitError } from '../../server/lifecycle/exit-error.ts';
import { openMetadata } from '../../server/lifecycle/metadata.ts';
import { exitCodes } from '../../server/exit-codes.ts';
import type { AdminClient } from './admin-client.ts';
import { tablesPage } from './admin-pages.ts';
import { type AccessFlags, findServer, requireServer } from './server-access.ts';

export interface TablesAccess {
  list(): Promise<TableDescription[]>;
  describe(table: string): Promise<TableDescription>;
  create(table: string, change: TableChange): Promise<TableDescription>;
  alter(table: string, change: TableChange): Promise<TableDescription>;
  /** Takes back all properties; the rows stay. */
  reset(table: string): Promise<TableDescription>;
  close(): Promise<void>;
}

/** Tables of a single tenant are known to a running server only. */
export async function openTables(
  flags: AccessFlags,
  config: Config,
  tenant: string | undefined,
): Promise<TablesAccess> {
  if (tenant !== undefined) return remoteTables(requireServer(flags, config), tenant);
  const client = findServer(flags, config);
  if (client !== undefined) return remoteTables(client, undefined);
  return await offlineTables(resolve(config['data-dir']), config);
}

function remoteTables(client: AdminClient, tenant: string | undefined): TablesAccess {
  const all = tablesPage(tenant);
  const page = (table: string) => `${all}/${encodeURIComponent(table)}`;
  const one = async (method: string, path: string, body?: object) =>
    (await client.request(method, path, body)) as TableDescription;
  return {
    list: async () => (await client.get<{ tables: TableDescription[] }>(all)).tables,
    describe: (table) => one('GET', page(table)),
    create: (table, change) => one('POST', all, { table, ...change }),
    alter: (table, change) => one('PATCH', page(table), change),
    reset: (table) => one('DELETE', page(table)),
    close: async () => {},
  };
}

async function offlineTables(path: string, config: Config): Promise<TablesAccess> {
  const data = DataDirectory.open(path);
  try {
    const { store } = await openMetadata(data, config.metadata);
    const catalog = await TableCatalog.open(store, {
      databases: config['redis.databases'],
      defaultModel: config['redis.default-model'],
    });
    const tables = new Tables(catalog, await SeriesTableCatalog.open(store));
    return {
      list: () => tables.list(defaultTenant),
      describe: (table) => inWords(() => tables.describe(table)),
      create: (table, change) => inWords(() => tables.create(table, change)),
      alter: (table, change) => inWords(() => tables.alter(table, change)),
      reset: (table) => inWords(() => tables.reset(table)),
      close: async () => {
        await store.close();
        data.unlock();
      },
    };
  } catch (error) {
    data.unlock();
    throw error;
  }
}

const codeOf = {
  missing: exitCodes.missing,
  conflict: exitCodes.conflict,
  invalid: exitCodes.usage,
} as const;

async function inWords<T>(action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    throw error instanceof TableError ? new ExitError(error.message, codeOf[error.reason]) : error;
  }
}
