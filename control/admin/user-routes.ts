// /v1/tenants/:tenant/users. Responses contain no passwords, only whether there are any.

import type { FastifyInstance } from 'fastify';
import type { Privilege, UserDefinition } from '../../contracts/tenancy/definitions.ts';
import type { TenantCatalog } from '../tenants/tenant-catalog.ts';
import { newPassword } from '../tenants/token-secrets.ts';
import { allRules } from '../tenants/user-definitions.ts';
import { addRoute } from './route.ts';
import * as schema from './schemas.ts';

export type UserView = Omit<UserDefinition, 'secrets'> & { hasPassword: boolean };

interface UserBody {
  password?: string;
  enabled?: boolean;
  open?: boolean;
  rules?: string;
  influxAdmin?: boolean;
  grants?: Record<string, Privilege>;
}

export function userRoutes(app: FastifyInstance, tenants: TenantCatalog): void {
  addRoute<undefined, { after?: string; limit?: number }>(
    app,
    {
      method: 'GET',
      url: '/v1/tenants/:tenant/users',
      access: 'readTenant',
      summary: 'Users of a tenant, by name; up to 1000 in an answer.',
      query: schema.userQuery,
      answer: schema.listOf('users', schema.user),
    },
    ({ path, query: { after = '', limit = schema.mostOfPage } }) => {
      const users = tenants.users(path['tenant']!).filter(({ name }) => name > after);
      return { users: users.slice(0, limit).map(viewOf) };
    },
  );

  addRoute<UserBody & { name: string }>(
    app,
    {
      method: 'POST',
      url: '/v1/tenants/:tenant/users',
      access: 'manageTenant',
      summary: 'Create a user. Without rights given, it may do everything in its tenant.',
      body: schema.newUser,
      answer: schema.madeUser,
      status: 201,
    },
    async ({ path, body: { name, password, ...change } }) => {
      const isGiven = password !== undefined || change.open === true;
      const secret = isGiven ? password : newPassword();
      const user = await tenants.setUser({
        tenant: path['tenant']!,
        name,
        expect: 'new',
        change: { ...defaultRights(change), ...change },
        ...(secret === undefined ? {} : { password: secret }),
      });
      return { ...viewOf(user), ...(isGiven ? {} : { password: secret }) };
    },
  );

  addRoute(
    app,
    {
      method: 'GET',
      url: '/v1/tenants/:tenant/users/:user',
      access: 'readTenant',
      summary: 'One user.',
      answer: schema.user,
    },
    ({ path }) => viewOf(tenants.user(path['tenant']!, path['user']!)),
  );

  addRoute<UserBody>(
    app,
    {
      method: 'PATCH',
      url: '/v1/tenants/:tenant/users/:user',
      access: 'manageTenant',
      summary: 'Change a user; at once. A password takes the place of all it had.',
      body: schema.userChange,
      answer: schema.user,
    },
    async ({ path, body: { password, ...change } }) =>
      viewOf(
        await tenants.setUser({
          tenant: path['tenant']!,
          name: path['user']!,
          expect: 'there',
          change,
          ...(password === undefined ? {} : { password }),
        }),
      ),
  );

  addRoute(
    app,
    {
      method: 'DELETE',
      url: '/v1/tenants/:tenant/users/:user',
      access: 'manageTenant',
      summary: 'Drop a user with its tokens. Its connections end.',
      answer: schema.nothing,
    },
    async ({ path }) => {
      await tenants.dropUser(path['tenant']!, path['user']!);
      return {};
    },
  );
}

/** Rights given for one protocol only leave none for the other. */
function defaultRights({ rules, influxAdmin, grants }: UserBody): UserBody {
  const isSaid = rules !== undefined || influxAdmin !== undefined || grants !== undefined;
  return isSaid ? {} : { rules: allRules, influxAdmin: true };
}

function viewOf({ secrets, ...user }: UserDefinition): UserView {
  return { ...user, hasPassword: secrets.length > 0 };
}
