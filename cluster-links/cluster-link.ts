// One link to another process of the cluster: a socket, first with the hello on it, then with frames. Both ends send a
// ping when they have nothing else to say, so that a peer that is stopped or cut off is noticed.

import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import {
  beginFrame,
  endFrame,
  FrameReader,
  FrameType,
  maxFrameBytes,
} from '../universal-row/protocol/frames.ts';
import {
  type ClientHandshake,
  HelloError,
  type LinkIdentity,
  type LinkPeer,
  maxHelloBytes,
  refusalFrame,
  type ServerHandshake,
} from '../universal-row/protocol/hello.ts';
import { WireError, WireWriter } from '../universal-row/protocol/wire.ts';
import { DirectWrites } from './direct-write.ts';
import { everyInterval } from './shared-interval.ts';

/** Options shared by the links of a process. */
export interface LinkContext {
  identity: Omit<LinkIdentity, 'purpose'>;
  /** Secret of the cluster; at least `minSecretBytes`. */
  secret: Buffer;
  /** `remote`, the default: links are encrypted unless both ends are on loopback addresses. */
  encryption?: 'remote' | 'always';
  /** Milliseconds a peer has for its handshake. */
  helloMs?: number;
  /** Milliseconds without a byte after which a peer counts as gone; 1,700 unless given. */
  silenceMs?: number | undefined;
}

export const minSecretBytes = 16;
export const defaultHelloMs = 5000;
/** Together with the interval between pings, a dead peer is detected in less than two seconds. */
const defaultSilenceMs = 1700;
const leastPingMs = 250;
/** Pings that a suspected peer has missed when its link is ended. */
const suspectPings = 2;
/** Time a socket has for sending its last bytes. */
const lastBytesMs = 1000;

/** The owner's end of a link, after the handshake. */
export interface LinkHandler {
  /** A frame; the bytes are valid during the call. A `WireError` that it throws ends the link. */
  frame(type: number, stream: number, buf: Buffer, start: number, end: number): void;
  /** The socket has sent its buffer. */
  drained(): void;
  /** All frames of one socket read were delivered. */
  readEnd(): void;
  /** Called once when the link has ended. `error` is undefined if either side closed the link. */
  closed(error: Error | undefined): void;
}

/** Service behind the links of one purpose. */
export interface LinkService {
  /** Throws a `HelloError` for a peer that it does not serve: its text is for the peer, too. */
  admit?(peer: LinkPeer): void;
  open(link: ClusterLink): LinkHandler;
  /** Whether the link sends pings and detects a silent peer. False if another link already monitors the peer. */
  keepsAlive?: boolean | undefined;
}

interface ClusterLinkOptions {
  socket: Socket;
  handshake: ClientHandshake | ServerHandshake;
  silenceMs: number | undefined;
  /** Interval between pings, milliseconds; four to eight in `silenceMs` unless given. Links with the same one share a timer. */
  pingMs?: number | undefined;
  /** Throws a `HelloError` for a peer that is not served. */
  serviceFor: (peer: LinkPeer) => LinkService;
  /** Called once, before `closed` of the handler. */
  ended: (link: ClusterLink, error: Error | undefined) => void;
}

const pingFrame = ((): Buffer => {
  const writer = new WireWriter(16);
  endFrame(writer, beginFrame(writer, FrameType.ping));
  return Buffer.from(writer.view());
})();

export class ClusterLink {
  readonly #options: ClusterLinkOptions;
  readonly #socket: Socket;
  readonly #reader: FrameReader;
  readonly #silenceMs: number;
  readonly #everyMs: number;
  /** Undefined on an encrypted link. */
  readonly #direct: DirectWrites | undefined;
  #handler: LinkHandler | undefined;
  #peer: LinkPeer | undefined;
  #isClosed = false;
  #isPaused = false;
  #stopTicks: (() => void) | undefined;
  /** Since the timer's last tick. */
  #hasHeard = true;
  #hasSent = true;
  #heardAt = 0;
  #tickAt = 0;

  /**
   * The socket is connected, and encrypted if required. Its owner passes received bytes to
   * `receive`.
   */
  constructor(options: ClusterLinkOptions) {
    const { socket, handshake } = options;
    this.#options = options;
    this.#socket = socket;
    this.#silenceMs = options.silenceMs ?? defaultSilenceMs;
    const usual = Math.max(leastPingMs, this.#silenceMs / 8);
    this.#everyMs = Math.min(options.pingMs ?? usual, this.#silenceMs / 4);
    this.#reader = new FrameReader(
      (type, stream, buf, start, end) => this.#frame(type, stream, buf, start, end),
      maxHelloBytes,
    );
    if ((socket as Partial<TLSSocket>).encrypted !== true) {
      this.#direct = new DirectWrites(socket, () => {
        // Otherwise the stream says when it has no more than it should.
        if (socket.writableLength <= socket.writableHighWaterMark) this.#handler?.drained();
      });
    }
    socket.on('drain', () => this.#handler?.drained());
    socket.on('error', (error) => this.close(error));
    socket.on('close', () => this.close());
    if ('hello' in handshake) socket.write(handshake.hello);
  }

  /** Undefined until the hello is over. */
  get known(): LinkPeer | undefined {
    return this.#peer;
  }

  get peer(): LinkPeer {
    return this.#peer!;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Bytes that the socket holds. */
  get unsentBytes(): number {
    return this.#socket.writableLength + (this.#direct?.waiting ?? 0);
  }

  /** Sends whole frames. False when the bytes must stay as they are. */
  send(bytes: Buffer): boolean {
    if (this.#isClosed) return true;
    this.#hasSent = true;
    const socket = this.#socket;
    const direct = this.#direct;
    if (
      direct !== undefined &&
      socket.writableLength === 0 &&
      direct.write(bytes, 0, bytes.length)
    ) {
      return direct.waiting === 0 || direct.isCopied;
    }
    return socket.write(bytes) && socket.writableLength === 0;
  }

  /** Pauses or resumes reading from the socket. */
  pause(isPaused: boolean): void {
    if (isPaused === this.#isPaused) return;
    this.#isPaused = isPaused;
    if (isPaused) this.#socket.pause();
    else this.#socket.resume();
  }

  /**
   * Processes the first `length` bytes of a chunk read from the socket. The caller may reuse the
   * chunk afterwards.
   */
  receive(chunk: Buffer, length: number): void {
    if (this.#isClosed) return;
    this.#hasHeard = true;
    try {
      this.#reader.push(chunk, length);
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(String(error)));
      return;
    }
    this.#handler?.readEnd();
  }

  #frame(type: number, stream: number, buf: Buffer, start: number, end: number): void {
    // Bytes after a frame that ended the link are ignored.
    if (this.#isClosed) return;
    if (this.#peer === undefined) this.#hear(type, buf, start, end);
    else if (type !== FrameType.ping) this.#handler!.frame(type, stream, buf, start, end);
  }

  #hear(type: number, buf: Buffer, start: number, end: number): void {
    const { handshake, serviceFor } = this.#options;
    const { send, peer } = handshake.received(type, buf, start, end);
    // Before the peer is told that all is well.
    const service = peer === undefined ? undefined : serviceFor(peer);
    if (peer !== undefined) service!.admit?.(peer);
    if (send !== undefined) this.#socket.write(send);
    if (peer === undefined) return;
    this.#peer = peer;
    this.#reader.maxBytes = maxFrameBytes;
    this.#handler = service!.open(this);
    if (service!.keepsAlive !== false && !this.#isClosed) this.#keepAlive();
  }

  #keepAlive(): void {
    this.#heardAt = performance.now();
    this.#tickAt = this.#heardAt;
    this.#stopTicks = everyInterval(this.#everyMs, () => this.#tick());
  }

  #tick(): void {
    const now = performance.now();
    const silenceMs = this.#silenceMs;
    // After a stall of this process, queued input has to be read first: silence during the stall
    // does not count.
    const hasStalled = now - this.#tickAt > silenceMs / 2;
    if (this.#hasHeard || this.#isPaused) this.#heardAt = now;
    else if (hasStalled) this.#heardAt = Math.max(this.#heardAt, now - silenceMs / 2);
    this.#tickAt = now;
    if (now - this.#heardAt > silenceMs) {
      this.close(new Error('the peer is silent'));
      return;
    }
    if (!this.#hasSent) this.#socket.write(pingFrame);
    this.#hasHeard = false;
    this.#hasSent = false;
  }

  /**
   * There is other evidence that the peer is gone: two missed pings are enough to end the link. A link that is not kept
   * alive is left alone.
   */
  suspect(): void {
    if (this.#stopTicks === undefined || this.#hasHeard || this.#isPaused) return;
    const now = performance.now();
    // Otherwise this process has stalled, and input may be queued.
    const ticks = now - this.#tickAt < 2 * this.#everyMs;
    if (ticks && now - this.#heardAt > suspectPings * this.#everyMs) {
      this.close(new Error('the peer is silent, and others took over from it'));
    }
  }

  #fail(error: Error): void {
    if (this.#isClosed) return;
    const isForPeer =
      this.#peer === undefined && (error instanceof HelloError || error instanceof WireError);
    if (isForPeer) this.#socket.write(refusalFrame(error.message));
    this.#end(error, isForPeer);
  }

  /** Closes the link. After an error the socket is closed at once, and nothing more is sent or received. */
  close(error?: Error): void {
    this.#end(error, error === undefined);
  }

  #end(error: Error | undefined, hasLastBytes: boolean): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stopTicks?.();
    this.#direct?.end();
    if (hasLastBytes) sendLastBytes(this.#socket);
    else this.#socket.destroy();
    this.#options.ended(this, error);
    this.#handler?.closed(error);
  }
}

/** A peer that does not read keeps no socket. */
function sendLastBytes(socket: Socket): void {
  if (socket.destroyed) return;
  const timer = setTimeout(() => socket.destroy(), lastBytesMs);
  timer.unref();
  socket.once('close', () => clearTimeout(timer));
  socket.destroySoon();
}
