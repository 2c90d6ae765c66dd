// The pages of the admin server.

import { fastify, type FastifyInstance, type FastifyReply } from 'fastify';
import type { AdminServerOptions } from './admin-options.ts';
import { answerFailures } from './answers.ts';
import { auditCalls } from './audit-hook.ts';
import { auditRoutes } from './audit-routes.ts';
import { authenticationRoutes } from './authentication-routes.ts';
import { Authenticator } from './authenticator.ts';
import { configRoutes } from './config-routes.ts';
import { databaseRoutes } from './database-routes.ts';
import { guard } from './gate.ts';
import type { Health } from './health.ts';
import type { MetricsPage } from './metrics-page.ts';
import { monitorRoutes } from './monitor-routes.ts';
import { collectRoutes, openApiDocument } from './openapi.ts';
import { scopeOf } from './principal.ts';
import { readQueries } from './query-numbers.ts';
import { addRoute } from './route.ts';
import * as schema from './schemas.ts';
import { tableRoutes } from './table-routes.ts';
import { tenantRoutes } from './tenant-routes.ts';
import { tokenRoutes } from './token-routes.ts';
import { userRoutes } from './user-routes.ts';

/** Ready to be given requests through its `routing`. */
export async function adminApp(options: AdminServerOptions): Promise<FastifyInstance> {
  const { tenants, tables, planes, audit, onError } = options;
  const app = fastify({
    bodyLimit: 64 * 1024,
    // Longer than any name of ours, percent signs and all.
    routerOptions: { maxParamLength: 1000 },
    // Malformed paths match no route.
    frameworkErrors: ({ statusCode = 400 }, _request, reply: FastifyReply) => {
      void reply.code(statusCode).send({ error: 'this is not the path of a page' });
    },
    // Bodies that do not match the schema are refused, not coerced or stripped.
    ajv: {
      customOptions: { coerceTypes: false, removeAdditional: false, allowUnionTypes: true },
    },
  });
  const routes = collectRoutes(app);
  guard(app, {
    authenticator: new Authenticator(options.operatorTokens, tenants),
    isLocal: options.isLocal,
    requestsPerSecond: options.requestsPerSecond,
  });
  takeEmptyBodies(app);
  readQueries(app);
  auditCalls(app, audit, onError);
  answerFailures(app, onError);

  healthRoutes(app, options.health);
  metricsRoute(app, options.metrics);
  tenantRoutes(app, tenants);
  userRoutes(app, tenants);
  authenticationRoutes(app, tenants);
  tokenRoutes(app, tenants);
  databaseRoutes(app, tenants, planes);
  tableRoutes(app, tables);
  monitorRoutes(app, options);
  configRoutes(app, options.config);
  auditRoutes(app, audit);
  for (const register of options.moreRoutes ?? []) register(app);
  addRoute(
    app,
    {
      method: 'GET',
      url: '/',
      access: 'local',
      summary: 'What this is, and what pages there are.',
      answer: schema.welcome,
    },
    () => ({
      name: 'polyrow',
      version: options.version,
      pages: [...new Set(routes.map(({ url }) => url))],
    }),
  );
  let document: schema.Schema | undefined;
  addRoute(
    app,
    {
      method: 'GET',
      url: '/v1/openapi.json',
      access: 'read',
      summary: 'This API as an OpenAPI document.',
      answer: { type: 'object' },
    },
    () => (document ??= openApiDocument(routes, options.version)),
  );
  await app.ready();
  return app;
}

/** Some programs say that they send JSON, and then send nothing. */
function takeEmptyBodies(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error');
  app.removeContentTypeParser('application/json');
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body === '') done(null);
    else void parse(request, body as string, done);
  });
}

function healthRoutes(app: FastifyInstance, health: Health): void {
  addRoute(
    app,
    {
      method: 'GET',
      url: '/livez',
      access: 'open',
      summary: 'Whether it answers at all.',
      answer: schema.health,
    },
    () => ({ status: 'alive' }),
  );
  for (const [url, access] of [
    ['/readyz', 'open'],
    ['/healthz', 'local'],
  ] as const) {
    addRoute(
      app,
      {
        method: 'GET',
        url,
        access,
        summary: 'Whether it is fit for traffic; 503 with the reasons when it is not.',
        answer: schema.health,
      },
      async ({ reply }) => {
        const reasons = await health.problems();
        if (reasons.length === 0) return { status: 'ready' };
        reply.code(503);
        return { status: 'not ready', reasons };
      },
    );
  }
}

function metricsRoute(app: FastifyInstance, metrics: MetricsPage): void {
  addRoute(
    app,
    {
      method: 'GET',
      url: '/metrics',
      access: 'local',
      summary: 'Metrics for Prometheus. A tenant gets those that bear its name.',
      answer: schema.text,
    },
    async ({ request, reply }) => {
      const tenant = request.principal && scopeOf(request.principal);
      const { contentType, text } = await metrics.page(tenant);
      reply.header('content-type', contentType);
      return text;
    },
  );
}
