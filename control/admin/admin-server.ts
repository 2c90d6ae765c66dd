// The server for operators and their programs: health, metrics, tables, configuration. It listens at
// once; the pages, whose framework takes a while to load, are loaded by the first request, or before.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { AdminServerOptions } from './admin-options.ts';

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
