// Commands over RESP, pipelined over a few connections.

import { connect, type Socket } from 'node:net';
import { encoded, type Words } from '../../calibration/redis-load.ts';
import type { RedisTraffic } from './load-messages.ts';
import { ReplyReader } from './reply-reader.ts';
import type { Sender } from './sender.ts';
import type { Tally } from './tally.ts';

/** Batches that are made beforehand. */
const batches = 256;
/** A server that has left so much unread takes no more. */
const mostUnsent = 16 * 1024;
/** Batches of a connection under way at once where there is no rate. */
const freeBatches = 2;
const filledAtOnce = 500;
/** Matches a quota refusal, which names the quota and the retry time. */
const quotaWords = /RU limit: tenant=\S+ .*retry_after_ms=\d+/;

class Connection {
  readonly socket: Socket;
  /** When each command that is not answered yet was due. */
  readonly #due: number[] = [];
  #answered = 0;

  constructor(socket: Socket, tally: Tally, isTimed: boolean, onData: () => void) {
    this.socket = socket;
    const reader = new ReplyReader((error) => {
      const due = this.#next();
      const dueAt = isTimed ? due : undefined;
      if (error === undefined) tally.served(dueAt);
      else if (quotaWords.test(error)) tally.refused(dueAt);
      else tally.failed(dueAt, error);
    });
    socket.on('data', (chunk: Buffer) => {
      reader.read(chunk);
      onData();
    });
  }

  get waiting(): number {
    return this.#due.length - this.#answered;
  }

  #next(): number | undefined {
    const due = this.#due[this.#answered++];
    if (this.#answered === 1024 || this.#answered === this.#due.length) {
      this.#due.splice(0, this.#answered);
      this.#answered = 0;
    }
    return due;
  }

  send(batch: Buffer, commands: number, dueAt: number): void {
    for (let i = 0; i < commands; i++) this.#due.push(dueAt);
    this.socket.write(batch);
  }
}

export class RedisSender implements Sender {
  readonly batch: number;
  readonly #traffic: RedisTraffic;
  readonly #tally: Tally;
  readonly #isTimed: boolean;
  readonly #batches: Buffer[];
  readonly #connections: Connection[] = [];
  #next = 0;
  #nextConnection = 0;
  #isFree = false;

  constructor(traffic: RedisTraffic, tally: Tally, isTimed: boolean) {
    this.#traffic = traffic;
    this.#tally = tally;
    this.#isTimed = isTimed;
    this.batch = traffic.pipeline;
    const value = 'x'.repeat(traffic.valueBytes);
    let made = 0;
    let keys = 0;
    this.#batches = Array.from({ length: batches }, () =>
      Buffer.concat(
        Array.from({ length: traffic.pipeline }, () => {
          const words = traffic.commands[made++ % traffic.commands.length]!;
          return encoded(
            words.map((word) => {
              if (word.includes('$key')) {
                return word.replace('$key', keyOf((keys++ * 7919) % traffic.keys));
              }
              return word === '$value' ? value : word;
            }),
          );
        }),
      ),
    );
  }

  async open(): Promise<void> {
    for (let i = 0; i < this.#traffic.connections; i++) {
      const socket = await connected(this.#traffic);
      const connection: Connection = new Connection(socket, this.#tally, this.#isTimed, () => {
        if (this.#isFree) this.#fill(connection);
      });
      this.#connections.push(connection);
      socket.on('error', () => {});
      socket.on('close', () => this.#lost(connection));
    }
  }

  #lost(connection: Connection): void {
    const at = this.#connections.indexOf(connection);
    if (at < 0) return;
    this.#connections.splice(at, 1);
    for (let n = connection.waiting; n > 0; n--) this.#tally.failed(undefined, 'connection lost');
  }

  send(dueAt: number): boolean {
    const connections = this.#connections;
    for (let tries = connections.length; tries > 0; tries--) {
      this.#nextConnection = (this.#nextConnection + 1) % connections.length;
      const connection = connections[this.#nextConnection]!;
      if (connection.socket.writableLength > mostUnsent) continue;
      this.#sendOn(connection, dueAt);
      return true;
    }
    return false;
  }

  sendFreely(): void {
    this.#isFree = true;
    for (const connection of this.#connections) this.#fill(connection);
  }

  #fill(connection: Connection): void {
    while (connection.waiting <= (freeBatches - 1) * this.batch) {
      this.#sendOn(connection, performance.now());
    }
  }

  #sendOn(connection: Connection, dueAt: number): void {
    connection.send(this.#batches[this.#next]!, this.batch, dueAt);
    this.#next = (this.#next + 1) % batches;
    this.#tally.sent(this.batch);
  }

  close(): void {
    this.#isFree = false;
    for (const { socket } of this.#connections.splice(0)) socket.destroy();
  }
}

function keyOf(n: number): string {
  return `key:${n}`;
}

/** Logged in. */
async function connected({ port, name, password }: RedisTraffic): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.setNoDelay(true);
  await exchange(socket, [['AUTH', name, password]]);
  return socket;
}

function exchange(socket: Socket, commands: readonly Words[]): Promise<void> {
  return new Promise((resolve, reject) => {
    let left = commands.length;
    const reader = new ReplyReader((error) => {
      if (error !== undefined) reject(new Error(error));
      else if (--left === 0) {
        socket.removeAllListeners();
        resolve();
      }
    });
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('the server closed the connection')));
    socket.on('data', (chunk: Buffer) => reader.read(chunk));
    socket.write(Buffer.concat(commands.map(encoded)));
  });
}

/** Sets all keys that such traffic is about. */
export async function fillKeys(traffic: RedisTraffic): Promise<void> {
  const socket = await connected(traffic);
  const value = 'x'.repeat(traffic.valueBytes);
  try {
    for (let from = 0; from < traffic.keys; from += filledAtOnce) {
      const count = Math.min(filledAtOnce, traffic.keys - from);
      await exchange(
        socket,
        Array.from({ length: count }, (_, i) => ['SET', keyOf(from + i), value]),
      );
    }
  } finally {
    socket.destroy();
  }
}
