// Links between nodes of one process, for tests. Messages to absent or isolated nodes are lost.

import type { Transport, TransportListener } from './transport.ts';

export class Links {
  /** Nodes without any connection. */
  readonly cut = new Set<number>();
  readonly #listeners = new Map<number, TransportListener>();

  of(node: number): Transport {
    const isCut = (to: number): boolean => this.cut.has(node) || this.cut.has(to);
    return {
      start: (_self, listener) => void this.#listeners.set(node, listener),
      send: (to, lane, bytes) => {
        if (!this.#listeners.has(to) || isCut(to)) return false;
        const message = bytes.slice();
        setImmediate(() => this.#listeners.get(to)?.onMessage(node, lane, message));
        return true;
      },
      flush: () => undefined,
      close: () => {
        this.#listeners.delete(node);
        for (const other of this.#listeners.values()) setImmediate(() => other.onDown(node));
        return Promise.resolve();
      },
    };
  }
}
