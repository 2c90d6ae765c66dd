// The commands that took longest, newest first, as SLOWLOG shows them.

import type { Arguments } from '../../universal-row/arguments.ts';
import type { Connection } from './connection.ts';

const maxWords = 32;
const maxWordBytes = 128;

export interface SlowEntry {
  id: number;
  /** Seconds since 1970. */
  at: number;
  spentMs: number;
  words: Buffer[];
  client: string;
  clientName: string;
}

export class Slowlog {
  maxLength: number;
  entries: SlowEntry[] = [];
  private nextId = 0;

  constructor(maxLength: number) {
    this.maxLength = maxLength;
  }

  add(connection: Connection, args: Arguments, spentMs: number): void {
    if (this.maxLength <= 0) return;
    const words: Buffer[] = [];
    const shown = args.count > maxWords ? maxWords - 1 : args.count;
    for (let i = 0; i < shown; i++) {
      const word = args.bytes(i);
      words.push(
        word.length <= maxWordBytes
          ? Buffer.from(word)
          : Buffer.concat([
              word.subarray(0, maxWordBytes),
              Buffer.from(`... (${word.length - maxWordBytes} more bytes)`),
            ]),
      );
    }
    if (shown < args.count) {
      words.push(Buffer.from(`... (${args.count - shown} more arguments)`));
    }
    this.entries.unshift({
      id: this.nextId++,
      at: Math.floor(connection.server.now / 1000),
      spentMs,
      words,
      client: connection.address,
      clientName: connection.name,
    });
    if (this.entries.length > this.maxLength) this.entries.length = this.maxLength;
  }

  reset(): void {
    this.entries = [];
  }
}
