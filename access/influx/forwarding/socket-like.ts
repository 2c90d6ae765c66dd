// A stream of bytes that HTTP takes for a socket: under connections that are none of the kernel's.

import { Duplex } from 'node:stream';

export abstract class SocketLike extends Duplex {
  /** Node's HTTP reads it; there is none. */
  readonly timeout = 0;
  abstract readonly remoteAddress: string;

  setKeepAlive(): this {
    return this;
  }

  setNoDelay(): this {
    return this;
  }

  setTimeout(): this {
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}
