// The commands of a tenant that took longest, newest first, as SLOWLOG shows them. Secrets are not among
// their words.

import type { Arguments } from '../../universal-row/arguments.ts';
import type { CommandEntry } from './commands/registry.ts';

const maxWords = 32;
const maxWordBytes = 128;
const hidden = Buffer.from('(redacted)');

export interface SlowEntry {
  id: number;
  /** Ascending over all tenants. */
  serial: number;
  /** Milliseconds since 1970. */
  at: number;
  spentMs: number;
  words: Buffer[];
  client: string;
  clientName: string;
  user: string;
  /** Cost of the command. */
  ru: number;
}

/** Shared by the slow logs of all tenants. */
export interface SlowlogLimits {
  length: number;
  nextSerial: number;
}

/** A client as the slow log shows it. */
interface SlowClient {
  readonly server: { readonly now: number };
  readonly address: string;
  readonly name: string;
  readonly user: string;
}

export class Slowlog {
  readonly #limits: SlowlogLimits;
  entries: SlowEntry[] = [];
  private nextId = 0;

  constructor(limits: SlowlogLimits) {
    this.#limits = limits;
  }

  add(client: SlowClient, entry: CommandEntry, args: Arguments, spentMs: number, ru: number): void {
    const { length } = this.#limits;
    if (length <= 0) return;
    const words: Buffer[] = [];
    const shown = args.count > maxWords ? maxWords - 1 : args.count;
    for (let i = 0; i < shown; i++) {
      if (isSecret(entry, args, i)) {
        words.push(hidden);
        continue;
      }
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
      serial: this.#limits.nextSerial++,
      at: client.server.now,
      spentMs,
      words,
      client: client.address,
      clientName: client.name,
      user: client.user,
      ru,
    });
    if (this.entries.length > length) this.entries.length = length;
  }

  reset(): void {
    this.entries = [];
  }
}

/** Whether a word may hold a secret. */
function isSecret({ fullName }: CommandEntry, args: Arguments, word: number): boolean {
  switch (fullName) {
    case 'auth':
      return word > 0;
    case 'hello':
      return word > 1;
    case 'acl|setuser':
      return word > 2;
    case 'config|set':
      return word > 2 && word % 2 === 1 && /pass|auth|token|secret/i.test(args.text(word - 1));
    default:
      return false;
  }
}
