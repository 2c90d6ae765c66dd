// /v1/tenants/:tenant/databases: Redis databases, which are numbers and exist from a tenant's
// start, and InfluxDB databases, which are created by name.

import type { FastifyInstance } from 'fastify';
import type { DatabaseInfo } from '../monitor/database-info.ts';
import type { TenantCatalog } from '../tenants/tenant-catalog.ts';
import { checkDatabaseName } from '../tenants/tenant-rules.ts';
import type { PlaneAccess } from './plane-access.ts';
import { addRoute } from './route.ts';
import * as schema from './schemas.ts';

type DatabaseView = DatabaseInfo & { kind: PlaneAccess['name'] };

export function databaseRoutes(
  app: FastifyInstance,
  tenants: TenantCatalog,
  planes: readonly PlaneAccess[],
): void {
  const named = planes.find(({ name }) => name === 'influx');

  addRoute(
    app,
    {
      method: 'GET',
      url: '/v1/tenants/:tenant/databases',
      access: 'readTenant',
      summary: 'Databases of a tenant that hold something or were made.',
      answer: schema.listOf('databases', schema.database),
    },
    async ({ path }) => {
      const { number } = tenants.find(path['tenant']!);
      const views = planes.map(async (plane): Promise<DatabaseView[]> => {
        const databases = await plane.databases(number);
        return databases.map((database) => ({ kind: plane.name, ...database }));
      });
      return { databases: (await Promise.all(views)).flat() };
    },
  );
  if (named === undefined) return;

  addRoute<{ name: string }>(
    app,
    {
      method: 'POST',
      url: '/v1/tenants/:tenant/databases',
      access: 'manageTenant',
      summary: 'Make an InfluxDB database. One that is there stays as it is.',
      body: schema.newDatabase,
      answer: schema.database,
      status: 201,
    },
    async ({ path, body: { name } }): Promise<DatabaseView> => {
      checkDatabaseName(name);
      const { number } = tenants.lasting(path['tenant']!);
      await named.createDatabase({ tenant: number, name });
      return { kind: 'influx', name };
    },
  );

  addRoute(
    app,
    {
      method: 'DELETE',
      url: '/v1/tenants/:tenant/databases/:database',
      access: 'manageTenant',
      summary: 'Drop an InfluxDB database with all that is in it.',
      answer: schema.nothing,
    },
    async ({ path }) => {
      checkDatabaseName(path['database']!);
      const { number } = tenants.lasting(path['tenant']!);
      await tenants.dropGrants(path['tenant']!, path['database']!);
      await named.dropDatabase({ tenant: number, name: path['database']! });
      return {};
    },
  );
}
