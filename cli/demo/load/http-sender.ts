// Requests over HTTP on connections that are kept.

import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http';
import type { HttpTraffic } from './load-messages.ts';
import type { Sender } from './sender.ts';
import type { Tally } from './tally.ts';

export class HttpSender implements Sender {
  readonly batch = 1;
  readonly #traffic: HttpTraffic;
  readonly #tally: Tally;
  readonly #isTimed: boolean;
  readonly #authorization: string;
  readonly #bodies: (Buffer | undefined)[];
  #agent: Agent | undefined;
  #underWay = new Set<ClientRequest>();
  #next = 0;
  #isFree = false;

  constructor(traffic: HttpTraffic, tally: Tally, isTimed: boolean) {
    this.#traffic = traffic;
    this.#tally = tally;
    this.#isTimed = isTimed;
    const { name, password, authorization } = traffic;
    this.#authorization =
      authorization ?? `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`;
    this.#bodies = traffic.requests.map(({ body }) =>
      body === undefined ? undefined : Buffer.from(body),
    );
  }

  open(): Promise<void> {
    const { connections } = this.#traffic;
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections, scheduling: 'fifo' });
    return Promise.resolve();
  }

  send(dueAt: number): boolean {
    if (this.#underWay.size >= this.#traffic.connections) return false;
    this.#send(dueAt);
    return true;
  }

  sendFreely(): void {
    this.#isFree = true;
    while (this.send(performance.now()));
  }

  #send(dueAt: number): void {
    const { requests, port } = this.#traffic;
    const at = this.#next;
    this.#next = (at + 1) % requests.length;
    const { method, path } = requests[at]!;
    const body = this.#bodies[at];
    const headers: Record<string, string | number> = { authorization: this.#authorization };
    if (body !== undefined) headers['content-length'] = body.length;
    const sent = request({
      agent: this.#agent,
      host: '127.0.0.1',
      port,
      method,
      path,
      headers,
    });
    this.#underWay.add(sent);
    this.#tally.sent(1);
    const due = this.#isTimed ? dueAt : undefined;
    const end = (tell: () => void): void => {
      // Late answers of a finished run are not counted.
      if (!this.#underWay.delete(sent)) return;
      tell();
      if (this.#isFree) setImmediate(() => this.#isFree && this.send(performance.now()));
    };
    sent.setNoDelay(true);
    sent.on('error', ({ message }) => end(() => this.#tally.failed(due, message)));
    sent.on('response', (response) => {
      readAll(response, (text) => end(() => this.#answered(response.statusCode ?? 0, text, due)));
    });
    sent.end(body);
  }

  #answered(status: number, text: string, due: number | undefined): void {
    if (status < 300 && !text.includes('"error"')) this.#tally.served(due);
    else if (text.includes('RU limit')) this.#tally.refused(due);
    else this.#tally.failed(due, `${status} ${text.trim()}`);
  }

  close(): void {
    this.#isFree = false;
    const underWay = this.#underWay;
    this.#underWay = new Set();
    for (const sent of underWay) sent.destroy();
    this.#agent?.destroy();
  }
}

/** As much of the text as tells of an error. */
const mostText = 4096;

function readAll(response: IncomingMessage, then: (text: string) => void): void {
  let text = '';
  response.on('data', (chunk: Buffer) => {
    if (text.length < mostText) text += chunk.toString('latin1', 0, mostText);
  });
  response.on('error', () => {});
  response.on('end', () => then(text));
}
