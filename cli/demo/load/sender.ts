/** Sends requests of one kind of traffic, and reports their outcomes to its tally. */
export interface Sender {
  /** Requests that are sent at once. */
  readonly batch: number;
  open(): Promise<void>;
  /** Sends a batch that was due at a monotonic time. False under backpressure. */
  send(dueAt: number): boolean;
  /** Sends as many batches as may be under way at once, and another one for each that is answered, until `close`. */
  sendFreely(): void;
  /** Does not wait for requests in flight. */
  close(): void;
}
