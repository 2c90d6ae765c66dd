// Accepted connections that wait to be set up. Hundreds may arrive in one round of the event loop, and the setup of each
// takes as long as a few commands. Each round sets up connections for a few milliseconds; the rest wait for later rounds,
// and are not read until then.

const roundMs = 4;

export class AcceptQueue<S> {
  readonly #serve: (socket: S) => void;
  #queue: S[] = [];
  /** Time spent in this round of the event loop. */
  #spentMs = 0;
  #isScheduled = false;

  constructor(serve: (socket: S) => void) {
    this.#serve = serve;
  }

  /** Connections waiting. */
  get size(): number {
    return this.#queue.length;
  }

  add(socket: S): void {
    if (!this.#isScheduled) {
      this.#isScheduled = true;
      setImmediate(this.#nextRound);
    }
    if (this.#queue.length > 0 || this.#spentMs >= roundMs) this.#queue.push(socket);
    else this.#serveNow(socket);
  }

  #serveNow(socket: S): void {
    const began = performance.now();
    this.#serve(socket);
    this.#spentMs += performance.now() - began;
  }

  readonly #nextRound = (): void => {
    this.#spentMs = 0;
    let served = 0;
    try {
      while (served < this.#queue.length && this.#spentMs < roundMs) {
        this.#serveNow(this.#queue[served++]!);
      }
    } finally {
      this.#queue = this.#queue.slice(served);
      this.#isScheduled = this.#queue.length > 0;
      if (this.#isScheduled) setImmediate(this.#nextRound);
    }
  };
}
