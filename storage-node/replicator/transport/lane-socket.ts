// One lane to another node: messages in link frames, in both directions. A frame of type 64 is a message. Type 65 is
// a part of a message that is larger than a frame should be; its last part has type 64.

import type { ClusterLink } from '../../../cluster-links/cluster-link.ts';
import { beginFrame, endFrame, frameHeaderBytes } from '../../../universal-row/protocol/frames.ts';
import { viewed } from '../../../universal-row/bytes.ts';
import { WireError, WireWriter } from '../../../universal-row/protocol/wire.ts';

const RaftFrame = { message: 64, part: 65 } as const;
/** Large messages leave in such parts. A receiver keeps memory for a frame as large. */
const partBytes = 192 * 1024;
/** Small messages leave together once they are as much as a part, at the latest. */
const bufferBytes = 2 * (partBytes + frameHeaderBytes);
/** Free buffers that a lane keeps. */
const maxSpares = 4;
/** Memory for a message that came in parts stays for the next one, unless it is more. */
const keptBytes = 4 * 1024 * 1024;

export interface LaneLimits {
  /** Bytes that have not left yet, beyond which messages are not taken; a single one always is. */
  maxQueuedBytes: number;
  maxMessageBytes: number;
}

export class LaneSocket {
  readonly #link: ClusterLink;
  readonly #limits: LaneLimits;
  readonly #onMessage: (bytes: Uint8Array) => void;
  /** Its buffer is used again: new memory costs more than the copy, as it brings a garbage collection nearer. */
  readonly #writer = new WireWriter(bufferBytes);
  /** Where the frames since the last flush begin. The socket may still have what is before. */
  #from = 0;
  /** Bytes given to the link so far. */
  #given = 0;
  /** Full buffers of which the socket may still have a part: each with `#given` at its end. */
  readonly #lent: { buffer: Buffer; end: number }[] = [];
  readonly #spares: Buffer[] = [];
  /** The parts of a message so far. */
  readonly #parts = new WireWriter(0);

  constructor(link: ClusterLink, limits: LaneLimits, onMessage: (bytes: Uint8Array) => void) {
    this.#link = link;
    this.#limits = limits;
    this.#onMessage = onMessage;
  }

  get queuedBytes(): number {
    return this.#link.unsentBytes + this.#writer.pos - this.#from;
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
    }
    this.#frame(RaftFrame.message, payload, at, payload.length - at);
    return true;
  }

  /** One write for all since the last one. */
  flush(): void {
    const writer = this.#writer;
    if (writer.pos === this.#from) return;
    const link = this.#link;
    const isFree = !link.isClosed && link.send(writer.buf.subarray(this.#from, writer.pos));
    this.#given += writer.pos - this.#from;
    this.#from = isFree ? 0 : writer.pos;
    writer.pos = this.#from;
    this.drained();
  }

  /** Takes back the buffers that have been sent. */
  drained(): void {
    if (this.#lent.length === 0) return;
    const sent = this.#given - this.#link.unsentBytes;
    while (this.#lent.length > 0 && this.#lent[0]!.end <= sent) {
      const { buffer } = this.#lent.shift()!;
      if (this.#spares.length < maxSpares) this.#spares.push(buffer);
    }
  }

  /** Takes a frame; throws `WireError` for an unexpected one. */
  received(type: number, buf: Buffer, start: number, end: number): void {
    if (type !== RaftFrame.message && type !== RaftFrame.part) {
      throw new WireError(`a frame of type ${type} on a lane of the log`);
    }
    const parts = this.#parts;
    if (parts.pos + end - start > this.#limits.maxMessageBytes) {
      throw new WireError('a message is too large');
    }
    if (parts.pos === 0 && type === RaftFrame.message) {
      this.#onMessage(buf.subarray(start, end));
      return;
    }
    parts.raw(buf, start, end - start);
    if (type === RaftFrame.part) return;
    const whole = parts.view();
    parts.pos = 0;
    if (whole.length > keptBytes) parts.reset(true);
    this.#onMessage(whole);
  }

  close(error?: Error): void {
    this.#link.close(error);
  }

  #frame(type: number, payload: Buffer, at: number, length: number): void {
    const writer = this.#writer;
    if (writer.pos - this.#from >= partBytes) this.flush();
    if (writer.buf.length - writer.pos < frameHeaderBytes + length) this.#makeRoom();
    const start = beginFrame(writer, type);
    writer.raw(payload, at, length);
    endFrame(writer, start);
  }

  #makeRoom(): void {
    this.flush();
    if (this.#from === 0) return;
    const writer = this.#writer;
    this.#lent.push({ buffer: writer.buf, end: this.#given });
    this.drained();
    writer.buf = this.#spares.pop() ?? viewed(Buffer.allocUnsafeSlow(bufferBytes));
    this.#from = 0;
    writer.pos = 0;
  }
}
