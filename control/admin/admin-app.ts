// The web application of the admin server, with all its routes.

import type { FastifyInstance } from 'fastify';
import type { AdminServerOptions } from './admin-options.ts';
import { answerFailures } from './answers.ts';
import { auditCalls } from './audit-hook.ts';
import { auditRoutes } from './audit-routes.ts';
import { authenticationRoutes } from './authentication-routes.ts';
import { Authenticator } from './authenticator.ts';
import { configRoutes } from './config-routes.ts';
import { databaseRoutes } from './database-routes.ts';
import { guard } from './guard.ts';
import { healthRoutes } from './health-routes.ts';
import type { MetricsPage } from './metrics-page.ts';
import { newAdminApp } from './new-admin-app.ts';
import { monitorRoutes } from './monitor-routes.ts';
import { collectRoutes, openApiDocument } from './openapi.ts';
import { scopeOf } from './principal.ts';
import { readQueries } from './query-numbers.ts';
import { addRoute } from './route.ts';
import * as schema from './schemas.ts';
import { partitionRoutes } from './partition-routes.ts';
import { tableRoutes } from './table-routes.ts';
import { tenantRoutes } from './tenant-routes.ts';
import { tokenRoutes } from './token-routes.ts';
import { userRoutes } from './user-routes.ts';

/** Ready to be given requests through its `routing`. */
export async function adminApp(options: AdminServerOptions): Promise<FastifyInstance> {
  const { tenants, tables, planes, audit, onError } = options;
  const app = newAdminApp();
  const routes = collectRoutes(app);
  guard(app, {
    authenticator: new Authenticator(options.operatorTokens, tenants),
    isLocal: options.isLocal,
    requestsPerSecond: options.requestsPerSecond,
  });
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
  partitionRoutes(app, tables);
  monitorRoutes(app, options);
  configRoutes(app, options.config);
  auditRoutes(app, audit, options.wideAudit);
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
