import type { FastifyRequest } from 'fastify';

/** The path asked for, without what follows a question mark. */
export function pathOf(request: FastifyRequest): string {
  return request.url.split('?', 1)[0]!;
}
