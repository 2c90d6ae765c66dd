import type { FastifyRequest } from 'fastify';

/** Path of the request, without its query. */
export function pathOf(request: FastifyRequest): string {
  return request.url.split('?', 1)[0]!;
}
