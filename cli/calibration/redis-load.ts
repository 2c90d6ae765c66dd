// Commands sent to a server in batches, and the CPU time it took for them. One batch is under way at a time:
// how long it takes does not matter, only what the server had to do.

import { connect, type Socket } from 'node:net';

/** Commands of a batch, unless they are so large that fewer do. */
const batchCommands = 16;
const batchBytes = 1024 * 1024;
/** A server that takes more is not idle: something else is going on in it. */
const mostIdle = 10;
/** Longer than any batch takes. */
const answerMs = 60_000;
const endMark = 'end-of-batch';
const endReply = Buffer.from(`$${endMark.length}\r\n${endMark}\r\n`);

export const windowsOfOne = 12;
const leastBatches = 6;

/** Of what several windows gave, one of the least. */
export function undisturbed(found: readonly number[]): number {
  return [...found].sort((a, b) => a - b)[found.length >> 2]!;
}

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

/** As many of the commands that `make` gives for 0, 1, 2 … as make a batch of `size` bytes each. */
export function batchOf(size: number, make: (i: number) => Words): Batch {
  const commands = Math.max(1, Math.min(batchCommands, Math.floor(batchBytes / (size + 1))));
  const all = Array.from({ length: commands }, (_, i) => encoded(make(i)));
  return { bytes: Buffer.concat([...all, encoded(['ECHO', endMark])]), commands };
}

export interface CpuSpent {
  micros: number;
  commands: number;
}

export class RedisLoad {
  readonly #socket: Socket;
  #tail = Buffer.alloc(0);
  #answer: Buffer[] = [];
  #keeps = false;
  #wake: (() => void) | undefined;
  #failed: Error | undefined;
  /** Microseconds of CPU in a millisecond that the server takes while nobody asks for anything. */
  #idle = 0;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    socket.on('error', (error) => (this.#failed = error));
    socket.on('close', () => this.#wake?.());
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
    const tail = chunk.length >= n ? chunk : Buffer.concat([this.#tail, chunk]);
    this.#tail = Buffer.from(tail.subarray(Math.max(0, tail.length - n)));
    if (this.#tail.equals(endReply)) this.#wake?.();
  }

  /** Sends a batch, and resolves when it is answered. */
  async send(batch: Batch): Promise<void> {
    this.#tail = Buffer.alloc(0);
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve, reject) => {
      this.#wake = resolve;
      timer = setTimeout(() => reject(new Error('the server does not answer')), answerMs);
      this.#socket.write(batch.bytes);
    }).finally(() => clearTimeout(timer));
    if (this.#failed !== undefined) throw this.#failed;
    if (this.#socket.destroyed) throw new Error('the server closed the connection');
  }

  /** The answer to one command, as text. */
  async ask(words: Words): Promise<string> {
    this.#keeps = true;
    this.#answer = [];
    await this.send(single(words));
    this.#keeps = false;
    return Buffer.concat(this.#answer).toString('latin1');
  }

  /** CPU microseconds of the server since its start. */
  async cpuMicros(): Promise<number> {
    const info = await this.ask(['INFO', 'cpu']);
    const of = (name: string): number => Number(new RegExp(`${name}:(\\S+)`).exec(info)?.[1]) * 1e6;
    return of('used_cpu_sys') + of('used_cpu_user');
  }

  /** Learns what the server takes by itself: once it is warm, and has tidied up. */
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

  /** What the server takes for what `run` sends. */
  async cpuOf(run: () => Promise<number>): Promise<CpuSpent> {
    const before = await this.cpuMicros();
    const startedAt = performance.now();
    const commands = await run();
    const idle = (performance.now() - startedAt) * this.#idle;
    return { micros: Math.max(0, (await this.cpuMicros()) - before - idle), commands };
  }

  /**
   * CPU microseconds of one command, from batches that are sent for so long. Of several windows one of the
   * best: whatever else runs on the machine can only add to what a window takes.
   */
  async micros(batches: readonly Batch[], windowMs: number): Promise<number> {
    let next = 0;
    const run = async (): Promise<number> => {
      const end = performance.now() + windowMs;
      let commands = 0;
      for (let sent = 0; sent < leastBatches || performance.now() < end; sent++) {
        const batch = batches[next++ % batches.length]!;
        await this.send(batch);
        commands += batch.commands;
      }
      return commands;
    };
    for (const batch of batches.slice(0, 2)) await this.check(batch);
    await run();
    const found: number[] = [];
    for (let i = 0; i < windowsOfOne; i++) {
      const { micros, commands } = await this.cpuOf(run);
      found.push(micros / commands);
    }
    return undisturbed(found);
  }

  /** Sends a batch, and throws if anything in it is refused. */
  async check(batch: Batch): Promise<void> {
    this.#keeps = true;
    this.#answer = [];
    await this.send(batch);
    this.#keeps = false;
    const error = /(?:^|\r\n)-[A-Z]{2,}[^\r]*/.exec(Buffer.concat(this.#answer).toString('latin1'));
    if (error !== null) throw new Error(`the server refused a command: ${error[0].trim()}`);
  }

  close(): void {
    this.#socket.destroy();
  }
}

function single(words: Words): Batch {
  return { bytes: Buffer.concat([encoded(words), encoded(['ECHO', endMark])]), commands: 1 };
}
