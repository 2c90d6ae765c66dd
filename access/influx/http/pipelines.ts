// Pipelined HTTP/1.1 requests. Node runs all requests of a connection at once, and 64 kB hold 1,500 of them. So the
// number of requests in progress on a connection is limited, and the connection is closed after them.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Clients of InfluxDB and browsers send one at a time. */
export const maxPipelined = 64;

/** Node's parser of a socket, which is not public: it calls `onIncoming` for each request, and is notified of its body. */
type WithParser = Socket & { parser?: { onIncoming?: (() => number) | null } | null };

export class Pipelines {
  readonly #underWay = new WeakMap<Socket, number>();

  /** The connection had a request before. */
  hasServed(socket: Socket): boolean {
    return this.#underWay.has(socket);
  }

  /**
   * Whether a request may run. The first request beyond the limit is `refused` and gets an answer. Later requests are
   * `ignored` and get none.
   */
  enter({ socket }: IncomingMessage, response: ServerResponse): 'runs' | 'refused' | 'ignored' {
    const count = (this.#underWay.get(socket) ?? 0) + 1;
    if (count > maxPipelined + 1) return 'ignored';
    this.#underWay.set(socket, count);
    response.once('close', () => this.#underWay.set(socket, this.#underWay.get(socket)! - 1));
    if (count <= maxPipelined) return 'runs';
    stopReading(socket);
    return 'refused';
  }
}

/** The rest of the current chunk is parsed, but ignored. */
function stopReading(socket: WithParser): void {
  const { parser } = socket;
  if (parser !== undefined && parser !== null) parser.onIncoming = (): number => 0;
}
