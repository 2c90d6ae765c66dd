// Requests that a connection sends without waiting for answers. HTTP/1.1 allows it, Node runs them all at once, and 64 kB
// hold 1,500 of them: so a connection may have only so many under way, and is closed behind those.

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

  /** Whether a request may run. If not it needs no answer, but for the first one of a connection that is one too many. */
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
