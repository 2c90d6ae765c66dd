// Tables: /v1/tables, where one is `3` or `orders` in tenant default and `tenant/3` in another, and
// /v1/tenants/:tenant/tables.

import type { FastifyInstance } from 'fastify';
import type { TableCatalog, TableChange } from '../metadata/table-catalog.ts';
import type { TableDefinition } from '../metadata/table-definition.ts';
import { scopeOf } from './principal.ts';
import { addRoute, callerOf, type RouteDescription } from './route.ts';
import * as schema from './schemas.ts';

export interface TableDescription extends TableDefinition {
  tenant: string;
  /** The number by which its tenant's Redis clients SELECT it. */
  database: number;
  /** Rows in it; missing when no data plane can say. */
  rows?: number;
  /** Made or altered by a person, rather than following the defaults. */
  explicit: boolean;
  /** Model it takes on at the next start, if it is empty then. */
  wantedModel?: string;
}

/** Where tables are found, and by whom. */
interface Place {
  url: string;
  read: RouteDescription['access'];
  manage: RouteDescription['access'];
}

const places: readonly Place[] = [
  { url: '/v1/tables', read: 'read', manage: 'manage' },
  { url: '/v1/tenants/:tenant/tables', read: 'readTenant', manage: 'manageTenant' },
];

export function tableRoutes(app: FastifyInstance, catalog: TableCatalog): void {
  for (const place of places) routesAt(app, catalog, place);
}

function routesAt(app: FastifyInstance, catalog: TableCatalog, { url, read, manage }: Place): void {
  const describe = (definition: TableDefinition) => describeTable(catalog, definition);

  addRoute(
    app,
    {
      method: 'GET',
      url,
      access: read,
      summary: url.includes(':')
        ? 'Tables of a tenant, by database.'
        : "Tables of tenant default, or of the tenant that asks; of others those that aren't as they come.",
      answer: schema.listOf('tables', schema.table),
    },
    async ({ request, path }) => {
      const tenant = path['tenant'] ?? scopeOf(callerOf(request));
      const tables = tenant === undefined ? catalog.definitions() : catalog.tablesOf(tenant);
      return { tables: await Promise.all(tables.map(describe)) };
    },
  );

  addRoute(
    app,
    {
      method: 'GET',
      url: `${url}/:table`,
      access: read,
      summary: 'One table, by number or name.',
      answer: schema.table,
    },
    ({ request, path }) => {
      const within = path['tenant'] ?? scopeOf(callerOf(request));
      return describe(catalog.find(path['table']!, within));
    },
  );

  addRoute<TableChange & { table: number | string }>(
    app,
    {
      method: 'POST',
      url,
      access: manage,
      summary: 'Give a database properties of its own.',
      body: schema.newTable,
      answer: schema.table,
      status: 201,
    },
    async ({ request, path, body: { table, ...change } }) => {
      const within = path['tenant'] ?? scopeOf(callerOf(request));
      return await describe(await catalog.create(String(table), change, within));
    },
  );

  addRoute<TableChange>(
    app,
    {
      method: 'PATCH',
      url: `${url}/:table`,
      access: manage,
      summary: 'Change properties of a table; at once.',
      body: schema.tableChange,
      answer: schema.table,
    },
    async ({ request, path, body }) => {
      const within = path['tenant'] ?? scopeOf(callerOf(request));
      return await describe(await catalog.alter(path['table']!, body, within));
    },
  );

  addRoute(
    app,
    {
      method: 'DELETE',
      url: `${url}/:table`,
      access: manage,
      summary: 'Take back all properties of a table. Its rows stay.',
      answer: schema.table,
    },
    async ({ request, path }) => {
      const within = path['tenant'] ?? scopeOf(callerOf(request));
      return await describe(await catalog.reset(path['table']!, within));
    },
  );
}

export async function describeTable(
  catalog: TableCatalog,
  definition: TableDefinition,
): Promise<TableDescription> {
  const rows = await catalog.rowCount(definition.id);
  const wantedModel = catalog.wantedModel(definition.id);
  return {
    ...definition,
    ...catalog.placeOf(definition.id),
    explicit: catalog.isExplicit(definition.id),
    ...(rows === undefined ? {} : { rows }),
    ...(wantedModel === undefined ? {} : { wantedModel }),
  };
}
