// A connection's socket: its output, the steps of closing, and its description for CLIENT LIST.

import type { Socket } from 'node:net';
import type { Principal } from '../gateway/principals.ts';
import { type Client, ClientFlag } from './client.ts';
import { ClientOutput } from './client-output.ts';
import type { TickClient } from './command-tick.ts';
import type { ConnectionHost } from './connection-host.ts';
import type { ReadMode } from './read-mode.ts';
import type { RespWriter } from './resp-writer.ts';
import { Session } from './session.ts';

const noReply = ClientFlag.replyOff | ClientFlag.replySkip;

export abstract class ClientConnection<C extends Client & TickClient> extends Session<C> {
  readonly id: number;
  readonly socket: Socket;
  readonly address: string;
  readonly localAddress: string;
  readonly createdAt: number;
  readMode: ReadMode | undefined;
  readsAnywhere = false;
  protected readonly output: ClientOutput;
  /** Position in this tick's output up to which CLIENT REPLY drops nothing. */
  #keptTo = 0;
  /** The client is changing its own user: it gets its reply even if that ends its access. */
  #isManaging = false;
  #isClosing = false;
  #isClosed = false;

  constructor(
    server: ConnectionHost<C>,
    socket: Socket,
    id: number,
    now: number,
    principal: Principal | undefined,
  ) {
    super(server, principal);
    this.socket = socket;
    this.id = id;
    this.createdAt = now;
    this.address = `${socket.remoteAddress ?? '?'}:${socket.remotePort ?? 0}`;
    this.localAddress = `${socket.localAddress ?? '?'}:${socket.localPort ?? 0}`;
    this.output = new ClientOutput(socket, this.held, () => this.drained());
  }

  /** Releases the resources of the connection's commands: the socket is closed. */
  protected abstract drop(): void;
  /** Whether the error that is being answered was counted when a command of a script failed with it. */
  protected abstract isCountedByScript(): boolean;
  /** The client has read all answers and may continue. */
  protected abstract unstalled(): void;

  // ---- answers

  /** Where to answer now. */
  answer(): RespWriter {
    return this.server.tick.open(this.client);
  }

  pushed(mark: number, isKept = false): void {
    this.server.tick.pushed(mark, isKept);
  }

  /** Copies a separately written reply to the end of the connection's output. */
  append(own: RespWriter): void {
    this.answer().rawBytes(own.buf, 0, own.pos);
    this.server.tick.giveBackWriter(own);
  }

  /**
   * Sends the output since the last command even to a client that wants no replies, as for
   * messages.
   */
  keepReply(): void {
    if (this.flags & noReply) this.#keptTo = this.server.writer.pos;
  }

  /** EXEC has run a handler, whose answer is part of its own. */
  protected forgetKept(): void {
    this.#keptTo = 0;
  }

  /** After a command whose answer began at `mark`: drops it if the client wants none. */
  mute(mark: number): void {
    if (this.flags & ClientFlag.replySkipNext) {
      this.flags = (this.flags & ~ClientFlag.replySkipNext) | ClientFlag.replySkip;
    } else if (this.flags & noReply) {
      this.server.tick.takeBack(this.client, Math.max(mark, this.#keptTo));
      this.#keptTo = 0;
      this.flags &= ~ClientFlag.replySkip;
    }
  }

  // ---- out

  /** Sends a range of bytes that the caller may reuse if the answer is true; false when the socket still holds them. */
  send(bytes: Buffer, start: number, end: number): boolean {
    if (this.#isClosed) return true;
    this.bytesOut += end - start;
    const { server } = this;
    const isFree = this.output.send(this.client, bytes, start, end, server.output, server.tick.now);
    if (this.#isClosing) this.endSoon();
    return isFree;
  }

  /** Bytes of its output that have not left yet. */
  get unsentBytes(): number {
    return this.output.waiting;
  }

  /** All that was written has left. */
  drained(): void {
    this.server.output.drained(this.client);
    if (this.output.drained()) this.unstalled();
  }

  countError(text: string): void {
    if (!this.isCountedByScript()) this.server.countError(this.tenant, text);
  }

  /** Counts bytes of a long answer; false when there are not as many left. */
  keepAnswer(bytes: number): boolean {
    return this.held.reserve('answer', bytes);
  }

  /** Counts bytes of answers that wait for the log, or no more where they are less than 0. */
  countWaiting(bytes: number): void {
    if (this.#isClosed) return;
    if (bytes > 0) this.held.add('answer', bytes);
    else this.held.release('answer', -bytes);
  }

  keepParts(bytes: number): void {
    this.output.keep(bytes);
  }

  releaseParts(): void {
    this.output.release();
  }

  // ---- closing

  get closed(): boolean {
    return this.#isClosed;
  }

  /** The socket closes once its output has been sent. */
  get closing(): boolean {
    return this.#isClosing;
  }

  protected closeAfterAnswer(): void {
    this.#isClosing = true;
  }

  setManaging(isManaging: boolean): void {
    this.#isManaging = isManaging;
  }

  /** Its access was withdrawn: closes at once, or after the reply if the client itself made the change. */
  revoke(): void {
    if (this.#isManaging) this.#isClosing = true;
    else this.destroy();
  }

  /**
   * Ends its output. Further input is discarded for a moment, as a connection closed while bytes
   * arrive is reset, and the client may lose the last reply; then it is closed.
   */
  endSoon(): void {
    this.output.end();
    this.server.output.closeLater(this.client);
  }

  /** Closes once everything written so far is sent. */
  closeSoon(): void {
    this.#isClosing = true;
    this.answer();
  }

  /** Closes at once, after an error as the last bytes. */
  dismiss(error: string): void {
    this.socket.write(`-${error}\r\n`);
    this.socket.destroySoon();
    this.dispose();
  }

  /** Closes at once. */
  destroy(): void {
    this.socket.destroy();
    this.dispose();
  }

  /** Reports an error of ours, and closes. */
  fail(error: unknown): void {
    this.server.report('error', 'a connection failed', { err: error, client: this.address });
    this.destroy();
  }

  /** Closes the connection because its queued commands are too large. */
  queryTooLong(): void {
    this.server.queryTooLong(this.client);
    this.destroy();
  }

  /** The socket is gone: everything that knows this connection forgets it. */
  dispose(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.output.dropParts();
    this.drop();
    this.server.forget(this.client);
    this.held.close();
  }
}
