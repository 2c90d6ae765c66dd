// Query parameters are text. They are converted where the schema wants a number or a boolean.

import type { FastifyInstance } from 'fastify';
import type { Schema } from './schemas.ts';

export function readQueries(app: FastifyInstance): void {
  app.addHook('preValidation', async (request) => {
    const properties = request.routeOptions.config.admin?.query?.['properties'];
    if (properties === undefined) return;
    const query = request.query as Record<string, unknown>;
    for (const [name, schema] of Object.entries(properties as Record<string, Schema>)) {
      const value = query[name];
      if (typeof value === 'string') query[name] = valueOf(value, schema['type']);
    }
  });
}

function valueOf(text: string, type: unknown): unknown {
  if (type === 'integer' && /^\d{1,16}$/.test(text)) return Number(text);
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  return text;
}
