// Sends the body of a /query answer. A small body is sent in one piece, with its length. A long body is streamed as
// it is made, no faster than the client reads it. The body is compressed if the client accepts that and the body is
// large enough.

import { promisify } from 'node:util';
import { createGzip, type Gzip, gzip } from 'node:zlib';
import type { Exchange } from './exchange.ts';
import { ClientGone } from './http-error.ts';
import type { TextBuffer } from './text-buffer.ts';

const gzipWhole = promisify(gzip);

// Below this packing costs more time than it saves.
const minPackedBytes = 4096;
const level = 1;

export class ReplyStream {
  readonly #exchange: Exchange;
  readonly #contentType: string;
  readonly #stallMs: number;
  readonly #acceptsGzip: boolean;
  #packer: Gzip | undefined;
  #isBegun = false;
  bytes = 0;

  /** A client that takes nothing for `stallMs` is disconnected. */
  constructor(exchange: Exchange, contentType: string, stallMs: number) {
    this.#exchange = exchange;
    this.#contentType = contentType;
    this.#stallMs = stallMs;
    this.#acceptsGzip = exchange.acceptsGzip;
  }

  /** The answer takes so many bytes before it is sent. False when there is no memory for them. */
  holds(bytes: number): boolean {
    return this.#exchange.memory.answerHolds(bytes);
  }

  /** Sends the contents of `out`, and waits until there is room for more. Throws `ClientGone`. */
  async send(out: TextBuffer): Promise<void> {
    const { response } = this.#exchange;
    if (!this.#exchange.isOpen) throw new ClientGone();
    if (!this.#isBegun) {
      this.#isBegun = true;
      this.#exchange.begin(200, {
        'Content-Type': this.#contentType,
        ...(this.#acceptsGzip && { 'Content-Encoding': 'gzip' }),
      });
      if (this.#acceptsGzip) {
        const packer = createGzip({ level, chunkSize: 64 * 1024 });
        packer.pipe(response);
        response.once('close', () => packer.destroy());
        this.#packer = packer;
      }
    }
    const piece = out.take();
    this.bytes += piece.length;
    const sink = this.#packer ?? response;
    if (sink.write(piece)) return;
    await this.#room(sink);
  }

  /** Sends the rest, after which there is nothing. */
  async end(out: TextBuffer): Promise<void> {
    const { response } = this.#exchange;
    if (!this.#exchange.isOpen) throw new ClientGone();
    const rest = out.take();
    this.bytes += rest.length;
    response.setTimeout(this.#stallMs, () => response.destroy());
    this.#exchange.work.answerBytes = this.bytes;
    if (this.#isBegun) {
      this.#exchange.tellAfter(this.bytes);
      (this.#packer ?? response).end(rest);
      return;
    }
    const isPacked = this.#acceptsGzip && rest.length >= minPackedBytes;
    const body = isPacked ? await gzipWhole(rest, { level, chunkSize: 64 * 1024 }) : rest;
    if (!this.#exchange.isOpen) throw new ClientGone();
    this.#exchange.begin(200, {
      'Content-Type': this.#contentType,
      'Content-Length': body.length,
      ...(isPacked && { 'Content-Encoding': 'gzip' }),
    });
    response.end(body);
  }

  #room(sink: NodeJS.WritableStream): Promise<void> {
    const { response } = this.#exchange;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => response.destroy(), this.#stallMs);
      const settle = () => {
        clearTimeout(timer);
        sink.off('drain', settle);
        response.off('close', settle);
        if (response.destroyed) reject(new ClientGone());
        else resolve();
      };
      sink.on('drain', settle);
      response.on('close', settle);
    });
  }
}
