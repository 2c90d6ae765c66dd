// A bare client: bytes out, replies in, in order. It hides nothing, so tests can misbehave with it.

import { connect, type Socket } from 'node:net';
import { RespReader, type RespValue, show } from './resp-value.ts';

export type Word = string | number | Uint8Array;

/** The connection ended while replies were still due. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
}

interface Waiter {
  count: number;
  replies: RespValue[];
  resolve(replies: RespValue[]): void;
  reject(error: Error): void;
}

export class RespClient {
  readonly socket: Socket;
  /** Called for every reply as it comes, also for those that `pipeline` is waiting for. */
  onReply: ((reply: RespValue) => void) | undefined;
  closed = false;
  /** Error of the connection, or of its input. */
  problem: Error | undefined;
  readonly ended: Promise<void>;
  readonly #reader = new RespReader();
  readonly #waiters: Waiter[] = [];
  readonly #unclaimed: RespValue[] = [];

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (chunk) => this.#take(chunk));
    socket.on('error', (error) => (this.problem ??= error));
    this.ended = new Promise((resolve) => {
      socket.on('close', () => {
        this.closed = true;
        const lost = new ConnectionLost(`connection lost: ${this.problem?.message ?? 'closed'}`);
        for (const waiter of this.#waiters.splice(0)) waiter.reject(lost);
        resolve();
      });
    });
  }

  static async connect(port: number, version: 2 | 3 = 2): Promise<RespClient> {
    const socket = connect(port, '127.0.0.1');
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', reject);
    });
    const client = new RespClient(socket);
    if (version === 3) await client.command('HELLO', 3);
    return client;
  }

  async command(...words: readonly Word[]): Promise<RespValue> {
    const [reply] = await this.pipeline([words]);
    return reply!;
  }

  /** The reply as one line of text. */
  async text(...words: readonly Word[]): Promise<string> {
    return show(await this.command(...words));
  }

  /** Sends all in one write; their replies, in order. */
  pipeline(commands: readonly (readonly Word[])[]): Promise<RespValue[]> {
    const replies = this.replies(commands.length);
    this.socket.write(encodeAll(commands));
    return replies;
  }

  /** The next replies, however they were asked for. Those due at a lost connection are an error. */
  replies(count: number): Promise<RespValue[]> {
    return new Promise((resolve, reject) => {
      if (this.closed && this.#unclaimed.length < count) {
        reject(new ConnectionLost('connection lost before'));
        return;
      }
      this.#waiters.push({ count, replies: [], resolve, reject });
      this.#serve();
    });
  }

  send(bytes: string | Uint8Array): void {
    this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
  }

  close(): void {
    this.socket.destroy();
  }

  #take(chunk: Buffer): void {
    this.#reader.push(chunk);
    try {
      for (;;) {
        const reply = this.#reader.next();
        if (reply === undefined) break;
        this.onReply?.(reply);
        this.#unclaimed.push(reply);
      }
    } catch (error) {
      this.problem = error as Error;
      this.socket.destroy();
    }
    this.#serve();
  }

  #serve(): void {
    while (this.#waiters.length > 0) {
      const waiter = this.#waiters[0]!;
      while (waiter.replies.length < waiter.count && this.#unclaimed.length > 0) {
        waiter.replies.push(this.#unclaimed.shift()!);
      }
      if (waiter.replies.length < waiter.count) return;
      this.#waiters.shift();
      waiter.resolve(waiter.replies);
    }
  }
}

export function encodeAll(commands: readonly (readonly Word[])[]): Buffer {
  return Buffer.concat(commands.map(encode));
}

export function encode(words: readonly Word[]): Buffer {
  const parts = [Buffer.from(`*${words.length}\r\n`)];
  for (const word of words) {
    const bytes = Buffer.from(word instanceof Uint8Array ? word : String(word));
    parts.push(Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n'));
  }
  return Buffer.concat(parts);
}
