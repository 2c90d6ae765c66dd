// A connection to a Redis server, for moving data: commands go out in pipelines of bounded size, and the connection can
// be taken over as a stream of bytes, as replication wants it.

import { once } from 'node:events';
import { connect as connectPlain, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { ExitError } from '../../server/lifecycle/exit-error.ts';
import { ByteSource } from './byte-source.ts';

export type Word = string | Buffer;
/** Simple strings are strings, bulk strings buffers. */
export type Reply = string | number | Buffer | RedisError | null | Reply[];

/** An error that the server answered. */
export class RedisError extends Error {
  override readonly name = 'RedisError';
}

export interface Endpoint {
  host: string;
  port: number;
  isTls: boolean;
  user: string;
  password: string;
  db: number;
}

/** Reads `redis://user:password@host:port/db`, or `rediss://` for TLS. */
export function parseEndpoint(text: string, password: string | undefined): Endpoint {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new ExitError(`${text} is no address of a server: redis://host:port`, 2);
  }
  if (url.protocol !== 'redis:' && url.protocol !== 'rediss:') {
    throw new ExitError(
      `${text} is no address of a server: it begins with redis:// or rediss://`,
      2,
    );
  }
  return {
    host: url.hostname === '' ? '127.0.0.1' : url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? 6379 : Number(url.port),
    isTls: url.protocol === 'rediss:',
    user: decodeURIComponent(url.username),
    password: password ?? decodeURIComponent(url.password),
    db: Number(url.pathname.slice(1)) || 0,
  };
}

interface Waiting {
  bytes: number;
  take(reply: Reply): void;
  fail(error: Error): void;
}

/** Bytes that are sent before replies are waited for. */
const windowBytes = 4 * 1024 * 1024;
const windowCommands = 2000;
const connectMs = 10_000;

export class RespLink {
  readonly endpoint: Endpoint;
  readonly socket: Socket;
  #waiting: Waiting[] = [];
  #next = 0;
  #sentBytes = 0;
  #buffer: Buffer = Buffer.alloc(0);
  /** A reply is looked for again when so much is there. */
  #wanted = 1;
  #failure: Error | undefined;
  #wake: (() => void) | undefined;
  readonly #onData = (chunk: Buffer): void => this.#read(chunk);

  private constructor(endpoint: Endpoint, socket: Socket) {
    this.endpoint = endpoint;
    this.socket = socket;
    socket.setNoDelay(true);
    socket.on('data', this.#onData);
    socket.on('error', (error) => this.#fail(error));
    socket.on('close', () => this.#fail(new Error('the connection was closed')));
  }

  /** Connects, and logs in if the endpoint names a user. */
  static async open(endpoint: Endpoint): Promise<RespLink> {
    const { host, port, user, password } = endpoint;
    const socket = endpoint.isTls
      ? connectTls({ host, port, servername: host })
      : connectPlain(port, host);
    const timer = setTimeout(() => socket.destroy(new Error('no answer')), connectMs);
    try {
      await once(socket, endpoint.isTls ? 'secureConnect' : 'connect');
    } catch (error) {
      throw new ExitError(`no connection to ${nameOf(endpoint)}: ${(error as Error).message}`);
    } finally {
      clearTimeout(timer);
    }
    const link = new RespLink(endpoint, socket);
    if (password !== '') {
      const words = user === '' ? [password] : [user, password];
      await link.call('AUTH', ...words);
    }
    return link;
  }

  /** Sends a command and resolves to its reply. Rejects with `RedisError` for an error. */
  async call(...words: Word[]): Promise<Reply> {
    const reply = await this.ask(words);
    if (reply instanceof RedisError) throw reply;
    return reply;
  }

  /** As `call`, but errors are replies, too. */
  ask(words: readonly Word[]): Promise<Reply> {
    return new Promise((resolve, reject) => this.#push(words, resolve, reject));
  }

  /** Sends a command whose reply `take` gets. Wait for `room` before the next. */
  send(words: readonly Word[], take: (reply: Reply) => void): void {
    this.#push(words, take, () => {});
  }

  #push(words: readonly Word[], take: (reply: Reply) => void, fail: (error: Error) => void): void {
    if (this.#failure !== undefined) return fail(this.#failure);
    let bytes = 0;
    this.socket.cork();
    this.socket.write(`*${words.length}\r\n`);
    for (const word of words) {
      const n = Buffer.byteLength(word as string);
      bytes += n + 16;
      this.socket.write(`$${n}\r\n`);
      this.socket.write(word);
      this.socket.write('\r\n');
    }
    process.nextTick(() => this.socket.uncork());
    this.#sentBytes += bytes;
    this.#waiting.push({ bytes, take, fail });
  }

  get #inFlight(): number {
    return this.#waiting.length - this.#next;
  }

  /** Resolves when more may be sent. Rejects when the connection is lost. */
  async room(): Promise<void> {
    while (this.#sentBytes > windowBytes || this.#inFlight > windowCommands) await this.#progress();
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Resolves when everything that was sent is answered. */
  async drained(): Promise<void> {
    while (this.#inFlight > 0) await this.#progress();
    if (this.#failure !== undefined) throw this.#failure;
  }

  async #progress(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    await new Promise<void>((resolve) => (this.#wake = resolve));
  }

  /** Ends commands and replies on this connection: further input is the source's stream. */
  takeOver(): ByteSource {
    this.socket.off('data', this.#onData);
    this.socket.pause();
    const rest = this.#buffer;
    this.#buffer = Buffer.alloc(0);
    return new ByteSource(this.socket[Symbol.asyncIterator]() as AsyncIterator<Buffer>, rest);
  }

  close(): void {
    this.socket.destroy();
  }

  #fail(error: Error): void {
    if (this.#failure !== undefined) return;
    this.#failure = new ExitError(`${nameOf(this.endpoint)}: ${error.message}`);
    for (const waiting of this.#waiting.slice(this.#next)) waiting.fail(this.#failure);
    this.#waiting = [];
    this.#next = 0;
    this.#wake?.();
  }

  #read(chunk: Buffer): void {
    this.#buffer = this.#buffer.length === 0 ? chunk : Buffer.concat([this.#buffer, chunk]);
    if (this.#buffer.length < this.#wanted) return;
    let at = 0;
    this.#wanted = 1;
    while (this.#inFlight > 0) {
      // Masters that prepare a snapshot send empty lines.
      while (this.#buffer[at] === 10) at++;
      const read = readReply(this.#buffer, at);
      if (read === undefined) {
        this.#wanted = Math.max(1, neededEnd - at);
        break;
      }
      at = read.end;
      this.#answer(read.reply);
      // The receiver of the reply may have taken the connection over.
    }
    this.#buffer = this.#buffer.subarray(at);
    this.#wake?.();
  }

  #answer(reply: Reply): void {
    const waiting = this.#waiting[this.#next]!;
    this.#next++;
    this.#sentBytes -= waiting.bytes;
    if (this.#next > 1024) {
      this.#waiting = this.#waiting.slice(this.#next);
      this.#next = 0;
    }
    waiting.take(reply);
  }
}

export function nameOf({ host, port }: Endpoint): string {
  return `${host}:${port}`;
}

/** Earliest possible end of the incomplete reply. */
let neededEnd = 0;

/** The reply at `at`, and where the next one begins; undefined when it is not all there. */
function readReply(b: Buffer, at: number): { reply: Reply; end: number } | undefined {
  neededEnd = at + 1;
  const eol = b.indexOf('\r\n', at, 'latin1');
  if (eol < 0) return undefined;
  const line = b.toString('utf8', at + 1, eol);
  const next = eol + 2;
  switch (b[at]) {
    case 0x2b:
      return { reply: line, end: next };
    case 0x2d:
      return { reply: new RedisError(line), end: next };
    case 0x3a:
      return { reply: Number(line), end: next };
    case 0x24: {
      const n = Number(line);
      if (n < 0) return { reply: null, end: next };
      neededEnd = next + n + 2;
      if (b.length < neededEnd) return undefined;
      return { reply: Buffer.from(b.subarray(next, next + n)), end: next + n + 2 };
    }
    case 0x2a: {
      const items: Reply[] = [];
      let end = next;
      for (let left = Number(line); left > 0; left--) {
        const item = readReply(b, end);
        if (item === undefined) return undefined;
        items.push(item.reply);
        end = item.end;
      }
      return { reply: Number(line) < 0 ? null : items, end };
    }
    default:
      throw new Error('an answer that is not of the Redis protocol');
  }
}
