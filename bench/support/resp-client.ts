// The least of a Redis client that a bench needs: one command with its answer, and long pipelines whose
// answers are counted.

import { createConnection, type Socket } from 'node:net';

const chunkBytes = 64 * 1024;
const maxWaitingCommands = 20_000;
const newline = 10;
const minus = 45;

/** A command as bytes on the wire; the words are Latin-1. */
export function request(...words: readonly (string | number)[]): string {
  let text = `*${words.length}\r\n`;
  for (const word of words) text += `$${String(word).length}\r\n${word}\r\n`;
  return text;
}

export class RespClient {
  readonly #socket: Socket;
  #seen: (data: Buffer) => void = () => {};
  #failed: (error: Error) => void = () => {};
  #closed: Error | undefined = undefined;

  static connect(port: number): Promise<RespClient> {
    return new Promise((resolve, reject) => {
      const socket = createConnection(port, '127.0.0.1', () => {
        socket.off('error', reject);
        resolve(new RespClient(socket));
      });
      socket.once('error', reject);
    });
  }

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (data) => this.#seen(data));
    socket.on('error', (error) => this.#fail(error));
    socket.on('close', () => this.#fail(new Error('the server closed the connection')));
  }

  close(): void {
    this.#socket.destroy();
  }

  /** The answer's text: a line without its type, or a bulk string. Rejects on an error. */
  async call(...words: readonly (string | number)[]): Promise<string> {
    let answer = Buffer.alloc(0);
    return this.#until((resolve, reject) => {
      this.#seen = (data) => {
        answer = Buffer.concat([answer, data]);
        const lineEnd = answer.indexOf('\r\n');
        if (lineEnd < 0) return;
        const type = String.fromCharCode(answer[0]!);
        const line = answer.toString('latin1', 1, lineEnd);
        if (type === '-') return reject(new Error(line));
        if (type !== '$') return resolve(line);
        const end = lineEnd + 2 + Math.max(0, Number(line));
        if (answer.length >= end) resolve(answer.toString('latin1', lineEnd + 2, end));
      };
      this.#socket.write(request(...words), 'latin1');
    });
  }

  /** Sends `count` commands whose answers are single lines. Rejects on the first error. */
  async pipeline(count: number, requestAt: (i: number) => string): Promise<void> {
    let sent = 0;
    let answered = 0;
    let atLineStart = true;
    await this.#until<void>((resolve, reject) => {
      const send = (): void => {
        while (sent < count && sent - answered < maxWaitingCommands) {
          let chunk = '';
          while (sent < count && chunk.length < chunkBytes) chunk += requestAt(sent++);
          this.#socket.write(chunk, 'latin1');
        }
      };
      this.#seen = (data) => {
        for (let i = 0; i < data.length; i++) {
          if (atLineStart && data[i] === minus) {
            return reject(new Error(data.toString('latin1', i, i + 200)));
          }
          atLineStart = data[i] === newline;
          if (atLineStart) answered++;
        }
        if (answered === count) resolve();
        else send();
      };
      send();
    });
  }

  #until<T>(begin: (resolve: (value: T) => void, reject: (error: Error) => void) => void) {
    return new Promise<T>((resolve, reject) => {
      this.#failed = reject;
      if (this.#closed !== undefined) reject(this.#closed);
      else begin(resolve, reject);
    });
  }

  #fail(error: Error): void {
    this.#closed ??= error;
    this.#failed(error);
  }
}
