// Requests as clients send them, down to the bytes, and their answers.

import { Agent, type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
  text: string;
}

export interface RequestOptions {
  method?: string;
  headers?: OutgoingHttpHeaders;
  body?: string | Buffer | AsyncIterable<Buffer> | Iterable<Buffer>;
}

export class HttpClient {
  readonly port: number;
  readonly #agent = new Agent({ keepAlive: true });

  constructor(port: number) {
    this.port = port;
  }

  send(path: string, { method, headers, body }: RequestOptions = {}): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const sent = request(
        {
          host: '127.0.0.1',
          port: this.port,
          path,
          method: method ?? (body === undefined ? 'GET' : 'POST'),
          headers: headers ?? {},
          agent: this.#agent,
        },
        (response) => {
          const pieces: Buffer[] = [];
          response.on('data', (piece: Buffer) => pieces.push(piece));
          response.on('error', reject);
          response.on('end', () => {
            const all = Buffer.concat(pieces);
            resolve({
              status: response.statusCode ?? 0,
              headers: response.headers,
              body: all,
              text: all.toString(),
            });
          });
        },
      );
      sent.on('error', reject);
      if (body === undefined || typeof body === 'string' || Buffer.isBuffer(body)) sent.end(body);
      else {
        const write = async () => {
          for await (const piece of body) {
            if (!sent.write(piece)) await new Promise((go) => sent.once('drain', go));
          }
          sent.end();
        };
        write().catch(reject);
      }
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
