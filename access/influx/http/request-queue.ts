// Begins the requests of all connections for some milliseconds in each round of the event loop: thousands may arrive in
// the same one.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { EndedInputs } from '../../gateway/ended-inputs.ts';
import { RoundQueue } from '../../gateway/round-queue.ts';
import { NewConnections } from './new-connections.ts';
import { Pipelines } from './pipelines.ts';
import { RequestOrder } from './request-order.ts';

/** How a request came. */
export interface Arrival {
  readonly expectsContinue: boolean;
  readonly isForwarded: boolean;
}

type Begin = (
  request: IncomingMessage,
  response: ServerResponse,
  arrival: Arrival,
  /** The connection exceeds its limit of requests in progress. */
  isRefused: boolean,
) => void;

export class RequestQueue {
  readonly #begin: Begin;
  readonly #pipelines = new Pipelines();
  readonly #order = new RequestOrder();
  readonly #queue = new RoundQueue(this.#order, (request) => request.begin());
  readonly #silent = new NewConnections(this.#order);
  readonly #ended = new EndedInputs();

  constructor(begin: Begin) {
    this.#begin = begin;
  }

  /** Requests that wait. */
  get waiting(): number {
    return this.#order.size;
  }

  connected(socket: Socket): void {
    this.#ended.follow(socket);
    this.#silent.add(socket);
    socket.once('close', () => this.#silent.delete(socket));
  }

  arrived(request: IncomingMessage, response: ServerResponse, arrival: Arrival): void {
    const { socket } = request;
    const isKnown = this.#pipelines.hasServed(socket);
    const entered = this.#pipelines.enter(request, response);
    if (entered === 'ignored') return;
    if (!isKnown) this.#silent.delete(socket);
    // Clients that go away are no news.
    request.on('error', ignore);
    response.on('error', ignore);
    this.#queue.add({
      connection: socket,
      isKnown,
      begin: () => {
        if (!response.destroyed) this.#begin(request, response, arrival, entered === 'refused');
      },
    });
    if (this.#order.size > 0) this.#silent.hold();
  }
}

function ignore(): void {
  // The close event does the cleanup.
}
