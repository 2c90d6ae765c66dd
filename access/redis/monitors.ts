// Clients in MONITOR: they are shown every command of their tenant, of clients of all nodes of a cluster.

import type { Arguments } from '../../universal-row/arguments.ts';
import type { CommandEntry } from './commands/registry.ts';
import type { RespWriter } from './resp-writer.ts';

/** A connection as MONITOR shows it, or writes to it. */
interface Monitored {
  readonly db: number;
  readonly address: string;
  readonly tenant: { readonly number: number };
  answer(): RespWriter;
  /** Output written from `mark` on is a message, not an answer. */
  pushed(mark: number): void;
}

/** The other nodes of a cluster. */
export interface MonitorsElsewhere {
  /** The tenants that clients of this node watch from now on. */
  watch(tenants: readonly number[]): void;
  /** Shows a line to the clients of other nodes. */
  show(tenant: number, line: string): void;
}

// So many bytes of a word are shown, and another word is begun while its line is shorter.
const wordBytes = 1024;
const lineBytes = 8192;

export class Monitors<C extends Monitored = Monitored> {
  readonly #clients = new Set<C>();

  elsewhere: MonitorsElsewhere | undefined;
  /** Clients of other nodes may watch. */
  isWatchedElsewhere = false;

  /** 0 where no client is in MONITOR. */
  get size(): number {
    return this.#clients.size + (this.isWatchedElsewhere ? 1 : 0);
  }

  add(client: C): void {
    this.#clients.add(client);
    this.#tellOthers();
  }

  delete(client: C): void {
    if (this.#clients.delete(client)) this.#tellOthers();
  }

  #tellOthers(): void {
    const tenants = Array.from(this.#clients, ({ tenant }) => tenant.number);
    this.elsewhere?.watch([...new Set(tenants)]);
  }

  /** Shows a command of `client` to the clients that monitor its tenant. */
  feed(client: C, entry: CommandEntry, args: Arguments): void {
    if (entry.spec.flags.includes('admin') || entry.noAuth) return;
    this.show(client, lineOf(client.db, client.address, args));
  }

  /**
   * MONITOR line of a command called by the client's script; sent by `show` when the script has
   * replied.
   */
  scriptLine(client: C, args: Arguments): string {
    return lineOf(client.db, 'lua', args);
  }

  show(client: C, line: string): void {
    for (const monitor of this.#clients) {
      if (monitor.tenant === client.tenant) write(monitor, line);
    }
    if (this.isWatchedElsewhere) this.elsewhere?.show(client.tenant.number, line);
  }

  /** Shows lines of another node. */
  hear(tenant: number, lines: string): void {
    for (const monitor of this.#clients) {
      if (monitor.tenant.number === tenant) write(monitor, lines);
    }
  }
}

function write(monitor: Monitored, lines: string): void {
  const out = monitor.answer();
  const mark = out.pos;
  out.raw(lines);
  monitor.pushed(mark);
}

function lineOf(db: number, from: string, args: Arguments): string {
  const now = performance.timeOrigin + performance.now();
  const seconds = Math.floor(now / 1000);
  const micros = String(Math.floor((now % 1000) * 1000)).padStart(6, '0');
  let line = `+${seconds}.${micros} [${db} ${from}]`;
  for (let i = 0; i < args.count; i++) {
    if (line.length > lineBytes) {
      line += ` "... (${args.count - i} more arguments)"`;
      break;
    }
    const word = args.bytes(i);
    const cut = word.length - wordBytes;
    const rest = cut > 0 ? `... (${cut} more bytes)` : '';
    line += ` "${escaped(word.subarray(0, wordBytes))}${rest}"`;
  }
  return `${line}\r\n`;
}

/** As a C string literal, as MONITOR shows words. */
function escaped(word: Buffer): string {
  let text = '';
  for (const byte of word) {
    if (byte === 34 || byte === 92) text += `\\${String.fromCharCode(byte)}`;
    else if (byte >= 32 && byte < 127) text += String.fromCharCode(byte);
    else text += shortEscapes[byte] ?? `\\x${byte.toString(16).padStart(2, '0')}`;
  }
  return text;
}

const shortEscapes: Readonly<Record<number, string>> = {
  7: '\\a',
  8: '\\b',
  9: '\\t',
  10: '\\n',
  13: '\\r',
};
