// The framework of the admin API's pages, set up.

import { fastify, type FastifyInstance, type FastifyReply } from 'fastify';
import { lazyValidators } from './lazy-validators.ts';

export function newAdminApp(): FastifyInstance {
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
    schemaController: lazyValidators,
  });
  takeEmptyBodies(app);
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
