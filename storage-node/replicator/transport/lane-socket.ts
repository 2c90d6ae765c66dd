// One lane to another node: messages in link frames, in both directions. A frame of type 64 is a message. Type 65 is
// a part of a message that is larger than a frame should be; its last part has type 64.

import type { ClusterLink } from '../../../cluster-links/cluster-link.ts';
import { beginFrame, endFrame } from '../../../universal-row/protocol/frames.ts';
import { WireError, WireWriter } from '../../../universal-row/protocol/wire.ts';

const RaftFrame = { message: 64, part: 65 } as const;
/** Large messages leave in such parts. */
const partBytes = 1024 * 1024;

export interface LaneLimits {
  /** Bytes that have not left yet, beyond which messages are not taken; a single one always is. */
  maxQueuedBytes: number;
  maxMessageBytes: number;
}

export class LaneSocket {
  readonly #link: ClusterLink;
  readonly #limits: LaneLimits;
  readonly #writer = new WireWriter(16 * 1024);
  readonly #onMessage: (bytes: Uint8Array) => void;
  #parts: Buffer[] = [];
  #partBytes = 0;

  constructor(link: ClusterLink, limits: LaneLimits, onMessage: (bytes: Uint8Array) => void) {
    this.#link = link;
    this.#limits = limits;
    this.#onMessage = onMessage;
  }

  get queuedBytes(): number {
    return this.#link.unsentBytes + this.#writer.pos;
  }

  send(bytes: Uint8Array): boolean {
    const { maxQueuedBytes, maxMessageBytes } = this.#limits;
    const queued = this.queuedBytes;
    if (bytes.length > maxMessageBytes) return false;
    if (queued > 0 && queued + bytes.length > maxQueuedBytes) return false;
    const payload = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    let at = 0;
    for (; payload.length - at > partBytes; at += partBytes) {
      this.#frame(RaftFrame.part, payload, at, partBytes);
      this.flush();
    }
    this.#frame(RaftFrame.message, payload, at, payload.length - at);
    return true;
  }

  /** One write for all since the last one. */
  flush(): void {
    if (this.#writer.pos === 0) return;
    const isFree = this.#link.send(this.#writer.view());
    this.#writer.reset(!isFree);
  }

  /** Takes a frame; throws `WireError` for an unexpected one. */
  received(type: number, buf: Buffer, start: number, end: number): void {
    if (type !== RaftFrame.message && type !== RaftFrame.part) {
      throw new WireError(`a frame of type ${type} on a lane of the log`);
    }
    if (this.#partBytes + end - start > this.#limits.maxMessageBytes) {
      throw new WireError('a message is too large');
    }
    if (type === RaftFrame.part) {
      this.#parts.push(Buffer.from(buf.subarray(start, end)));
      this.#partBytes += end - start;
      return;
    }
    if (this.#parts.length === 0) {
      this.#onMessage(buf.subarray(start, end));
      return;
    }
    const whole = Buffer.concat([...this.#parts.splice(0), buf.subarray(start, end)]);
    this.#partBytes = 0;
    this.#onMessage(whole);
  }

  close(error?: Error): void {
    this.#link.close(error);
  }

  #frame(type: number, payload: Buffer, at: number, length: number): void {
    const start = beginFrame(this.#writer, type);
    this.#writer.raw(payload, at, length);
    endFrame(this.#writer, start);
  }
}
