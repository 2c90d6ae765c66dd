// Options of the admin server, shared by the listener and its pages.

import {
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { Tables } from '../metadata/tables.ts';
import type { AuditLog } from './audit/audit-log.ts';
import type { WideAudit } from './audit/wide-audit.ts';
import type { FixedToken } from './authenticator.ts';
import type { ConfigView } from './config-view.ts';
import type { Health } from './health.ts';
import type { MetricsPage } from './metrics-page.ts';
import type { MonitorSources } from './monitor-routes.ts';

/** Makes servers of HTTPS. */
interface SecureServers {
  createHttpServer(
    options: ServerOptions,
    serve: (request: IncomingMessage, response: ServerResponse) => void,
  ): Server;
}

export interface AdminServerOptions extends MonitorSources {
  health: Health;
  metrics: MetricsPage;
  tables: Tables;
  config: ConfigView;
  audit: AuditLog;
  /** The trails of all nodes of a cluster; absent on a server alone. */
  wideAudit?: WideAudit | undefined;
  /** Operators' tokens besides those in the tenant catalog. */
  operatorTokens: readonly FixedToken[];
  /** The API is reachable from this machine only; health and metrics need no token then. */
  isLocal: boolean;
  /** Requests a second of each caller; 0 is no limit. */
  requestsPerSecond: () => number;
  /** Pages of others. They are registered by `addRoute`, as all are. */
  moreRoutes?: readonly ((app: FastifyInstance) => void)[];
  version: string;
  /** Serves HTTPS with it; HTTP when absent. */
  tls?: SecureServers | undefined;
  /** Receives internal errors of the server. */
  onError: (error: Error) => void;
}
