// Listens for requests to the admin API at once; the pages, whose framework takes a while to load, are loaded by the first
// request, or before.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { AdminServerOptions } from './admin-options.ts';

export class AdminListener {
  readonly #http: Server;
  readonly #scheme: string;
  readonly #onError: (error: Error) => void;
  readonly #load: () => Promise<FastifyInstance>;
  #app: Promise<FastifyInstance> | undefined;

  constructor(
    { tls, onError }: Pick<AdminServerOptions, 'tls' | 'onError'>,
    load: () => Promise<FastifyInstance>,
  ) {
    this.#onError = onError;
    this.#load = load;
    const serve = (request: IncomingMessage, response: ServerResponse): void =>
      void this.#serve(request, response);
    this.#http = tls?.createHttpServer({}, serve) ?? createServer(serve);
    this.#scheme = tls === undefined ? 'http' : 'https';
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
    return `${this.#scheme}://${name}:${address.port}`;
  }

  pages(): Promise<FastifyInstance> {
    this.#app ??= this.#load();
    return this.#app;
  }

  /** Requests under way have `graceMs` to end. */
  async close(graceMs = 0): Promise<void> {
    const closed = new Promise((resolve) => this.#http.close(resolve));
    const cutOff = setTimeout(() => this.#http.closeAllConnections(), graceMs);
    this.#http.closeIdleConnections();
    if (graceMs === 0) this.#http.closeAllConnections();
    await closed;
    clearTimeout(cutOff);
    // An app that failed to load needs no close.
    await (await this.#app?.catch(() => undefined))?.close();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      (await this.pages()).routing(request, response);
    } catch (error) {
      this.#onError(error as Error);
      response.writeHead(500).end();
    }
  }
}
