// Tables: /v1/tables, where one is `3`, `orders` or `telegraf` in tenant default and `tenant/3` in another, and
// /v1/tenants/:tenant/tables.

import type { FastifyInstance } from 'fastify';
import type { TableChange } from '../metadata/table-definition.ts';
import type { TableDescription, Tables } from '../metadata/tables.ts';
import { modelProperties } from '../../contracts/table-properties.ts';
import { type AdminPrincipal, NotAllowed, scopeOf } from './principal.ts';
import { addRoute, callerOf, type RouteDescription } from './route.ts';
import * as schema from './schemas.ts';

/** Path, title and permission of the pages of tables. */
interface Place {
  url: string;
  read: RouteDescription['access'];
  manage: RouteDescription['access'];
}

const places: readonly Place[] = [
  { url: '/v1/tables', read: 'read', manage: 'manage' },
  { url: '/v1/tenants/:tenant/tables', read: 'readTenant', manage: 'manageTenant' },
];

/** Properties that affect other tenants are for operators only. */
const operatorsProperties = ['partitions', 'writePriority', 'quotaMode'] as const;

export function tableRoutes(app: FastifyInstance, tables: Tables): void {
  for (const place of places) routesAt(app, tables, place);
}

function routesAt(app: FastifyInstance, tables: Tables, { url, read, manage }: Place): void {
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
      return { tables: await tables.list(tenant) };
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
      return tables.describe(path['table']!, within);
    },
  );

  addRoute<TableChange & { table: number | string }>(
    app,
    {
      method: 'POST',
      url,
      access: manage,
      summary: 'Give a database properties of its own; one of InfluxDB is made if it is not there.',
      body: schema.newTable,
      answer: schema.table,
      status: 201,
    },
    async ({ request, path, body: { table, ...change } }) => {
      const within = path['tenant'] ?? scopeOf(callerOf(request));
      expectMaySet(callerOf(request), change);
      return await tables.create(String(table), change, within);
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
      expectMaySet(callerOf(request), body);
      return await tables.alter(path['table']!, body, within);
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
      const caller = callerOf(request);
      if (caller.role === 'tenant') expectMayReset(await tables.describe(path['table']!, within));
      return await tables.reset(path['table']!, within);
    },
  );
}

function expectMaySet(caller: AdminPrincipal, change: TableChange): void {
  if (caller.role !== 'tenant') return;
  const named = operatorsProperties.find((property) => change[property] !== undefined);
  if (named !== undefined) throw new NotAllowed(`${named} is for operators to set`);
}

function expectMayReset(table: TableDescription): void {
  const usual = modelProperties(table.model);
  const named = operatorsProperties.find((property) => table[property] !== usual[property]);
  if (named !== undefined)
    throw new NotAllowed(`${named} is for operators to set, and is set here`);
}
