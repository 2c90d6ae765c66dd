// /v1/tenants and limits.

import type { FastifyInstance } from 'fastify';
import type { TenantDefinition, TenantLimits } from '../../contracts/tenancy/definitions.ts';
import type { NewTenant, TenantCatalog } from '../tenants/tenant-catalog.ts';
import { scopeOf } from './principal.ts';
import { addRoute, callerOf } from './route.ts';
import * as schema from './schemas.ts';

// How long a caller waits for a tenant to be gone; it is answered 202 when that takes longer.
const dropPatienceMs = 10_000;

export function tenantRoutes(app: FastifyInstance, tenants: TenantCatalog): void {
  addRoute<undefined, { after?: number; limit?: number }>(
    app,
    {
      method: 'GET',
      url: '/v1/tenants',
      access: 'read',
      summary: 'Tenants, by number; up to 1000 in an answer.',
      query: schema.tenantQuery,
      answer: schema.listOf('tenants', schema.tenant),
    },
    ({ request, query }) => {
      const { after = -1, limit = schema.mostOfPage } = query;
      const scope = scopeOf(callerOf(request));
      const all = scope === undefined ? tenants.tenants() : [tenants.find(scope)];
      return { tenants: all.filter(({ number }) => number > after).slice(0, limit) };
    },
  );

  addRoute<NewTenant>(
    app,
    {
      method: 'POST',
      url: '/v1/tenants',
      access: 'operate',
      summary: 'Make a tenant, with a user `default`.',
      body: schema.newTenant,
      answer: schema.madeTenant,
      status: 201,
    },
    async ({ body }) => {
      const { tenant, password } = await tenants.createTenant(body);
      return { ...tenant, ...(body.password === undefined ? { password } : {}) };
    },
  );

  addRoute(
    app,
    {
      method: 'GET',
      url: '/v1/tenants/:tenant',
      access: 'readTenant',
      summary: 'One tenant.',
      answer: schema.tenant,
    },
    ({ path }) => tenants.find(path['tenant']!),
  );

  addRoute<{ state?: 'active' | 'suspended'; limits?: Partial<TenantLimits> }>(
    app,
    {
      method: 'PATCH',
      url: '/v1/tenants/:tenant',
      access: 'operate',
      summary: 'Suspend or resume a tenant, or change its limits; at once.',
      body: schema.tenantChange,
      answer: schema.tenant,
    },
    ({ path, body }) => tenants.alterTenant(path['tenant']!, body),
  );

  addRoute(
    app,
    {
      method: 'DELETE',
      url: '/v1/tenants/:tenant',
      access: 'operate',
      summary:
        'Drop a tenant with all its data. 202 when logins are refused, but data is still being deleted.',
      answer: schema.droppedTenant,
    },
    async ({ path, reply }): Promise<Pick<TenantDefinition, 'name' | 'number'>> => {
      const { name, number } = await tenants.dropTenant(path['tenant']!);
      if (!(await tenants.dropped({ name, number }, dropPatienceMs))) reply.code(202);
      return { name, number };
    },
  );

  addRoute(
    app,
    {
      method: 'GET',
      url: '/v1/tenants/:tenant/limits',
      access: 'readTenant',
      summary: 'Limits of a tenant.',
      answer: schema.limitsAnswer,
    },
    ({ path }) => ({ limits: tenants.find(path['tenant']!).limits }),
  );

  addRoute<Partial<TenantLimits>>(
    app,
    {
      method: 'PATCH',
      url: '/v1/tenants/:tenant/limits',
      access: 'operate',
      summary: 'Change limits of a tenant; the others stay.',
      body: schema.limitChange,
      answer: schema.limitsAnswer,
    },
    async ({ path, body }) => {
      const { limits } = await tenants.alterTenant(path['tenant']!, { limits: body });
      return { limits };
    },
  );
}
