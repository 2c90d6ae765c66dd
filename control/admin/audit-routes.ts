// /v1/audit: the audit trail, in a cluster of all its nodes. Operators and viewers see all of it, a tenant the actions of
// its own tokens.

import type { FastifyInstance } from 'fastify';
import { scopeOf } from './principal.ts';
import { addRoute, callerOf } from './route.ts';
import * as schema from './schemas.ts';
import type { AuditLog } from './audit/audit-log.ts';
import { readAudit, readWideAudit, type WideAudit } from './audit/wide-audit.ts';

const usualRecords = 100;

interface AuditParameters {
  after?: number;
  limit?: number;
  all?: boolean;
  node?: number;
}

export function auditRoutes(app: FastifyInstance, log: AuditLog, wide?: WideAudit): void {
  addRoute<undefined, AuditParameters>(
    app,
    {
      method: 'GET',
      url: '/v1/audit',
      access: 'read',
      summary:
        'The last audit records, in a cluster of all nodes; with a number those of one node after it, in order.',
      query: schema.auditQuery,
      answer: schema.auditAnswer,
    },
    async ({ request, query }) => {
      const { after, limit = usualRecords, all: looks = false, node } = query;
      const wanted = { tenant: scopeOf(callerOf(request)), looks, after, limit };
      if (wide === undefined) return { audit: readAudit(log, wanted) };
      return await readWideAudit(wide, wanted, node);
    },
  );
}
