// The server for operators and their programs: health, metrics, tables, configuration. It listens at
// once; the pages, whose framework takes a while to load, are loaded by the first request, or before.

import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { Tables } from '../metadata/tables.ts';
import type { AuditLog } from './audit/audit-log.ts';
import type { FixedToken } from './authenticator.ts';
import type { ConfigView } from './config-view.ts';
import type { Health } from './health.ts';
import type { MetricsPage } from './metrics-page.ts';
import type { MonitorSources } from './monitor-routes.ts';

/** Makes servers of HTTPS. */
export interface SecureServers {
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
  /** Told of failures that are ours. */
  onError: (error: Error) => void;
}

export class AdminServer {
  readonly #options: AdminServerOptions;
  readonly #http: Server;
  #app: Promise<FastifyInstance> | undefined;

  constructor(options: AdminServerOptions) {
    this.#options = options;
    const serve = (request: IncomingMessage, response: ServerResponse): void =>
      void this.#serve(request, response);
    this.#http = options.tls?.createHttpServer({}, serve) ?? createServer(serve);
  }

  /** Resolves to the URL it can be reached at. */
  async listen(host: string, port: number): Promise<string> {
    await new Promise<void>((resolve, reject) => {
      this.#http.once('error', reject);
      this.#http.listen({ host, port }, () => {
        this.#http.off('error', reject);
        resolve();
      });
    });
    const address = this.#http.address();
    if (address === null || typeof address === 'string') throw new Error('not a TCP address');
    const name = address.family === 'IPv6' ? `[${address.address}]` : address.address;
    const scheme = this.#options.tls === undefined ? 'http' : 'https';
    return `${scheme}://${name}:${address.port}`;
  }

  /** Loads the pages, so that the first request need not wait for it. */
  async load(): Promise<void> {
    await Promise.all([this.#pages(), this.#options.metrics.load()]);
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#http.close(resolve));
    this.#http.closeAllConnections();
    await closed;
    // An app that failed to load needs no close.
    await (await this.#app?.catch(() => undefined))?.close();
  }

  #pages(): Promise<FastifyInstance> {
    this.#app ??= import('./admin-app.ts').then(({ adminApp }) => adminApp(this.#options));
    return this.#app;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      (await this.#pages()).routing(request, response);
    } catch (error) {
      this.#options.onError(error as Error);
      response.writeHead(500).end();
    }
  }
}
