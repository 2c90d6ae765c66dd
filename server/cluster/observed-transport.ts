// The links of this node's log, and the time since which each link is up or down.

import type {
  Lane,
  Transport,
  TransportListener,
} from '../../storage-node/replicator/transport/transport.ts';
import type { NodeReachability } from './cluster-metadata.ts';

export class ObservedTransport implements Transport {
  readonly #inner: Transport;
  readonly #changed: (node: number, reachable: boolean) => void;
  readonly #links = new Map<number, { reachable: boolean; since: number }>();
  readonly #startedAt = Date.now();

  constructor(inner: Transport, changed: (node: number, reachable: boolean) => void) {
    this.#inner = inner;
    this.#changed = changed;
  }

  of(node: number): NodeReachability {
    const { reachable, since } = this.#links.get(node) ?? {
      reachable: false,
      since: this.#startedAt,
    };
    return { node, reachable, since };
  }

  start(self: { cluster: number; node: number; incarnation: number }, to: TransportListener): void {
    this.#inner.start(self, {
      onMessage: (node, lane, bytes) => to.onMessage(node, lane, bytes),
      onUp: (node, incarnation) => {
        to.onUp(node, incarnation);
        this.#set(node, true);
      },
      onDown: (node) => {
        to.onDown(node);
        this.#set(node, false);
      },
    });
  }

  send(node: number, lane: Lane, bytes: Uint8Array): boolean {
    return this.#inner.send(node, lane, bytes);
  }

  flush(): void {
    this.#inner.flush();
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  #set(node: number, reachable: boolean): void {
    if (this.#links.get(node)?.reachable === reachable) return;
    this.#links.set(node, { reachable, since: Date.now() });
    this.#changed(node, reachable);
  }
}
