import type { FastifyInstance } from 'fastify';
import type { ConfigView } from './config-view.ts';

const changeSchema = {
  type: 'object',
  minProperties: 1,
  additionalProperties: { type: ['string', 'number'] },
} as const;

export function configRoutes(app: FastifyInstance, config: ConfigView): void {
  app.get('/v1/config', () => ({ settings: config.list() }));

  app.patch<{ Body: Record<string, string | number> }>(
    '/v1/config',
    { schema: { body: changeSchema } },
    (request, reply) => {
      const changes = Object.entries(request.body).map(
        ([key, value]) => [key, String(value)] as const,
      );
      for (const [key, value] of changes) {
        const problem = config.check(key, value);
        if (problem !== undefined) return reply.code(400).send({ error: problem });
      }
      for (const [key, value] of changes) config.change(key, value);
      return { settings: config.list() };
    },
  );
}
