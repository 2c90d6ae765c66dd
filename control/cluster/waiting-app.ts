// Pages of a server that waits to join or form a cluster: its health, and the forming of a cluster. All other pages
// need the metadata.

import type { FastifyInstance } from 'fastify';
import type { AuditLog } from '../admin/audit/audit-log.ts';
import { answerFailures } from '../admin/answers.ts';
import { auditCalls } from '../admin/audit-hook.ts';
import { Authenticator, type FixedToken } from '../admin/authenticator.ts';
import { guard } from '../admin/guard.ts';
import type { Health } from '../admin/health.ts';
import { healthRoutes } from '../admin/health-routes.ts';
import { newAdminApp } from '../admin/new-admin-app.ts';
import { addRoute } from '../admin/route.ts';
import { initialized } from './cluster-routes.ts';

export interface WaitingOptions {
  health: Health;
  audit: AuditLog;
  operatorTokens: readonly FixedToken[];
  isLocal: boolean;
  requestsPerSecond: () => number;
  /** Forms a cluster of this node; throws a `ClusterError` where that cannot be. */
  init: () => { secretFile: string };
  onError: (error: Error) => void;
}

export async function waitingApp(options: WaitingOptions): Promise<FastifyInstance> {
  const { operatorTokens, isLocal, requestsPerSecond, audit, onError } = options;
  const app = newAdminApp();
  // Tokens that were made are in the metadata.
  const none = { adminTokens: { find: () => undefined }, owner: () => undefined };
  const authenticator = new Authenticator(operatorTokens, none);
  guard(app, { authenticator, isLocal, requestsPerSecond });
  auditCalls(app, audit, onError);
  answerFailures(app, onError, () => options.health.waitsFor || options.health.phase);
  healthRoutes(app, options.health);
  addRoute(
    app,
    {
      method: 'POST',
      url: '/v1/cluster/init',
      access: 'operate',
      summary: 'Form a cluster of this node.',
      answer: initialized,
      status: 201,
    },
    () => options.init(),
  );
  await app.ready();
  return app;
}
