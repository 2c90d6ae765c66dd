// A link that reconnects whenever it ends: after 20 ms at first, then with a doubled delay after each failed attempt, up to
// a second.

import { Deferred } from '../universal-row/deferred.ts';
import type { ClusterLink, LinkContext, LinkHandler } from './cluster-link.ts';
import { dialLink } from './dial.ts';

export interface LastingLinkTarget {
  host: string;
  port: number;
  /** The node that has to answer there; undefined for any of the cluster. */
  node?: string | undefined;
  context: LinkContext;
  /** Opens the link; over sockets unless given. */
  dial?: typeof dialLink | undefined;
  report: (level: 'info' | 'warn' | 'error', message: string, fields?: object) => void;
}

interface LastingLinkUser {
  readonly purpose: string;
  /** Name of the peer, for reports. */
  readonly peer: string;
  /**
   * Called when the link is open. The user calls `up` once requests can be sent, here or after a first message from the
   * peer.
   */
  opened(): void;
  frame: LinkHandler['frame'];
  /** Called when an open link has ended: requests in flight have failed. */
  ended(): void;
}

/** Limit of unsent bytes in the socket, beyond which no more requests are accepted. */
const maxUnsentBytes = 32 * 1024 * 1024;
const retryMs = { first: 20, last: 1000 } as const;

export class LastingLink {
  readonly #target: LastingLinkTarget;
  readonly #user: LastingLinkUser;
  #place: { host: string; port: number };
  #link: ClusterLink | undefined;
  #dial: { close(): void } | undefined;
  #retry: NodeJS.Timeout | undefined;
  #retryMs: number = retryMs.first;
  #isUp = false;
  #isClosed = false;
  #ready = new Deferred<void>();
  #drains: (() => void)[] = [];

  constructor(target: LastingLinkTarget, user: LastingLinkUser) {
    this.#target = target;
    this.#place = target;
    this.#user = user;
  }

  /** Connects. Resolves when the link is up. */
  start(): Promise<void> {
    this.#connect();
    return this.#ready.promise;
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  /** Resolves when the link is up; stays pending as long as the peer cannot be reached. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** To send on; undefined while there is none. */
  get link(): ClusterLink | undefined {
    return this.#link;
  }

  /** The user may send its requests. */
  up(): void {
    this.#isUp = true;
    this.#retryMs = retryMs.first;
    this.#ready.resolve();
  }

  #connect(): void {
    if (this.#isClosed) return;
    const { node, context, dial = dialLink } = this.#target;
    const { purpose } = this.#user;
    this.#dial = dial(
      context,
      { ...this.#place, purpose, node },
      {
        open: (link) => {
          this.#link = link;
          this.#user.opened();
          return {
            frame: (type, id, buf, start, end) => this.#user.frame(type, id, buf, start, end),
            drained: () => this.#drained(),
            readEnd: () => {},
            closed: (error) => this.#ended(error),
          };
        },
        failed: (error) => this.#ended(error),
      },
    );
  }

  /** The node has a new address. The link is closed, and opened again at that address. */
  setPlace(place: { host: string; port: number }): void {
    if (place.host === this.#place.host && place.port === this.#place.port) return;
    this.#place = place;
    this.#dial?.close();
  }

  #ended(error: Error | undefined): void {
    const [wasOpen, wasUp] = [this.#link !== undefined, this.#isUp];
    this.#isUp = false;
    this.#link = undefined;
    if (wasUp) this.#ready = new Deferred();
    if (!this.#isClosed) {
      const { host, port } = this.#place;
      const why = error === undefined ? '' : `: ${error.message}`;
      if (wasUp) {
        this.#target.report(
          'warn',
          `the link to ${this.#user.peer} at ${host}:${port} ended${why}`,
        );
      }
      this.#retry = setTimeout(() => this.#connect(), this.#retryMs);
      this.#retryMs = Math.min(this.#retryMs * 2, retryMs.last);
    }
    if (wasOpen) this.#user.ended();
    this.#drained();
  }

  /** Others have taken over from the peer: if it is silent, the link ends at once. */
  suspect(): void {
    this.#link?.suspect();
  }

  /** Ends the link, because the peer violated the protocol. */
  fail(error: Error): void {
    this.#link?.close(error);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    this.#dial?.close();
  }

  /** Whether so many bytes are unsent that no more requests are accepted. */
  get isFull(): boolean {
    return (this.#link?.unsentBytes ?? 0) > maxUnsentBytes;
  }

  /** Calls back once it takes more, or is down. */
  whenDrained(then: () => void): void {
    this.#drains.push(then);
  }

  #drained(): void {
    for (const then of this.#drains.splice(0)) then();
  }
}
