// Connections that have not sent a request yet. They are not read while requests wait: Node would parse the input of
// thousands of connections in one step, and no check of the time slice could stop it.

import type { Socket } from 'node:net';

/** Number of silent connections that are paused for each request that has to wait. */
const heldAtOnce = 16;
/** Connections resumed in each round of the event loop, while few requests wait. */
const readEachRound = 32;
const fewWaiting = 64;

type Held = Pick<Socket, 'pause' | 'resume'>;

export class NewConnections {
  readonly #silent = new Set<Held>();
  readonly #held = new Set<Held>();
  readonly #waiting: { readonly size: number };
  #isScheduled = false;

  /** `waiting`: the requests that wait. */
  constructor(waiting: { readonly size: number }) {
    this.#waiting = waiting;
  }

  /** Connections that are not read now. */
  get held(): number {
    return this.#held.size;
  }

  add(socket: Held): void {
    this.#silent.add(socket);
  }

  /** The connection has sent its first request, or is closed. */
  delete(socket: Held): void {
    if (!this.#silent.delete(socket)) this.#held.delete(socket);
  }

  /** A request has to wait: pauses some silent connections, so that they add no requests. */
  hold(): void {
    let left = heldAtOnce;
    for (const socket of this.#silent) {
      if (left-- === 0) break;
      this.#silent.delete(socket);
      this.#held.add(socket);
      socket.pause();
    }
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#held.size === 0) return;
    this.#isScheduled = true;
    setImmediate(this.#round);
  }

  readonly #round = (): void => {
    this.#isScheduled = false;
    let left = this.#waiting.size < fewWaiting ? readEachRound : 0;
    for (const socket of this.#held) {
      if (left-- <= 0) break;
      this.#held.delete(socket);
      this.#silent.add(socket);
      socket.resume();
    }
    this.#schedule();
  };
}
