// Limits of unsent output of clients: clients over the limit of their class are disconnected, and
// those that have ended their output are closed a moment later.

import { ClientFlag } from './client.ts';

export interface OutputLimit {
  hardBytes: number;
  softBytes: number;
  softSeconds: number;
}

/** Limits for ordinary clients, and for those that receive messages or commands of others. */
export interface OutputLimits {
  normal: OutputLimit;
  pubsub: OutputLimit;
}

interface LimitedClient {
  readonly address: string;
  readonly flags: number;
  /** Of its output. */
  readonly unsentBytes: number;
  destroy(): void;
}

const listener = ClientFlag.subscribed | ClientFlag.monitor;
// A client that has been sent its last bytes has so many milliseconds to read them.
const endingMs = 1000;

export class OutputWatch<C extends LimitedClient = LimitedClient> {
  limits: OutputLimits;
  /** Clients cut off so far. */
  disconnections = 0;
  readonly #cutOff: (client: C, waitingBytes: number) => void;
  /** Clients over their soft limit, and since when (wall clock, milliseconds). */
  readonly #overSoftLimit = new Map<C, number>();
  /** Clients that have ended their output, and when they are closed (monotonic milliseconds). */
  readonly #ending = new Map<C, number>();

  constructor(limits: OutputLimits, cutOff: (client: C, waitingBytes: number) => void) {
    this.limits = limits;
    this.#cutOff = cutOff;
  }

  /** So many bytes wait in the client's socket. `now` is wall clock. */
  check(client: C, waiting: number, now: number): void {
    const { normal, pubsub } = this.limits;
    const limit = client.flags & listener ? pubsub : normal;
    let isOver = limit.hardBytes > 0 && waiting > limit.hardBytes;
    if (limit.softBytes > 0 && waiting > limit.softBytes) {
      const since = this.#overSoftLimit.get(client);
      if (since === undefined) this.#overSoftLimit.set(client, now);
      else if (now - since > limit.softSeconds * 1000) isOver = true;
    } else this.#overSoftLimit.delete(client);
    if (isOver) this.cutOff(client, waiting);
  }

  /** Closes a client that does not read its output. */
  cutOff(client: C, waiting: number): void {
    this.disconnections++;
    this.#cutOff(client, waiting);
    client.destroy();
  }

  /** All that was written to the client has left. */
  drained(client: C): void {
    this.#overSoftLimit.delete(client);
  }

  /** The client has ended its output; it is closed when its other end has had time to read that. */
  closeLater(client: C): void {
    if (!this.#ending.has(client)) this.#ending.set(client, performance.now() + endingMs);
  }

  forget(client: C): void {
    this.#overSoftLimit.delete(client);
    this.#ending.delete(client);
  }

  /** To be called ten times a second. `now` is wall clock. */
  sweep(now: number): void {
    for (const client of this.#overSoftLimit.keys()) {
      this.check(client, client.unsentBytes, now);
    }
    const at = performance.now();
    for (const [client, deadline] of this.#ending) {
      if (at < deadline) return;
      this.#ending.delete(client);
      if (client.unsentBytes === 0) client.destroy();
      else this.closeLater(client);
    }
  }
}
