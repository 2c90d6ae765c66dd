// Connections of HTTP clients to nodes of a history: two ends in memory. What is sent arrives in the other's own time.

import { SocketLike } from '../../access/influx/forwarding/socket-like.ts';

type Done = (error?: Error | null) => void;

export class ByteStream extends SocketLike {
  override readonly remoteAddress = '127.0.0.1';
  readonly #soon: (act: () => void) => void;
  /** Runs something at the other end, unless that is closed. */
  #there!: (act: (end: ByteStream) => void) => void;

  private constructor(soon: (act: () => void) => void) {
    super();
    this.#soon = soon;
  }

  /** Two ends, each with what runs something in the time of the process that has it. */
  static pair(...soon: readonly [(act: () => void) => void, (act: () => void) => void]): {
    client: ByteStream;
    server: ByteStream;
  } {
    const [client, server] = [new ByteStream(soon[0]), new ByteStream(soon[1])];
    client.#there = (act) => server.#later(act);
    server.#there = (act) => client.#later(act);
    return { client, server };
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: Done): void {
    const copy = Buffer.from(chunk);
    this.#there((other) => other.push(copy));
    done();
  }

  override _final(done: Done): void {
    this.#there((other) => other.push(null));
    done();
  }

  override _read(): void {}

  override _destroy(error: Error | null, done: Done): void {
    this.#there((other) => other.destroy(new Error('the other end has closed')));
    done(error);
  }

  #later(act: (end: ByteStream) => void): void {
    this.#soon(() => {
      if (!this.destroyed) act(this);
    });
  }
}
