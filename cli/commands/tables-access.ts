// The tables of a server, for commands: through its admin API when it runs, else from its data directory.

import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describeTable, type TableDescription } from '../../control/admin/table-routes.ts';
import {
  TableCatalog,
  type TableChange,
  TableError,
} from '../../control/metadata/table-catalog.ts';
import type { TableDefinition } from '../../control/metadata/table-definition.ts';
import type { Config } from '../config/schema.ts';
import { DataDirectory, lockHolder } from '../lifecycle/data-directory.ts';
import { ExitError } from '../lifecycle/exit-error.ts';
import { openMetadata } from '../lifecycle/metadata.ts';
import { AdminClient } from './admin-client.ts';

export interface Tables {
  list(): Promise<TableDescription[]>;
  describe(table: string): Promise<TableDescription>;
  create(table: string, change: TableChange): Promise<TableDescription>;
  alter(table: string, change: TableChange): Promise<TableDescription>;
  close(): Promise<void>;
}

export async function openTables(config: Config, adminUrl: string | undefined): Promise<Tables> {
  const token = config['admin.token'];
  if (adminUrl !== undefined) return remoteTables(new AdminClient(adminUrl, token));
  const path = resolve(config['data-dir']);
  const holder = lockHolder(path);
  if (holder === undefined) return offlineTables(path, config);
  const endpoint = join(path, 'admin-endpoint');
  if (!existsSync(endpoint)) {
    throw new ExitError(`process ${holder} has ${path} open but is not ready yet: try again`);
  }
  return remoteTables(new AdminClient(readFileSync(endpoint, 'utf8').trim(), token));
}

function remoteTables(client: AdminClient): Tables {
  const page = (table: string) => `/v1/tables/${encodeURIComponent(table)}`;
  const one = async (method: string, path: string, body?: object) =>
    (await client.request(method, path, body)) as TableDescription;
  return {
    list: async () =>
      ((await client.request('GET', '/v1/tables')) as { tables: TableDescription[] }).tables,
    describe: (table) => one('GET', page(table)),
    create: (table, change) => one('POST', '/v1/tables', { table, ...change }),
    alter: (table, change) => one('PATCH', page(table), change),
    close: async () => {},
  };
}

async function offlineTables(path: string, config: Config): Promise<Tables> {
  const data = DataDirectory.open(path);
  try {
    const store = await openMetadata(data);
    const catalog = await TableCatalog.open(store, {
      databases: config['redis.databases'],
      defaultModel: config['redis.default-model'],
    });
    const describe = (definition: TableDefinition) => describeTable(catalog, definition);
    return {
      list: () => Promise.all(catalog.definitions().map(describe)),
      describe: (table) => inWords(async () => describe(catalog.find(table))),
      create: (table, change) => inWords(async () => describe(await catalog.create(table, change))),
      alter: (table, change) => inWords(async () => describe(await catalog.alter(table, change))),
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

async function inWords<T>(action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    throw error instanceof TableError ? new ExitError(error.message) : error;
  }
}
