// Another node as the transport sees it: its address, its newest incarnation, and a socket for each lane.

import type { LaneSocket } from './lane-socket.ts';
import { Lane } from './transport.ts';

export interface PeerAddress {
  host: string;
  port: number;
}

export const lanes = [Lane.control, Lane.append, Lane.snapshot] as const;

const firstBackoffMs = 50;
const lastBackoffMs = 2000;

export class Peer {
  readonly node: number;
  address: PeerAddress;
  /** Newest incarnation seen of the node, 0 for none. Messages of an earlier one are refused. */
  incarnation = 0;
  readonly sockets: (LaneSocket | undefined)[] = [undefined, undefined, undefined];
  /** Dials under way, by lane. */
  readonly dialing = [false, false, false];
  /** When to dial next. */
  dialAt = 0;
  /** Why the last link could not be. */
  problem = '';
  #backoffMs = firstBackoffMs;

  constructor(node: number, address: PeerAddress) {
    this.node = node;
    this.address = address;
  }

  get isUp(): boolean {
    return this.sockets[Lane.control] !== undefined;
  }

  failed(now: number, jitter: number, problem: string): void {
    this.problem = problem;
    // The lanes fail together: that counts once.
    if (now < this.dialAt) return;
    this.dialAt = now + this.#backoffMs * (0.5 + jitter);
    this.#backoffMs = Math.min(this.#backoffMs * 2, lastBackoffMs);
  }

  connected(): void {
    this.problem = '';
    this.#backoffMs = firstBackoffMs;
  }

  /** Ends all lanes and drops their queues; true when the node was up. */
  drop(why: string): boolean {
    const wasUp = this.isUp;
    for (const lane of lanes) {
      const socket = this.sockets[lane];
      this.sockets[lane] = undefined;
      socket?.close(new Error(why));
    }
    return wasUp;
  }
}
