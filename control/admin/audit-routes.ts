// /v1/audit: the audit trail. Operators and viewers see all of it, a tenant the actions of its own tokens.

import type { FastifyInstance } from 'fastify';
import { scopeOf } from './principal.ts';
import { addRoute, callerOf } from './route.ts';
import * as schema from './schemas.ts';
import type { AuditLog } from './audit/audit-log.ts';

const usualRecords = 100;

export function auditRoutes(app: FastifyInstance, log: AuditLog): void {
  addRoute<undefined, { after?: number; limit?: number; all?: boolean }>(
    app,
    {
      method: 'GET',
      url: '/v1/audit',
      access: 'read',
      summary: 'Audit records after a number, in order; without it the last ones.',
      query: schema.auditQuery,
      answer: schema.auditAnswer,
    },
    ({ request, query }) => {
      const { after, limit = usualRecords, all: looks = false } = query;
      const wanted = { tenant: scopeOf(callerOf(request)), looks };
      const audit = after === undefined ? log.last(limit, wanted) : log.read(after, limit, wanted);
      return { audit };
    },
  );
}
