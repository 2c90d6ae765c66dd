// Error responses of the admin API: always `{"error": "..."}`, with a text for people.

import type { FastifyError, FastifyInstance } from 'fastify';
import { TableError } from '../metadata/table-catalog.ts';
import { TenantError } from '../tenants/tenant-error.ts';
import { pathOf } from './paths.ts';
import { NotAllowed } from './principal.ts';

/** The request is malformed. */
export class BadRequest extends Error {
  override readonly name = 'BadRequest';
}

const statusOfReason = { missing: 404, conflict: 409, invalid: 400, unconfirmed: 503 } as const;

function statusOf(error: Error): number {
  if (error instanceof TenantError || error instanceof TableError) {
    return statusOfReason[error.reason];
  }
  if (error instanceof NotAllowed) return 403;
  if (error instanceof BadRequest) return 400;
  return (error as FastifyError).statusCode ?? 500;
}

/** A parser's message quotes its input, which may be a secret. */
function messageOf(error: Error): string {
  const isParser = error instanceof SyntaxError || /JSON/.test((error as FastifyError).code ?? '');
  return isParser ? 'the body is not JSON' : error.message;
}

/** `startsUp`: why pages are not there yet, on a server that starts. */
export function answerFailures(
  app: FastifyInstance,
  onError: (error: Error) => void,
  startsUp?: () => string,
): void {
  app.setNotFoundHandler(async (request, reply) => {
    if (startsUp !== undefined) {
      request.refusal = `the server does not serve yet: ${startsUp()}`;
      await reply.code(503).send({ error: request.refusal });
      return;
    }
    request.refusal = 'no such page';
    await reply.code(404).send({ error: `no such page: ${request.method} ${pathOf(request)}` });
  });
  app.setErrorHandler(async (error: Error, request, reply) => {
    const status = statusOf(error);
    const isOurs = status === 500;
    if (isOurs) onError(error);
    const message = isOurs ? 'internal error' : messageOf(error);
    request.refusal = message;
    await reply.code(status).send({ error: message });
  });
}
