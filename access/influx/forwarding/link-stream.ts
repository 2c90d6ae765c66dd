// A link to another node as the stream of bytes under an HTTP connection. One link is one connection, so the link's own
// back-pressure is that of the stream.

import type { ClusterLink, LinkHandler } from '../../../cluster-links/cluster-link.ts';
import { frameHeaderBytes, writeFrame } from '../../../universal-row/protocol/frames.ts';
import { WireError, WireWriter } from '../../../universal-row/protocol/wire.ts';
import { SocketLike } from './socket-like.ts';

/** Purpose of these links. */
export const httpPurpose = 'http';

/** Frames of such a link; the stream is 0. */
const StreamFrame = { data: 32, end: 33 } as const;

/** Largest payload of a frame, read before the next one. */
const maxDataBytes = 1024 * 1024;
/** Bytes that the socket has yet to send, beyond which the writer waits. */
const maxUnsentBytes = 1024 * 1024;

type Done = (error?: Error | null) => void;

export class LinkStream extends SocketLike {
  override readonly remoteAddress: string;
  /** To be given to the link. */
  readonly handler: LinkHandler = {
    frame: (type, _stream, buf, start, end) => this.#frame(type, buf, start, end),
    drained: () => this.#drained(),
    readEnd: () => {},
    closed: (error) => void this.destroy(error),
  };
  readonly #link: ClusterLink;
  #waiting: Done | undefined;

  constructor(link: ClusterLink) {
    super();
    this.#link = link;
    this.remoteAddress = `node ${link.peer.node}`;
  }

  // ---- out

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: Done): void {
    for (let at = 0; at < chunk.length; at += maxDataBytes) {
      this.#send(StreamFrame.data, chunk.subarray(at, at + maxDataBytes));
    }
    if (this.#link.unsentBytes > maxUnsentBytes) this.#waiting = done;
    else done();
  }

  override _writev(chunks: { chunk: Buffer }[], done: Done): void {
    this._write(Buffer.concat(chunks.map(({ chunk }) => chunk)), 'latin1', done);
  }

  override _final(done: Done): void {
    this.#send(StreamFrame.end, Buffer.alloc(0));
    done();
  }

  #send(type: number, payload: Buffer): void {
    const frame = new WireWriter(frameHeaderBytes + payload.length);
    writeFrame(frame, type, 0, payload);
    this.#link.send(frame.view());
  }

  #drained(): void {
    const done = this.#waiting;
    this.#waiting = undefined;
    done?.();
  }

  // ---- in

  override _read(): void {
    this.#link.pause(false);
  }

  #frame(type: number, buf: Buffer, start: number, end: number): void {
    if (type === StreamFrame.end) this.push(null);
    else if (type !== StreamFrame.data) {
      throw new WireError(`a link for ${httpPurpose} has no frame of type ${type}`);
    } else if (!this.push(Buffer.from(buf.subarray(start, end)))) this.#link.pause(true);
  }

  // ---- its end

  override _destroy(error: Error | null, done: Done): void {
    // Writes that wait end with the stream.
    this.#waiting = undefined;
    this.#link.close();
    done(error);
  }
}
