// HTTP requests sent one after the other, and the CPU time that the server took for them.

import { Agent, request } from 'node:http';
import { type RedisLoad, undisturbed, windowsOfOne } from './redis-load.ts';

export interface HttpRequest {
  method: 'GET' | 'POST';
  path: string;
  body?: Buffer;
}

export function query(text: string, database = 'calibrate'): HttpRequest {
  const parameters = new URLSearchParams({ db: database, q: text });
  return { method: 'POST', path: `/query?${parameters.toString()}` };
}

export class InfluxLoad {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #port: number;
  readonly #redis: RedisLoad;

  /** CPU time is asked for over Redis: it is the process's. */
  constructor(port: number, redis: RedisLoad) {
    this.#port = port;
    this.#redis = redis;
  }

  /** Resolves to the answer's text. */
  async send({ method, path, body }: HttpRequest): Promise<string> {
    return await new Promise((resolve, reject) => {
      const sent = request(
        { agent: this.#agent, host: '127.0.0.1', port: this.#port, method, path },
        (response) => {
          const pieces: Buffer[] = [];
          response.on('data', (piece: Buffer) => pieces.push(piece));
          response.on('error', reject);
          response.on('end', () => {
            const text = Buffer.concat(pieces).toString();
            if ((response.statusCode ?? 500) < 400 && !text.includes('"error"')) resolve(text);
            else reject(new Error(`${path}: ${response.statusCode} ${text}`));
          });
        },
      );
      sent.on('error', reject);
      sent.end(body);
    });
  }

  /** CPU microseconds of one request; `make` is given 0, 1, 2 … */
  async micros(windowMs: number, make: (i: number) => HttpRequest): Promise<number> {
    const found: number[] = [];
    let next = 0;
    const run = async (): Promise<number> => {
      const end = performance.now() + windowMs;
      let requests = 0;
      do {
        await this.send(make(next++));
        requests++;
      } while (performance.now() < end);
      return requests;
    };
    await run();
    for (let i = 0; i < windowsOfOne; i++) {
      const { micros, commands } = await this.#redis.cpuOf(run);
      found.push(micros / commands);
    }
    return undisturbed(found);
  }

  /** Learns what the server takes by itself. */
  async measureIdle(): Promise<void> {
    await this.#redis.measureIdle();
  }

  close(): void {
    this.#agent.destroy();
  }
}
