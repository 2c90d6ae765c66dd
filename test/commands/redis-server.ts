// A redis-server of our own on a free port, to compare with. Absent where it is not installed.

import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readReply, splitLine } from './resp.ts';
import { freePort } from '../support/free-port.ts';

/** Redis 7.0 is what we compare with; another version answers differently here and there. */
export const redisInstalled = /v=7\.0\./.test(
  spawnSync('redis-server', ['--version'], { encoding: 'utf8' }).stdout ?? '',
);

export class RedisServer {
  readonly #process: ChildProcess;
  readonly #folder: string;
  readonly #socket: Socket;
  #received = Buffer.alloc(0);
  #waiting: (() => void) | undefined;

  private constructor(process: ChildProcess, folder: string, socket: Socket) {
    this.#process = process;
    this.#folder = folder;
    this.#socket = socket;
    socket.on('data', (chunk) => {
      this.#received = Buffer.concat([this.#received, chunk]);
      this.#waiting?.();
    });
  }

  static async start(): Promise<RedisServer> {
    const port = await freePort();
    const folder = mkdtempSync(join(tmpdir(), 'redis-'));
    const options = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder];
    const process = spawn('redis-server', [...options, '--save', '', '--appendonly', 'no'], {
      stdio: 'ignore',
    });
    for (let attempt = 0; ; attempt++) {
      try {
        return new RedisServer(process, folder, await open(port));
      } catch (e) {
        if (attempt === 100) throw e;
        await sleep(50);
      }
    }
  }

  async stop(): Promise<void> {
    this.#socket.destroy();
    const gone = new Promise((resolve) => this.#process.once('exit', resolve));
    this.#process.kill();
    await gone;
    rmSync(this.#folder, { recursive: true, force: true });
  }

  run(line: string, sorted = false): Promise<string> {
    return this.command(splitLine(line), sorted);
  }

  async command(words: readonly (Buffer | string)[], sorted = false): Promise<string> {
    this.#socket.write(encode(words));
    for (;;) {
      try {
        const [text, next] = readReply(this.#received, 0, sorted);
        this.#received = this.#received.subarray(next);
        return text;
      } catch (e) {
        if (!(e instanceof RangeError)) throw e;
        await new Promise<void>((resolve) => (this.#waiting = resolve));
      }
    }
  }
}

function encode(words: readonly (Buffer | string)[]): Buffer {
  const parts = [Buffer.from(`*${words.length}\r\n`)];
  for (const word of words) {
    const bytes = Buffer.from(word as string);
    parts.push(Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n'));
  }
  return Buffer.concat(parts);
}

function open(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(socket));
    socket.once('error', reject);
  });
}
