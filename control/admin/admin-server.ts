// The server for operators and their programs: health, metrics, tables, configuration. It listens at
// once; the pages, whose framework takes a while to load, are loaded by the first request, or before.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { TableCatalog } from '../metadata/table-catalog.ts';
import type { ConfigView } from './config-view.ts';
import type { Health } from './health.ts';
import type { MetricsPage } from './metrics-page.ts';

export interface AdminServerOptions {
  health: Health;
  metrics: MetricsPage;
  catalog: TableCatalog;
  config: ConfigView;
  /** Asked of callers of everything but health; none when empty. */
  token: string;
  version: string;
  /** Told of failures that are ours. */
  onError: (error: Error) => void;
}

export class AdminServer {
  readonly #options: AdminServerOptions;
  readonly #http: Server;
  #app: Promise<FastifyInstance> | undefined;

  constructor(options: AdminServerOptions) {
    this.#options = options;
    this.#http = createServer((request, response) => void this.#serve(request, response));
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
    return `http://${name}:${address.port}`;
  }

  /** Loads the pages, so that the first request need not wait for it. */
  async load(): Promise<void> {
    await Promise.all([this.#pages(), this.#options.metrics.load()]);
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#http.close(resolve));
    this.#http.closeAllConnections();
    await closed;
    // What could not be loaded need not be closed.
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
