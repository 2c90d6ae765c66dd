// Listens for requests to the admin API at once; the pages, whose framework takes a while to load, are loaded by the first
// request, or before.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { ListenOptions } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { AdminServerOptions } from './admin-options.ts';

export class AdminListener {
  readonly #http: Server;
  readonly #newServer: () => Server;
  /** Socket that other processes listen on, too. */
  #shared: Server | undefined;
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
    this.#newServer = () => tls?.createHttpServer({}, serve) ?? createServer(serve);
    this.#http = this.#newServer();
    this.#scheme = tls === undefined ? 'http' : 'https';
  }

  /** Resolves to the URL it can be reached at. */
  async listen(host: string, port: number): Promise<string> {
    return await this.#listen(this.#http, { host, port });
  }

  /** Listens on a bound socket, too. Resolves to its URL. */
  async listenOnShared(fd: number): Promise<string> {
    this.#shared = this.#newServer();
    return await this.#listen(this.#shared, { fd });
  }

  async #listen(http: Server, on: ListenOptions & { fd?: number }): Promise<string> {
    await new Promise<void>((resolve, reject) => {
      http.once('error', reject);
      http.listen(on, () => {
        http.off('error', reject);
        resolve();
      });
    });
    const address = http.address();
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
    const servers = this.#shared === undefined ? [this.#http] : [this.#http, this.#shared];
    await Promise.all(servers.map((http) => closeServer(http, graceMs)));
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

async function closeServer(http: Server, graceMs: number): Promise<void> {
  const closed = new Promise((resolve) => http.close(resolve));
  const cutOff = setTimeout(() => http.closeAllConnections(), graceMs);
  http.closeIdleConnections();
  if (graceMs === 0) http.closeAllConnections();
  await closed;
  clearTimeout(cutOff);
}
