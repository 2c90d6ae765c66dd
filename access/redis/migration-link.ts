// The connection to another server over which MIGRATE sends values.

import { connect, type Socket } from 'node:net';
import type {
  MigrationAnswers,
  MigrationLink,
  MigrationTarget,
} from '../../universal-row/transforms/redis/migrate.ts';

/** Bytes that wait to be sent, beyond which the target's reading is waited for. */
const mostWaitingBytes = 1024 * 1024;
/** Longest wait for a target, whatever the command says, because the command holds a table. */
const longestTimeoutMs = 60_000;
/** Longest reply line of the target. */
const longestLine = 64 * 1024;

export function openMigration(target: MigrationTarget): MigrationLink {
  return new SocketLink(target);
}

class SocketLink implements MigrationLink {
  readonly #target: MigrationTarget;
  #socket: Socket | undefined;
  /** Unprocessed input. */
  #input = '';
  /** Outstanding replies to AUTH and SELECT, which precede the values. */
  #answersBefore = 0;
  readonly #taken: boolean[] = [];
  #sent = 0;
  #error: string | undefined;
  #failure: string | undefined;
  /** Current operation, for error texts. */
  #doing:
    | 'connecting to the client'
    | 'writing to target instance'
    | 'reading from target instance' = 'connecting to the client';
  #wake: (() => void) | undefined;

  constructor(target: MigrationTarget) {
    this.#target = target;
  }

  async open(): Promise<string | undefined> {
    const { host, port, timeoutMs, auth, db } = this.#target;
    const number = Number(port);
    const isPort = /^\d{1,5}$/.test(port) && number > 0 && number < 65_536;
    if (!isPort || host === '' || host.includes('/')) return this.#fail();
    const socket = connect({ host, port: number, noDelay: true });
    this.#socket = socket;
    socket.setTimeout(Math.min(timeoutMs, longestTimeoutMs), () => this.#fail());
    socket.on('error', () => this.#fail());
    socket.on('close', () => this.#fail());
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    socket.on('drain', () => this.#wakeUp());
    let isConnected = false;
    socket.on('connect', () => {
      isConnected = true;
      this.#wakeUp();
    });
    await this.#until(() => isConnected);
    if (this.#failure !== undefined) return this.#failure;
    this.#doing = 'writing to target instance';
    if (auth.length > 0) {
      this.#answersBefore++;
      this.#write([Buffer.from('AUTH'), ...auth.map((word) => Buffer.from(word, 'latin1'))]);
    }
    this.#answersBefore++;
    this.#write([Buffer.from('SELECT'), Buffer.from(String(db))]);
    // No value may be sent until SELECT has succeeded: it would be stored in another database.
    await this.#until(() => this.#answersBefore === 0);
    return this.#failure;
  }

  send(key: Buffer, ttlMs: number, payload: Buffer): void {
    this.#sent++;
    const words = [Buffer.from('RESTORE'), key, Buffer.from(String(ttlMs)), payload];
    if (this.#target.replaces) words.push(Buffer.from('REPLACE'));
    this.#write(words);
  }

  room(): Promise<void> | undefined {
    const isFree = (): boolean => (this.#socket?.writableLength ?? 0) <= mostWaitingBytes;
    return isFree() || this.#failure !== undefined ? undefined : this.#until(isFree);
  }

  async answers(): Promise<MigrationAnswers> {
    this.#doing = 'reading from target instance';
    const isComplete = (): boolean => this.#taken.length === this.#sent;
    await this.#until(isComplete);
    return { taken: this.#taken, error: isComplete() ? this.#error : this.#failure };
  }

  close(): void {
    this.#socket?.destroy();
  }

  /** Resolves when it is so, or the link has failed. */
  async #until(isSo: () => boolean): Promise<void> {
    while (this.#failure === undefined && !isSo()) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #wakeUp(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }

  #fail(): string {
    this.#failure ??= `IOERR error or timeout ${this.#doing}`;
    this.#socket?.destroy();
    this.#wakeUp();
    return this.#failure;
  }

  #write(words: readonly Buffer[]): void {
    const socket = this.#socket;
    if (socket === undefined || this.#failure !== undefined) return;
    socket.cork();
    socket.write(`*${words.length}\r\n`);
    for (const word of words) {
      socket.write(`$${word.length}\r\n`);
      socket.write(word);
      socket.write('\r\n');
    }
    socket.uncork();
  }

  /** All that the target can answer is a line: `+OK`, or an error. */
  #receive(chunk: Buffer): void {
    this.#input += chunk.toString('latin1');
    const lines = this.#input.split('\r\n');
    this.#input = lines.pop()!;
    for (const line of lines) this.#answered(line);
    if (this.#input.length > longestLine) this.#fail();
    this.#wakeUp();
  }

  #answered(line: string): void {
    const isGood = line.startsWith('+');
    if (!isGood) {
      if (!line.startsWith('-')) {
        this.#fail();
        return;
      }
      this.#error ??= `ERR Target instance replied with error: ${line.slice(1)}`;
    }
    if (this.#answersBefore > 0) {
      this.#answersBefore--;
      if (!isGood) this.#failure ??= this.#error;
    } else if (this.#taken.length < this.#sent) this.#taken.push(isGood);
    else this.#fail();
  }
}
