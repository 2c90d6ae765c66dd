// Connections that have to log in and have not. They hold a part of the connections there may be, and for a time only:
// otherwise silent connections would fill the limit on clients.

import { PendingClients } from '../gateway/pending-clients.ts';

/** Connections that have not logged in may be this part of `maxclients`. */
const pendingPart = 0.5;

const timeoutText = 'ERR login timeout';
const replacedText = 'ERR max number of unauthenticated clients reached';

/** A connection that has to log in. */
interface PendingLogin {
  readonly socket: { readonly remoteAddress?: string | undefined };
  readonly isBusy: boolean;
  /** Closes at once, after an error as the last bytes. */
  dismiss(error: string): void;
}

export class LoginDeadlines<C extends PendingLogin = PendingLogin> {
  readonly #pending = new PendingClients<C>();
  /** Since when each has to log in. Monotonic milliseconds. */
  readonly #since = new Map<C, number>();
  /** 0 for never. */
  timeoutMs: number;
  timeouts = 0;
  replaced = 0;

  constructor(timeoutMs: number) {
    this.timeoutMs = timeoutMs;
  }

  get size(): number {
    return this.#pending.size;
  }

  await(connection: C): void {
    this.#pending.add(connection, connection.socket.remoteAddress ?? '?');
    this.#since.set(connection, performance.now());
  }

  /** The connection has logged in, or is closed. */
  done(connection: C): void {
    this.#pending.delete(connection);
    this.#since.delete(connection);
  }

  /** Whether its time is up: then a login that fails is its last. */
  isOverdue(connection: C, now: number): boolean {
    const since = this.#since.get(connection);
    return since !== undefined && this.timeoutMs > 0 && now - since >= this.timeoutMs;
  }

  /**
   * Closes connections whose deadline has passed. A connection whose password is being checked still gets its answer.
   */
  sweep(now: number): void {
    for (const connection of this.#pending.oldest()) {
      if (!this.isOverdue(connection, now)) return;
      if (connection.isBusy) continue;
      this.timeouts++;
      connection.dismiss(timeoutText);
    }
  }

  /** Makes room for another one, of `maxClients` connections of which `open` are there. */
  makeRoom(maxClients: number, open: number): void {
    const most = Math.max(1, Math.floor(maxClients * pendingPart));
    if (this.#pending.size < most && open < maxClients) return;
    const victim = this.#pending.victim((connection) => connection.isBusy);
    if (victim === undefined) return;
    this.replaced++;
    victim.dismiss(replacedText);
  }
}
