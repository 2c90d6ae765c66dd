// Sends commands to a server in batches, and measures its CPU time. The duration of a batch does
// not matter, only the server's work: the next batch is there when it has finished one, so that it
// does not sleep in between. A wake-up costs more than a small batch, and varies.

import { connect, type Socket } from 'node:net';
import type { RowWorkCounts } from '../../request-units/row-pricer.ts';

/** Commands of a batch, unless they are so large that fewer do. */
const batchCommands = 128;
const batchBytes = 256 * 1024;
/** A server that takes more is not idle: something else is running in it. */
const mostIdle = 10;
/** A server is waited for until it takes no more than so many microseconds in a millisecond. */
const quietMicros = 100;
const napMs = 3;
/** Longer than the merges of one window take. */
const mostNaps = 60;
/** Longer than any batch takes. */
const answerMs = 60_000;
const endMark = 'end-of-batch';
const endReply = Buffer.from(`$${endMark.length}\r\n${endMark}\r\n`);

export type Words = readonly (string | Buffer)[];

/** A command as RESP. */
export function encoded(words: Words): Buffer {
  const parts: Buffer[] = [Buffer.from(`*${words.length}\r\n`)];
  for (const word of words) {
    const bytes = typeof word === 'string' ? Buffer.from(word) : word;
    parts.push(Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n'));
  }
  return Buffer.concat(parts);
}

export interface Batch {
  bytes: Buffer;
  commands: number;
}

/** Sent at the end of every batch: a command of its own, which costs something as well. */
const end = encoded(['ECHO', endMark]);

/** As many of the commands that `make` gives for 0, 1, 2 … as make a batch of `size` bytes each. */
export function batchOf(size: number, make: (i: number) => Words): Batch {
  const commands = Math.max(1, Math.min(batchCommands, Math.floor(batchBytes / (size + 1))));
  const all = Array.from({ length: commands }, (_, i) => encoded(make(i)));
  return { bytes: Buffer.concat([...all, end]), commands };
}

/** Only the command that ends a batch. */
export const endBatch: Batch = { bytes: Buffer.concat([end, end]), commands: 1 };

/** One request, as it is priced: all that its cost is made up of. */
export interface PricedRequest extends RowWorkCounts {
  commands: number;
  received: number;
  sent: number;
}

interface CpuSpent {
  micros: number;
  commands: number;
}

export class RedisLoad {
  readonly #socket: Socket;
  #tail: Buffer = Buffer.alloc(0);
  #answer: Buffer[] = [];
  #keeps = false;
  /** Callbacks of the batches in flight, in the order of their answers. */
  readonly #waiting: (() => void)[] = [];
  #failed: Error | undefined;
  /** CPU microseconds per millisecond of an idle server. */
  #idle = 0;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    socket.on('error', (error) => (this.#failed = error));
    socket.on('close', () => {
      for (const wake of this.#waiting.splice(0)) wake();
    });
  }

  static async connect(port: number): Promise<RedisLoad> {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', reject);
    });
    return new RedisLoad(socket);
  }

  #receive(chunk: Buffer): void {
    if (this.#keeps) this.#answer.push(Buffer.from(chunk));
    const n = endReply.length;
    // An end is in a chunk, or lies across two of them.
    const seam = Buffer.concat([this.#tail, chunk.subarray(0, n - 1)]);
    let ends = countOf(endReply, seam) + countOf(endReply, chunk);
    const last = chunk.length < n ? seam : chunk;
    this.#tail = Buffer.from(last.subarray(Math.max(0, last.length - n + 1)));
    for (; ends > 0; ends--) this.#waiting.shift()?.();
  }

  /** Sends a batch, and resolves when it is answered. Others may be under way. */
  async send(batch: Batch): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve, reject) => {
      this.#waiting.push(resolve);
      timer = setTimeout(() => reject(new Error('the server does not answer')), answerMs);
      this.#socket.write(batch.bytes);
    }).finally(() => clearTimeout(timer));
    if (this.#failed !== undefined) throw this.#failed;
    if (this.#socket.destroyed) throw new Error('the server closed the connection');
  }

  /** The answer to one command, as text. */
  async ask(words: Words): Promise<string> {
    return await this.#answerTo(single(words).bytes);
  }

  /** CPU microseconds of the server since its start. */
  async cpuMicros(): Promise<number> {
    const info = await this.ask(['INFO', 'cpu']);
    const of = (name: string): number => Number(new RegExp(`${name}:(\\S+)`).exec(info)?.[1]) * 1e6;
    return of('used_cpu_sys') + of('used_cpu_user');
  }

  /** Measures the server's idle CPU time: after warm-up and background work. */
  async measureIdle(): Promise<void> {
    const found: number[] = [];
    for (let i = 0; i < 4; i++) {
      const before = await this.cpuMicros();
      const startedAt = performance.now();
      await new Promise((resolve) => setTimeout(resolve, 400));
      found.push(((await this.cpuMicros()) - before) / (performance.now() - startedAt));
    }
    this.#idle = Math.min(mostIdle, ...found);
  }

  /**
   * CPU time of the server for the requests of `run`. Deferred work (writing the log, collecting garbage) is waited
   * for, so that it falls into the window that caused it.
   */
  async cpuOf(run: () => Promise<number>): Promise<CpuSpent> {
    const before = await this.cpuMicros();
    const startedAt = performance.now();
    const commands = await run();
    let now = await this.cpuMicros();
    for (let naps = 0; naps < mostNaps; naps++) {
      const last = now;
      await new Promise((resolve) => setTimeout(resolve, napMs));
      now = await this.cpuMicros();
      if (now - last < napMs * (this.#idle + quietMicros)) break;
    }
    const idle = (performance.now() - startedAt) * this.#idle;
    return { micros: Math.max(0, now - before - idle), commands };
  }

  /** The work that the server counted for one command of a batch, as it prices it. */
  async workOf(batch: Batch): Promise<PricedRequest> {
    const ask = encoded(['RU', 'WORK']);
    const commands = batch.bytes.subarray(0, batch.bytes.length - end.length);
    // Commands that are not priced yet are priced first.
    const answer = await this.#answerTo(Buffer.concat([ask, commands, ask, end]));
    const counts = new Map<string, number>();
    const last = answer.slice(answer.lastIndexOf('\r\ncommand\r\n'));
    for (const [, name, count] of last.matchAll(/\r\n([a-zA-Z]+)\r\n:(\d+)(?=\r)/g)) {
      counts.set(name!, Number(count));
    }
    const requests = counts.get('requests');
    if (requests === undefined) throw new Error('the server does not report its work: RU WORK');
    const of = (name: keyof PricedRequest): number => (counts.get(name) ?? 0) / requests;
    return {
      commands: of('commands'),
      received: of('received'),
      sent: of('sent'),
      lookups: of('lookups'),
      reads: of('reads'),
      readBytes: of('readBytes'),
      seeks: of('seeks'),
      walked: of('walked'),
      fieldsWalked: of('fieldsWalked'),
      scoresWalked: of('scoresWalked'),
      arrayWalked: of('arrayWalked'),
      values: of('values'),
      fields: of('fields'),
      scores: of('scores'),
      elements: of('elements'),
      removed: of('removed'),
      logBytes: of('logBytes'),
      misses: of('misses'),
      scriptSteps: of('scriptSteps'),
    };
  }

  async #answerTo(bytes: Buffer): Promise<string> {
    this.#keeps = true;
    this.#answer = [];
    await this.send({ bytes, commands: 1 });
    this.#keeps = false;
    return Buffer.concat(this.#answer).toString('latin1');
  }

  /** Sends a batch, and throws if anything in it is refused. */
  async check(batch: Batch): Promise<void> {
    const error = /(?:^|\r\n)-[A-Z]{2,}[^\r]*/.exec(await this.#answerTo(batch.bytes));
    if (error !== null) throw new Error(`the server refused a command: ${error[0].trim()}`);
  }

  close(): void {
    this.#socket.destroy();
  }
}

function countOf(mark: Buffer, bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(mark); at >= 0; at = bytes.indexOf(mark, at + mark.length)) count++;
  return count;
}

function single(words: Words): Batch {
  return { bytes: Buffer.concat([encoded(words), end]), commands: 1 };
}
