// The OpenAPI document, made from the descriptions by which the routes were registered.

import type { FastifyInstance } from 'fastify';
import type { Access } from './principal.ts';
import type { RouteDescription } from './route.ts';
import { errorAnswer, type Schema } from './schemas.ts';

const whoMay: Readonly<Record<Access, string>> = {
  open: 'Open to everyone.',
  local: 'Open on this machine where the API is served to this machine only; else for every role.',
  read: 'For every role; a tenant sees its own objects.',
  manage: 'For operators; for tenants on their own objects.',
  readTenant: 'For operators, viewers, and the tenant itself.',
  manageTenant: 'For operators and the tenant itself.',
  observe: 'For operators and viewers.',
  operate: 'For operators.',
};

/** The routes that are registered from here on, in order. */
export function collectRoutes(app: FastifyInstance): readonly RouteDescription[] {
  const routes: RouteDescription[] = [];
  app.addHook('onRoute', ({ config, method }) => {
    // A HEAD beside every GET goes without saying.
    if (config?.admin !== undefined && method === config.admin.method) routes.push(config.admin);
  });
  return routes;
}

export function openApiDocument(routes: readonly RouteDescription[], version: string): Schema {
  const paths: Record<string, Record<string, Schema>> = {};
  for (const route of routes) {
    const path = route.url.replaceAll(/:(\w+)/g, '{$1}');
    (paths[path] ??= {})[route.method.toLowerCase()] = operation(route);
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Polyrow admin API', version, license: { name: 'Apache-2.0' } },
    paths,
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
      schemas: { Error: errorAnswer },
      responses: {
        Error: {
          description: 'What is wrong.',
          content: json({ $ref: '#/components/schemas/Error' }),
        },
      },
    },
  };
}

function operation(route: RouteDescription): Schema {
  const { access, summary, body, answer, status = 200 } = route;
  return {
    operationId: operationId(route),
    summary,
    description: whoMay[access],
    security: access === 'open' ? [] : access === 'local' ? [{}, { token: [] }] : [{ token: [] }],
    parameters: [...pathParameters(route), ...queryParameters(route)],
    ...(body === undefined ? {} : { requestBody: { required: true, content: json(body) } }),
    responses: {
      [status]: { description: 'Done.', content: contentOf(route, answer) },
      default: { $ref: '#/components/responses/Error' },
    },
  };
}

/** `GET /v1/tenants/:tenant/users` is `getTenantsTenantUsers`. */
function operationId({ method, url }: RouteDescription): string {
  const words = url.replace(/^\/v1/, '').split(/[/:._-]+/);
  const name = words.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join('');
  return method.toLowerCase() + name;
}

function pathParameters({ url }: RouteDescription): Schema[] {
  return [...url.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
}

function queryParameters({ query }: RouteDescription): Schema[] {
  const properties = (query?.['properties'] ?? {}) as Record<string, Schema>;
  return Object.entries(properties).map(([name, schema]) => ({ name, in: 'query', schema }));
}

function contentOf({ url }: RouteDescription, schema: Schema): Schema {
  return url === '/metrics' ? { 'text/plain': { schema } } : json(schema);
}

function json(schema: Schema): Schema {
  return { 'application/json': { schema } };
}
