// Sends messages of one tenant to subscribers. Sending to a socket is the most expensive part of PUBLISH. A message to many
// subscribers is sent in slices, one in each round of the event loop, so other clients are served in between and the output
// buffer holds one slice at most. The publisher is answered at the end. Later messages are queued behind an unfinished one,
// because each subscriber must get messages in order.

import type { MaybePromise } from '../../universal-row/maybe-promise.ts';
import type { Audience, Subscriber } from './pubsub.ts';
import { sharedSlices } from './shared-slices.ts';

/** A published message. */
export interface PublishedMessage {
  readonly channel: Buffer;
  readonly payload: Buffer;
  readonly isSharded: boolean;
}

const sliceReceivers = 64;
const sliceBytes = 256 * 1024;
// Size of a message besides its channel, pattern and payload.
const frameBytes = 48;

interface Delivery {
  message: PublishedMessage;
  receivers: { subscriber: Subscriber; audience: Audience }[];
  next: number;
  done: () => void;
}

export class FanOut {
  readonly #queue: Delivery[] = [];
  /** Slices sent so far. */
  slices = 0;

  /** Messages that wait for the one before them. */
  get backlog(): number {
    return this.#queue.length;
  }

  /** Bytes of the message for each receiver. */
  static sizeOf({ channel, payload }: PublishedMessage): number {
    return channel.length + payload.length + frameBytes;
  }

  /** Whether `receivers` receivers get the message in one slice, at once. */
  isImmediate(message: PublishedMessage, receivers: number): boolean {
    return (
      this.#queue.length === 0 &&
      (receivers <= 1 ||
        (receivers <= sliceReceivers && receivers * FanOut.sizeOf(message) <= sliceBytes))
    );
  }

  /**
   * Sends the message to all that listen now; done when the last has it. If it is not sent at once, its bytes must stay
   * as they are until then.
   */
  send(
    message: PublishedMessage,
    audiences: readonly Audience[],
    receivers: number,
  ): MaybePromise<void> {
    if (this.isImmediate(message, receivers)) {
      for (const audience of audiences) {
        for (const subscriber of audience.listeners) {
          if (!subscriber.closed) write(subscriber, message, audience);
        }
      }
      return undefined;
    }
    const all = audiences.flatMap((audience) =>
      Array.from(audience.listeners, (subscriber) => ({ subscriber, audience })),
    );
    return new Promise((done) => {
      this.#queue.push({ message, receivers: all, next: 0, done });
      if (this.#queue.length === 1) sharedSlices.add(this.#slice);
    });
  }

  readonly #slice = (): void => {
    this.slices++;
    let bytes = 0;
    for (let sent = 0; sent < sliceReceivers && bytes < sliceBytes; sent++) {
      const delivery = this.#queue[0];
      if (delivery === undefined) return;
      const receiver = delivery.receivers[delivery.next++];
      if (receiver === undefined) {
        this.#queue.shift();
        delivery.done();
        continue;
      }
      const { subscriber, audience } = receiver;
      // The subscriber may have disconnected or unsubscribed since the message was published.
      if (!subscriber.closed && audience.listeners.has(subscriber)) {
        write(subscriber, delivery.message, audience);
        bytes += FanOut.sizeOf(delivery.message);
      }
    }
    if (this.#queue.length > 0) sharedSlices.add(this.#slice);
  };
}

function write(subscriber: Subscriber, message: PublishedMessage, { pattern }: Audience): void {
  const { channel, payload, isSharded } = message;
  const out = subscriber.answer();
  const mark = out.pos;
  if (pattern === undefined) {
    out.push(3);
    out.text(isSharded ? 'smessage' : 'message');
  } else {
    out.push(4);
    out.text('pmessage');
    out.bulk(pattern, 0, pattern.length);
  }
  out.bulk(channel, 0, channel.length);
  out.bulk(payload, 0, payload.length);
  // In RESP3 the bytes tell it.
  if (out.version < 3) subscriber.pushed(mark);
}
