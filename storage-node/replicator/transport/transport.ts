// Messages between nodes. Each pair of nodes has three lanes, so that heartbeats wait for no data
// and data for no snapshot. Within a lane the order is kept; messages lost with a connection stay
// lost, and the protocol above repairs that.

export const Lane = { control: 0, append: 1, snapshot: 2 } as const;
export type Lane = (typeof Lane)[keyof typeof Lane];

export interface TransportListener {
  /** The bytes are the callee's to read until it returns. */
  onMessage(node: number, lane: Lane, bytes: Uint8Array): void;
  /** All lanes to the node stand, to this life of it. */
  onUp(node: number, incarnation: number): void;
  onDown(node: number): void;
}

export interface Transport {
  start(self: { cluster: number; node: number; incarnation: number }, to: TransportListener): void;
  /**
   * False when nothing was taken: the node is away, or too much is under way to it. Never blocks. The bytes are the
   * caller's again when this returns.
   */
  send(node: number, lane: Lane, bytes: Uint8Array): boolean;
  /** The end of an event-loop tick: sends the messages since the last one. */
  flush(): void;
  close(): Promise<void>;
}
