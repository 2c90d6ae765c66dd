// Whether the server is alive and fit for traffic.

import type { FastifyInstance } from 'fastify';
import type { Health } from './health.ts';
import { addRoute } from './route.ts';
import * as schema from './schemas.ts';

export function healthRoutes(app: FastifyInstance, health: Health): void {
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
