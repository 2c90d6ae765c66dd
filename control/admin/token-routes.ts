// Tokens: of a tenant's users, for its data; and those of the admin API itself.

import type { FastifyInstance } from 'fastify';
import { defaultUser } from '../../contracts/tenancy/definitions.ts';
import type { AdminRole } from '../tenants/admin-token.ts';
import type { TenantCatalog } from '../tenants/tenant-catalog.ts';
import { type AdminPrincipal, NotAllowed, scopeOf } from './principal.ts';
import { addRoute, callerOf } from './route.ts';
import * as schema from './schemas.ts';

export function tokenRoutes(app: FastifyInstance, tenants: TenantCatalog): void {
  addRoute(
    app,
    {
      method: 'GET',
      url: '/v1/tenants/:tenant/tokens',
      access: 'readTenant',
      summary: "Tokens of a tenant's users, the oldest first.",
      answer: schema.listOf('tokens', schema.token),
    },
    ({ path }) => ({ tokens: tenants.tokens.of(path['tenant']!).map(withoutDigest) }),
  );

  addRoute<{ user?: string; description?: string }>(
    app,
    {
      method: 'POST',
      url: '/v1/tenants/:tenant/tokens',
      access: 'manageTenant',
      summary: 'Make a token of a user, which may do what the user may.',
      body: schema.newToken,
      answer: schema.madeToken,
      status: 201,
    },
    async ({ path, body: { user = defaultUser, description } }) => {
      const { token, secret } = await tenants.tokens.create(path['tenant']!, user, description);
      return { ...withoutDigest(token), secret };
    },
  );

  addRoute(
    app,
    {
      method: 'DELETE',
      url: '/v1/tenants/:tenant/tokens/:id',
      access: 'manageTenant',
      summary: 'Revoke a token; at once.',
      answer: schema.nothing,
    },
    async ({ path }) => {
      await tenants.tokens.revoke(path['tenant']!, path['id']!);
      return {};
    },
  );
  adminTokenRoutes(app, tenants);
}

function adminTokenRoutes(app: FastifyInstance, tenants: TenantCatalog): void {
  addRoute(
    app,
    {
      method: 'GET',
      url: '/v1/tokens',
      access: 'read',
      summary: 'Tokens for the admin API, the oldest first.',
      answer: schema.listOf('tokens', schema.adminToken),
    },
    ({ request }) => {
      const scope = scopeOf(callerOf(request));
      return { tokens: tenants.adminTokens.of(scope).map(withoutDigest) };
    },
  );

  addRoute<{ role: AdminRole; tenant?: string; description?: string }>(
    app,
    {
      method: 'POST',
      url: '/v1/tokens',
      access: 'manage',
      summary: 'Make a token for the admin API. A tenant makes them for itself.',
      body: schema.newAdminToken,
      answer: schema.madeAdminToken,
      status: 201,
    },
    async ({ request, body: { role, tenant, description } }) => {
      const caller = callerOf(request);
      refuseHigher(caller, role);
      const owner = scopeOf(caller, tenant);
      const { token, secret } = await tenants.adminTokens.create(role, owner, description);
      return { ...withoutDigest(token), secret };
    },
  );

  addRoute(
    app,
    {
      method: 'DELETE',
      url: '/v1/tokens/:id',
      access: 'manage',
      summary: 'Revoke a token for the admin API; at once.',
      answer: schema.nothing,
    },
    async ({ request, path }) => {
      await tenants.adminTokens.revoke(path['id']!, scopeOf(callerOf(request)));
      return {};
    },
  );

  addRoute(
    app,
    {
      method: 'GET',
      url: '/v1/whoami',
      access: 'read',
      summary: 'Who asks.',
      answer: schema.caller,
    },
    ({ request }): AdminPrincipal => callerOf(request),
  );
}

function refuseHigher(caller: AdminPrincipal, role: AdminRole): void {
  if (caller.role === 'tenant' && role !== 'tenant') {
    throw new NotAllowed('a tenant makes tokens of the role tenant');
  }
}

function withoutDigest<T extends { digest: string }>(token: T): Omit<T, 'digest'> {
  const { digest, ...shown } = token;
  void digest;
  return shown;
}
