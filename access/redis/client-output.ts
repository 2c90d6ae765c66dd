// Output of one connection: the segments of each tick, and long replies in parts, as the client
// reads them.

import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { DirectWrites } from '../../cluster-links/direct-write.ts';
import type { HeldMemory } from './held-memory.ts';
import type { OutputWatch } from './output-limits.ts';

// A client that does not read has this much kept for it before its own commands wait.
const highWaterBytes = 1024 * 1024;

export class ClientOutput {
  readonly #socket: Socket;
  readonly #isEncrypted: boolean;
  readonly #direct: DirectWrites | undefined;
  readonly #held: HeldMemory;
  /** Commands wait until the client has read its answers. */
  isStalled = false;
  #isPaused = false;
  /** Parts of a long answer, the next one last. */
  #unsent: Buffer[] | undefined;
  /** Bytes of it that are counted. */
  #keptBytes = 0;

  /** `left`: bytes have left that the stream did not know of. */
  constructor(socket: Socket, held: HeldMemory, left: () => void) {
    this.#socket = socket;
    this.#isEncrypted = (socket as Partial<TLSSocket>).encrypted === true;
    this.#held = held;
    if (this.#isEncrypted) return;
    this.#direct = new DirectWrites(socket, () => {
      // Otherwise the stream says when it has no more than it should.
      if (socket.writableLength <= socket.writableHighWaterMark) left();
    });
  }

  /** Bytes that have not left yet. */
  get waiting(): number {
    return this.#socket.writableLength + (this.#direct?.waiting ?? 0);
  }

  /**
   * Sends a range of a tick's output. True if the caller may reuse them; false when the socket still holds
   * them. Unsent bytes are counted, and the client is stalled or disconnected when there are too
   * many. `now` is wall clock.
   */
  send<C extends Parameters<OutputWatch['check']>[0]>(
    client: C,
    bytes: Buffer,
    start: number,
    end: number,
    watch: OutputWatch,
    now: number,
  ): boolean {
    const socket = this.#socket;
    const direct = this.#direct;
    let isFree = this.#isEncrypted;
    let waiting = socket.writableLength;
    if (direct !== undefined && waiting === 0 && direct.write(bytes, start, end)) {
      waiting = direct.waiting;
      isFree = direct.isCopied;
    } else {
      const range = bytes.subarray(start, end);
      // TLS takes its time with every write, however small: with a copy for it the buffer is free at once.
      socket.write(isFree ? Buffer.from(range) : range);
      waiting = this.waiting;
    }
    if (waiting === 0) return true;
    // Below the high-water mark no event reports when the bytes have left, so they are not counted.
    if (waiting > socket.writableHighWaterMark && !this.#held.set('reply', waiting)) {
      watch.cutOff(client, waiting);
      return true;
    }
    if (waiting > highWaterBytes && !this.isStalled) {
      this.isStalled = true;
      this.pause();
    }
    watch.check(client, waiting, now);
    return isFree;
  }

  /** All that was written has left. True when the client was stalled until now. */
  drained(): boolean {
    this.#held.set('reply', 0);
    const wasStalled = this.isStalled;
    this.isStalled = false;
    return wasStalled;
  }

  /** Ends the socket behind all that was sent. */
  end(): void {
    this.#direct?.end();
    this.#socket.end();
  }

  // ---- reading

  /** The socket is not read for now. */
  get isPaused(): boolean {
    return this.#isPaused;
  }

  pause(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    this.#socket.pause();
  }

  unpause(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#socket.resume();
  }

  // ---- long answers

  /** Parts of a long answer are still to be sent. */
  get hasParts(): boolean {
    return this.#unsent !== undefined;
  }

  /** Takes over bytes of an answer that are counted already. */
  keep(bytes: number): void {
    this.#keptBytes = bytes;
  }

  release(bytes = Infinity): void {
    const gone = Math.min(bytes, this.#keptBytes);
    this.#keptBytes -= gone;
    this.#held.release('answer', gone);
  }

  sendByParts(parts: Buffer[]): void {
    this.#unsent = parts.reverse();
  }

  /** The next part to send; undefined at the end. */
  nextPart(): Buffer | undefined {
    const part = this.#unsent?.pop();
    if (part === undefined) this.dropParts();
    else this.release(part.length);
    return part;
  }

  dropParts(): void {
    this.#unsent = undefined;
    this.release();
  }
}
