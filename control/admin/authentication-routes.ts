// /v1/authentication: whether wrong credentials are refused.

import type { FastifyInstance } from 'fastify';
import type { TenantCatalog } from '../tenants/tenant-catalog.ts';
import { addRoute } from './route.ts';
import * as schema from './schemas.ts';

export function authenticationRoutes(app: FastifyInstance, tenants: TenantCatalog): void {
  const view = (): object => ({ checksCredentials: tenants.checksCredentials });
  addRoute(
    app,
    {
      method: 'GET',
      url: '/v1/authentication',
      access: 'observe',
      summary: 'Whether wrong credentials are refused, as from the first password or token on.',
      answer: schema.authentication,
    },
    view,
  );
  addRoute<{ checksCredentials: false }>(
    app,
    {
      method: 'PATCH',
      url: '/v1/authentication',
      access: 'operate',
      summary: 'Ignore credentials again, as a new server does; 409 while a user has any.',
      body: schema.authenticationChange,
      answer: schema.authentication,
    },
    async () => {
      await tenants.resetAuthentication();
      return view();
    },
  );
}
