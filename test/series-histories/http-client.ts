// A client of a node of a history: requests over HTTP, one at a time on a connection that is kept.

import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import type { Duplex } from 'node:stream';

export interface Answer {
  readonly status: number;
  readonly text: string;
  readonly headers: IncomingHttpHeaders;
}

class OneConnection extends Agent {
  readonly #connection: Duplex;

  constructor(connection: Duplex) {
    super({ keepAlive: true, maxSockets: 1 });
    this.#connection = connection;
  }

  override createConnection(): Duplex {
    return this.#connection;
  }
}

export class HttpClient {
  readonly #connection: Duplex;
  readonly #agent: OneConnection;

  constructor(connection: Duplex) {
    this.#connection = connection;
    this.#agent = new OneConnection(connection);
  }

  get isGone(): boolean {
    return this.#connection.destroyed || this.#connection.readableEnded;
  }

  close(): void {
    this.#connection.destroy();
  }

  /** Resolves to undefined where the connection ends before the answer. */
  ask(
    method: 'GET' | 'POST',
    path: string,
    body: string,
    headers: Record<string, string>,
  ): Promise<Answer | undefined> {
    return new Promise((resolve) => {
      const agent = this.#agent;
      const host = { host: 'localhost', headers: { ...headers, Host: 'localhost' } };
      const length = Buffer.byteLength(body);
      const sent = request({ agent, method, path, ...host }, (answer) => {
        let text = '';
        answer.setEncoding('utf8');
        answer.on('data', (piece: string) => (text += piece));
        answer.on('error', () => resolve(undefined));
        answer.on('end', () => {
          const { statusCode: status = 0, headers: of } = answer;
          resolve({ status, text, headers: of });
        });
      });
      sent.on('error', () => resolve(undefined));
      if (method === 'POST') sent.setHeader('Content-Length', length);
      sent.end(body);
    });
  }
}
