// HTTP requests sent one after the other to a server, which are measured by its CPU time.

import { Agent, request } from 'node:http';
import { SeriesWork } from '../../request-units/series-pricer.ts';

export interface HttpRequest {
  method: 'GET' | 'POST';
  path: string;
  body?: Buffer;
}

export function query(text: string, database = 'calibrate'): HttpRequest {
  const parameters = new URLSearchParams({ db: database, q: text });
  return { method: 'POST', path: `/query?${parameters.toString()}` };
}

/** Makes an answer report the work of the request. */
const workHeader = 'x-polyrow-work';

interface Answer {
  text: string;
  work: string | undefined;
}

export class InfluxLoad {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #port: number;

  constructor(port: number) {
    this.#port = port;
  }

  /** Resolves to the answer's text. */
  async send(asked: HttpRequest): Promise<string> {
    return (await this.#answerTo(asked, {})).text;
  }

  /** The work that the server counted for a request, as it prices it. */
  async workOf(asked: HttpRequest): Promise<SeriesWork> {
    const { work } = await this.#answerTo(asked, { [workHeader]: '1' });
    const counted = new SeriesWork();
    // Work that is not charged says nothing.
    return work === undefined ? counted : Object.assign(counted, JSON.parse(work));
  }

  async #answerTo(
    { method, path, body }: HttpRequest,
    headers: Record<string, string>,
  ): Promise<Answer> {
    return await new Promise((resolve, reject) => {
      const sent = request(
        { agent: this.#agent, host: '127.0.0.1', port: this.#port, method, path, headers },
        (response) => {
          const pieces: Buffer[] = [];
          response.on('data', (piece: Buffer) => pieces.push(piece));
          response.on('error', reject);
          response.on('end', () => {
            const text = Buffer.concat(pieces).toString();
            const work = response.headers[workHeader] ?? response.trailers[workHeader];
            if ((response.statusCode ?? 500) < 400 && !text.includes('"error"')) {
              resolve({ text, work: work?.toString() });
            } else reject(new Error(`${path}: ${response.statusCode} ${text}`));
          });
        },
      );
      sent.on('error', reject);
      sent.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
