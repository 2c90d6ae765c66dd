// Leaves an audit record of every call of the admin API.

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { pathOf } from './paths.ts';
import type { AuditEntry, AuditLog } from './audit/audit-log.ts';
import { withoutSecrets, type JsonSchema } from './audit/without-secrets.ts';

/** Health and metrics are no calls: machines ask for them every few seconds. */
const audited = /^\/v1(\/|$)/;

export function auditCalls(
  app: FastifyInstance,
  log: AuditLog,
  onError: (error: Error) => void,
): void {
  app.addHook('onSend', async (request, reply) => {
    if (!audited.test(pathOf(request)) || reply.statusCode === 429) return;
    // The change has taken effect: a failure of the audit log is reported, but does not fail the request.
    await log.append(entryOf(request, reply)).catch(onError);
  });
}

function entryOf(request: FastifyRequest, reply: FastifyReply): AuditEntry {
  const { principal, refusal, method } = request;
  const change = changeOf(request, reply);
  return {
    at: Date.now(),
    who: principal?.name ?? '',
    role: principal?.role ?? '',
    ...(principal?.tenant === undefined ? {} : { tenant: principal.tenant }),
    address: request.ip,
    method,
    path: pathOf(request),
    status: reply.statusCode,
    ...(refusal === undefined ? {} : { error: refusal }),
    ...(change === undefined ? {} : { change }),
  };
}

function changeOf(
  request: FastifyRequest,
  reply: FastifyReply,
): Readonly<Record<string, unknown>> | undefined {
  const { principal, body } = request;
  if (principal === undefined || typeof body !== 'object' || body === null) return undefined;
  const { config, schema } = request.routeOptions;
  // A body that does not match the schema may hold a secret in the wrong field.
  if (reply.statusCode === 400) return undefined;
  const hidden = config.admin?.hidden?.(body as Record<string, unknown>) ?? [];
  return withoutSecrets(body as Record<string, unknown>, schema?.body as JsonSchema, hidden);
}
