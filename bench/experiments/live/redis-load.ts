// Connections that each have one command under way at most: as many as answers allow, or so many a second.

import { createConnection, type Socket } from 'node:net';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { request } from '../../support/resp-client.ts';

const keys = 10_000;
/** What most of ABase's business has in the mean. */
const valueBytes = 1000;
const endMs = 1;
const newline = 10;
const dollar = 36;
const plus = 43;
const minus = 45;

export interface LoadRun {
  answered: number;
  /** Answers that were errors. */
  refused: number;
}

export class RedisLoad {
  readonly #idle: Socket[] = [];
  readonly #sockets: Socket[] = [];
  readonly #requests: Buffer[];
  #next = 0;
  #answered = 0;
  #refused = 0;
  #isFree = false;

  static async connect(port: number, connections: number): Promise<RedisLoad> {
    const load = new RedisLoad();
    for (let i = 0; i < connections; i++) await load.#connect(port);
    return load;
  }

  private constructor() {
    const value = 'x'.repeat(valueBytes);
    this.#requests = Array.from({ length: keys }, (_, i) => {
      const key = `key:${(i * 7919) % keys}`;
      return Buffer.from(i % 5 === 0 ? request('SET', key, value) : request('GET', key), 'latin1');
    });
  }

  #connect(port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = createConnection(port, '127.0.0.1', () => {
        this.#sockets.push(socket);
        this.#idle.push(socket);
        resolve();
      });
      socket.setNoDelay(true);
      socket.once('error', reject);
      socket.on('data', (data) => this.#answer(socket, data));
    });
  }

  #answer(socket: Socket, data: Buffer): void {
    // A bulk string comes whole at this size, and ends as a line does.
    if (data[data.length - 1] !== newline) throw new Error('half an answer');
    if (data[0] === minus) this.#refused++;
    else if (data[0] !== plus && data[0] !== dollar) {
      throw new Error(`not an answer: ${data.toString('latin1', 0, 100)}`);
    }
    this.#answered++;
    if (this.#isFree) this.#send(socket);
    else this.#idle.push(socket);
  }

  #send(socket: Socket): void {
    socket.write(this.#requests[this.#next]!);
    this.#next = this.#next + 1 === keys ? 0 : this.#next + 1;
  }

  /** Requests a second; Infinity for as many as are answered. Ends once all are. */
  async run(rate: number, seconds: number): Promise<LoadRun> {
    this.#answered = 0;
    this.#refused = 0;
    const startedAt = performance.now();
    const end = startedAt + seconds * 1000;
    this.#isFree = rate === Infinity;
    if (this.#isFree) for (const socket of this.#idle.splice(0)) this.#send(socket);
    if (this.#isFree) await sleep(seconds * 1000);
    let sent = 0;
    for (let now = performance.now(); now < end; now = performance.now()) {
      // Looked at all the time: what is due comes when it is due, and not in heaps.
      const due = ((now - startedAt) * rate) / 1000;
      for (; sent < due && this.#idle.length > 0; sent++) this.#send(this.#idle.pop()!);
      await nextTurn();
    }
    this.#isFree = false;
    while (this.#idle.length < this.#sockets.length) await sleep(endMs);
    return { answered: this.#answered, refused: this.#refused };
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}
