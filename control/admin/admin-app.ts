// The pages of the admin server.

import { timingSafeEqual } from 'node:crypto';
import { type FastifyError, fastify, type FastifyInstance, type FastifyRequest } from 'fastify';
import type { AdminServerOptions } from './admin-server.ts';
import { configRoutes } from './config-routes.ts';
import type { Health } from './health.ts';
import { tableRoutes } from './table-routes.ts';

/** Ready to be given requests through its `routing`. */
export async function adminApp(options: AdminServerOptions): Promise<FastifyInstance> {
  const app = fastify({
    bodyLimit: 64 * 1024,
    // What does not fit is refused, not bent or dropped.
    ajv: {
      customOptions: { coerceTypes: false, removeAdditional: false, allowUnionTypes: true },
    },
  });
  app.addHook('onRequest', async (request, reply) => {
    const refusal = refusalOf(request, options.token);
    if (refusal === undefined) return;
    if (refusal.code === 401) reply.header('www-authenticate', 'Bearer');
    await reply.code(refusal.code).send({ error: refusal.error });
  });
  app.setNotFoundHandler((request, reply) =>
    reply.code(404).send({ error: `no such page: ${request.method} ${pathOf(request)}` }),
  );
  app.setErrorHandler((error: FastifyError, _request, reply) => {
    const status = error.statusCode ?? 500;
    if (status >= 500) options.onError(error);
    return reply.code(status).send({ error: status >= 500 ? 'internal error' : error.message });
  });
  app.get('/', () => ({ name: 'polyrow', version: options.version, pages }));
  healthRoutes(app, options.health);
  app.get('/metrics', async (_request, reply) => {
    const { contentType, text } = await options.metrics.page();
    reply.header('content-type', contentType);
    return text;
  });
  tableRoutes(app, options.catalog);
  configRoutes(app, options.config);
  await app.ready();
  return app;
}

const pages = ['/livez', '/readyz', '/healthz', '/metrics', '/v1/tables', '/v1/config'];
const openPages = new Set(['/', '/livez', '/readyz', '/healthz']);

function healthRoutes(app: FastifyInstance, health: Health): void {
  // To answer at all is what this one is about.
  app.get('/livez', () => ({ status: 'alive' }));
  for (const page of ['/readyz', '/healthz']) {
    app.get(page, async (_request, reply) => {
      const problems = await health.problems();
      if (problems.length === 0) return { status: 'ready' };
      reply.code(503);
      return { status: 'not ready', reasons: problems };
    });
  }
}

function refusalOf(
  request: FastifyRequest,
  token: string,
): { code: number; error: string } | undefined {
  if (openPages.has(pathOf(request))) return undefined;
  if (token !== '') {
    const given = request.headers.authorization ?? '';
    return sameSecret(given, `Bearer ${token}`)
      ? undefined
      : { code: 401, error: 'wrong or missing token: send Authorization: Bearer <admin.token>' };
  }
  // Without a token only this machine may ask. A web page can make a browser on this machine ask too,
  // under a name of its own that points here; that shows in the host it believes to speak to.
  return isLocalName(request.hostname)
    ? undefined
    : { code: 403, error: `not served as ${request.hostname}: use 127.0.0.1 or localhost` };
}

function pathOf(request: FastifyRequest): string {
  return request.url.split('?', 1)[0]!;
}

function sameSecret(a: string, b: string): boolean {
  const left = Buffer.from(a);
  const right = Buffer.from(b);
  return left.length === right.length && timingSafeEqual(left, right);
}

function isLocalName(hostname: string): boolean {
  return /^(localhost|127(\.\d+){3}|::1|\[::1\])$/.test(hostname);
}
